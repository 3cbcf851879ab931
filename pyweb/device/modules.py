"""The bridge's own JavaScript modules out of the wheel, for a Pyodide that no page client of ours started.

A wheel's files have no URL. Each module becomes a blob whose relative imports name the blobs of the modules that it
needs, so these are made first.
"""

import re
from collections.abc import Callable, Mapping

from pyweb import resources
from pyweb.errors import SetupError

__all__ = ["blob_url", "import_module", "import_url", "linked", "needs"]

_IMPORT = re.compile(r"""(\bfrom\s*|\bimport\s*\(?\s*)(["'])\./([\w.-]+\.js)\2""")

_modules: dict[str, object] = {}
_urls: dict[str, str] = {}


def needs(source: str) -> list[str]:
    """Names of the modules beside it that a module imports."""
    return list(dict.fromkeys(match[3] for match in _IMPORT.finditer(source)))


def linked(name: str, read: Callable[[str], str], urls: dict[str, str], make_url: Callable[[str], str]) -> str:
    """URL of a module and, in `urls`, of all that it needs.

    Args:
        name: of the module, such as "gpu.js".
        read: source of a module.
        urls: those made so far, by name; what is in it isn't made again.
        make_url: publishes a source.

    Raises:
        SetupError: modules import each other in a circle, which blobs can't.
    """
    return _linked(name, read, urls, make_url, ())


def _linked(name: str, read, urls: dict[str, str], make_url, above: tuple[str, ...]) -> str:
    if name in above:
        raise SetupError(f"The modules {' and '.join(above)} import each other.", "Install another pyweb.")
    if name not in urls:
        source = read(name)
        found = {other: _linked(other, read, urls, make_url, (*above, name)) for other in needs(source)}
        urls[name] = make_url(_rewritten(source, found))
    return urls[name]


def _rewritten(source: str, urls: Mapping[str, str]) -> str:
    return _IMPORT.sub(lambda match: f"{match[1]}{match[2]}{urls[match[3]]}{match[2]}", source)


def blob_url(source: str | bytes) -> str:
    """URL of a JavaScript text, for as long as the page or worker lives."""
    from js import URL, Blob, Object  # exist in a browser only
    from pyodide.ffi import to_js

    options = to_js({"type": "text/javascript"}, dict_converter=Object.fromEntries)
    return URL.createObjectURL(Blob.new(to_js([source]), options))


async def import_url(url: str):
    """The JavaScript module at a URL."""
    from pyodide.code import run_js

    return await run_js("(url) => import(url)")(url)


async def import_module(name: str):
    """A module of `js_bridge/`, such as "gpu.js"; the same object every time."""
    if name not in _modules:
        url = linked(name, lambda file: resources.text("js_bridge", file), _urls, blob_url)
        _modules[name] = await import_url(url)
    return _modules[name]
