"""The wheel for the browser."""

import base64
import csv
import hashlib
import io
import zipfile

import pytest

import pyweb
from pyweb import resources
from pyweb.storage import wheel


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("PYWEB_CACHE", str(tmp_path))
    return tmp_path


def test_carries_the_rooms_shaders_and_bridge_but_no_command_line(cache):
    path = wheel.make_wheel()
    assert path.name == f"pyweb-{pyweb.__version__}-py3-none-any.whl"
    names = set(zipfile.ZipFile(path).namelist())
    assert {"pyweb/__init__.py", "pyweb/errors.py", "pyweb/api/service.py"} <= names
    assert not [name for name in names if name.startswith("pyweb/cli/") or name.endswith(".pyc")]
    shaders = {path.name for path in resources.folder("shaders").glob("*.wgsl")}
    assert shaders == {name.rsplit("/", 1)[1] for name in names if name.count("/") == 3 and ".wgsl" in name}
    bridge = {f"pyweb/_data/js_bridge/{path.name}" for path in resources.folder("js_bridge").glob("*.js")}
    assert bridge == {name for name in names if "/js_bridge/" in name}


def test_record_is_right(cache):
    archive = zipfile.ZipFile(wheel.make_wheel())
    record = f"pyweb-{pyweb.__version__}.dist-info/RECORD"
    rows = list(csv.reader(io.StringIO(archive.read(record).decode())))
    assert {row[0] for row in rows} == set(archive.namelist())
    for name, digest, size in rows:
        if name != record:
            data = archive.read(name)
            found = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            assert (digest, size) == (f"sha256={found}", str(len(data)))


def test_is_built_again_only_when_a_file_changed(cache, monkeypatch):
    first = wheel.make_wheel()
    made = first.stat().st_mtime_ns
    assert wheel.make_wheel() == first
    assert first.stat().st_mtime_ns == made
    members = wheel.wheel_members()
    monkeypatch.setattr(wheel, "wheel_members", lambda: members | {"pyweb/new.py": b""})
    assert wheel.make_wheel() != first
