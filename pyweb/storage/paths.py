"""The folders below the cache. CPython only."""

import os
from pathlib import Path

__all__ = ["cache", "downloads", "models", "profile", "runtimes", "wheels"]


def cache() -> Path:
    """Root of all that pyweb keeps: `~/.cache/pyweb`, or the environment variable PYWEB_CACHE."""
    return Path(os.environ.get("PYWEB_CACHE") or Path.home() / ".cache" / "pyweb")


def models() -> Path:
    """Model files, by the names of the registry."""
    return cache() / "models"


def runtimes() -> Path:
    """One complete folder of runtime parts for every set of pinned versions."""
    return cache() / "runtime"


def downloads() -> Path:
    """Parts as they came from their registries, so that a change of pins fetches only what changed."""
    return cache() / "downloads"


def wheels() -> Path:
    """The pyweb wheels built for the browser."""
    return cache() / "wheels"


def profile() -> Path:
    """The browser profile that lasts between runs."""
    return cache() / "profile"
