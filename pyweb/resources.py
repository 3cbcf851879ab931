"""Finds the project's own data folders (shaders, js_bridge, site) in a checkout and in a wheel."""

from pathlib import Path

from pyweb.errors import SetupError

__all__ = ["FOLDERS", "compiled", "folder", "text"]

FOLDERS = ("shaders", "js_bridge", "site")

_PACKAGE = Path(__file__).resolve().parent


def folder(name: str) -> Path:
    """Path of one of `FOLDERS`: in the wheel's `pyweb/_data`, else beside the package in a checkout.

    Raises:
        SetupError: neither place has it.
    """
    for place in (_PACKAGE / "_data" / name, _PACKAGE.parent / name):
        if place.is_dir():
            return place
    raise SetupError(f"The folder {name!r} of pyweb is missing.", "Install pyweb again.")


def compiled(name: str) -> Path | None:
    """Path of a folder that only the browser's wheel has, where there is one."""
    place = _PACKAGE / "_data" / name
    return place if place.is_dir() else None


def text(name: str, file: str) -> str:
    """Content of a text file below one of `FOLDERS`."""
    return (folder(name) / file).read_text(encoding="utf-8")
