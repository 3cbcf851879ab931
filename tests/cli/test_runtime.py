"""Pins and the parts made from them."""

import json
import re
import zipfile

from pyweb.cli import parts, runtime


def test_pins_are_digests_and_name_their_folder(monkeypatch):
    pinned = [*parts.NPM_PACKAGES, *parts.PYPI_WHEELS, parts.CARRIER]
    assert all(re.fullmatch("[0-9a-f]{64}", part.sha256) for part in pinned)
    before = parts.version()
    monkeypatch.setattr(parts, "PYPI_WHEELS", parts.PYPI_WHEELS[1:])
    assert parts.version() != before


def test_runtime_is_precompiled_and_complete():
    folder = runtime.runtime_folder()
    stdlib = zipfile.ZipFile(folder / "python_stdlib.zip").namelist()
    assert "json/__init__.pyc" in stdlib and "json/__init__.py" not in stdlib
    lock = json.loads((folder / runtime.LOCK).read_text())
    assert set(lock["packages"]) == {*parts.LOCKED_WHEELS, *(wheel.name for wheel in parts.PYPI_WHEELS)}
    assert (
        "markupsafe/_native.pyc" in zipfile.ZipFile(folder / "markupsafe-3.0.3-py3-none-any.whl").namelist()
    )
