"""Fixtures that several rooms share."""

from pathlib import Path

import pytest

from pyweb.cli import model_files
from pyweb.storage import registry
from tests.gpu import dawn

# Exit status of a run in which the software adapter itself gave up: `make test` repeats what failed, once.
ADAPTER_LOST = 75


@pytest.fixture(scope="session")
def embedded_model() -> Path:
    """Path of the embedded model's file, which set-up put into the cache."""
    path = model_files.cached(registry.find(registry.DEFAULT))
    assert path, "run `make setup` first"
    return path


def pytest_sessionfinish(session, exitstatus):
    complete = exitstatus == pytest.ExitCode.TESTS_FAILED and not session.shouldfail
    if dawn.lost and complete:
        session.exitstatus = ADAPTER_LOST


def pytest_terminal_summary(terminalreporter):
    for why in dawn.lost[:1]:
        terminalreporter.write_line(f"{why} Every later kernel test failed for that reason.", red=True)
