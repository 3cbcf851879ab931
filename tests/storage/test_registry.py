"""The model registry."""

import re

import pytest

from pyweb.errors import UnknownModelError
from pyweb.storage import files, registry


def test_default_is_known_by_any_case():
    assert registry.find(registry.DEFAULT.upper()).licence == "Apache-2.0"


def test_unknown_name_has_a_remedy():
    with pytest.raises(UnknownModelError, match="pyweb models"):
        registry.find("nobody")


@pytest.mark.parametrize("model", registry.MODELS.values(), ids=lambda model: model.name)
def test_entries_are_complete(model):
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in (model.sha256, *model.parts))
    assert len(model.parts) == -(-model.size // registry.PART)
    assert "package" not in model.public()


def test_embedded_file_has_the_registry_digests(embedded_model):
    model = registry.find(registry.DEFAULT)
    assert files.part_hashes(embedded_model, registry.PART) == list(model.parts)
    assert files.sha256_file(embedded_model) == model.sha256
