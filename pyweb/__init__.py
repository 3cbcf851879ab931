"""pyweb: a language model on the visitor's own GPU, orchestrated from Python in the page."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyweb.api.standalone import load, page_of

__all__ = ["__version__", "load", "page_of"]

__version__ = "0.1.0"


def __getattr__(name: str):
    """`load` and `page_of`, imported when they are first used: most programs import rooms of the package."""
    if name not in ("load", "page_of"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("pyweb.api.standalone"), name)


def __dir__() -> list[str]:
    return __all__
