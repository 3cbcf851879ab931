"""Files are whole or not there."""

import hashlib
import io

import pytest

from pyweb.errors import IntegrityError, NetworkError
from pyweb.storage import files


def test_whole_file_appears_at_the_end(tmp_path):
    target = tmp_path / "folder" / "a.bin"
    with files.whole_file(target) as file:
        file.write(b"abc")
        assert not target.exists()
    assert target.read_bytes() == b"abc"
    assert list(target.parent.iterdir()) == [target]


def test_interrupted_file_leaves_nothing(tmp_path):
    with pytest.raises(KeyboardInterrupt), files.whole_file(tmp_path / "a.bin") as file:
        file.write(b"half")
        raise KeyboardInterrupt
    assert not list(tmp_path.iterdir())


def test_interrupted_folder_keeps_the_old_one(tmp_path):
    target = tmp_path / "parts"
    with files.partial_folder(target) as folder:
        (folder / "a").write_text("old")
    with pytest.raises(ValueError), files.partial_folder(target) as folder:
        (folder / "a").write_text("new")
        raise ValueError
    assert (target / "a").read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_copy_checks_the_digest_and_reports_bytes():
    data, target, seen = b"x" * 3_000_000, io.BytesIO(), []
    digest = hashlib.sha256(data).hexdigest()
    files.copy_stream(io.BytesIO(data), target, "x", len(data), digest, lambda *now: seen.append(now))
    assert target.getvalue() == data
    assert seen[-1] == (len(data), len(data))
    with pytest.raises(IntegrityError, match="x has the SHA-256"):
        files.copy_stream(io.BytesIO(data), io.BytesIO(), "x", len(data), "0" * 64)


def test_part_hashes(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"aaab")
    assert files.part_hashes(path, 3) == [hashlib.sha256(part).hexdigest() for part in (b"aaa", b"b")]


def test_download_of_nothing_is_a_network_error(tmp_path):
    with pytest.raises(NetworkError, match="could not be fetched"):
        files.download("http://127.0.0.1:9/none", tmp_path / "a", timeout=2)
    assert not list(tmp_path.iterdir())
