"""Fixtures that several rooms share."""

from pathlib import Path

import pytest

from pyweb.cli import model_files
from pyweb.storage import registry


@pytest.fixture(scope="session")
def embedded_model() -> Path:
    """Path of the embedded model's file, which set-up put into the cache."""
    path = model_files.cached(registry.find(registry.DEFAULT))
    assert path, "run `make setup` first"
    return path
