"""One command at a time uses the lasting profile."""

import pytest

from pyweb.cli.profile import browser_profile


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("PYWEB_CACHE", str(tmp_path))
    return tmp_path


def test_lasting_profile_stays(cache):
    with browser_profile(fresh=False) as profile:
        (profile / "kept").touch()
    with browser_profile(fresh=False) as again:
        assert (again / "kept").exists()


def test_leftovers_of_a_killed_browser_go(cache):
    (cache / "profile").mkdir()
    (cache / "profile" / "SingletonLock").symlink_to("other-host-1")
    with browser_profile(fresh=False) as profile:
        assert not list(profile.glob("Singleton*"))


def test_fresh_profile_is_removed(cache):
    with browser_profile(fresh=True) as profile:
        assert profile.is_dir()
    assert not profile.exists()
    assert not (cache / "profile").exists()


def test_profile_in_use_is_waited_for_then_replaced(capsys):
    with browser_profile(fresh=False) as first, browser_profile(fresh=False, wait=0.3) as second:
        assert second != first
    assert not second.exists()
    said = capsys.readouterr().err
    assert "waiting" in said and "temporary" in said
    with browser_profile(fresh=False, wait=0) as third:
        assert third == first
