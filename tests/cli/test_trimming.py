"""What the browser's archives leave out, and that nothing else goes."""

import zipfile

import pytest

from pyweb.cli import parts, runtime, trimming
from pyweb.page.languages import LANGUAGES


def test_patterns_for_every_archive():
    names = {trimming.STDLIB, *parts.LOCKED_WHEELS, *(wheel.name for wheel in parts.PYPI_WHEELS)}
    assert set(trimming.LEFT_OUT) == names


@pytest.mark.parametrize(
    "name, member, stays",
    [
        ("markupsafe", "markupsafe/_native.py", True),
        ("markupsafe", "markupsafe/_speedups.cpython-312-x86_64-linux-gnu.so", False),
        ("numpy", "numpy/_core/_multiarray_umath.cpython-314-wasm32-emscripten.so", True),
        ("numpy", "numpy/random/mtrand.cpython-314-wasm32-emscripten.so", False),
        ("numpy", "numpy-2.4.3.dist-info/licenses/LICENSE.txt", True),
        ("justext", "justext/stoplists/English.txt", True),
        ("justext", "justext/stoplists/Malayalam.txt", False),
        (trimming.STDLIB, "encodings/cp866.py", True),
        (trimming.STDLIB, "unittest/mock.py", False),
    ],
)
def test_members(tmp_path, name, member, stays):
    with zipfile.ZipFile(tmp_path / "old.zip", "w") as archive:
        archive.writestr(member, "x")
        archive.writestr(f"{name}/__init__.py", "")
    new = trimming.trim(name, tmp_path / "old.zip", tmp_path / "new.zip")
    assert zipfile.ZipFile(new).namelist() == [member] * stays + [f"{name}/__init__.py"]


def test_every_language_has_its_list():
    (wheel,) = runtime.runtime_folder().glob("justext-*.whl")
    lists = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("justext/stoplists/")}
    assert lists == {f"justext/stoplists/{language}.txt" for language in LANGUAGES} == trimming.KEPT
