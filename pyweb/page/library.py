"""Imports trafilatura, with stand-ins for the dependencies that extraction never calls.

trafilatura 2.3.1 imports its crawler, its date finder and its URL tools together
with the extractor. In Pyodide these would cost 11 MB of wheels (babel, dateparser,
tld, ...) and sockets that aren't there, and none of them runs when a document is
extracted without URL and without metadata, which is how `bare_body` calls it.
"""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

from lxml.etree import LxmlError, _Element
from lxml.html import HtmlElement, HTMLParser, document_fromstring

from pyweb.page.languages import LANGUAGES

__all__ = ["bare_body", "parse"]

# Module -> names that are imported from it. Only modules that can't be imported are
# stood in for: the real ones aren't called either, so results are equal, and a host
# process keeps a trafilatura that can still download.
STAND_INS = {
    "courlan": (
        "extract_domain",
        "fix_relative_urls",
        "get_base_url",
        "is_valid_url",
        "normalize_url",
        "validate_url",
    ),
    "htmldate": ("find_date",),
    "urllib3": (),
    "urllib3.response": ("HTTPResponse",),
    "lxml.html.clean": ("Cleaner",),
    "trafilatura.downloads": ("fetch_response", "fetch_url"),
}
# trafilatura.downloads can't be probed before trafilatura itself: it goes with these.
_DOWNLOAD_NEEDS = ("courlan", "urllib3", "certifi")


def _importable(name: str) -> bool:
    try:
        importlib.import_module(name)
    except ImportError:
        return False
    return True


def _missing() -> list[str]:
    missing = [name for name in STAND_INS if name != "trafilatura.downloads" and not _importable(name)]
    if not all(map(_importable, _DOWNLOAD_NEEDS)):
        missing.append("trafilatura.downloads")
    return missing


def _stand_in(name: str) -> ModuleType:
    module = ModuleType(name, "Stands in for a module that extraction never calls.")
    for attribute in STAND_INS[name]:
        # A class, since HTTPResponse is used in isinstance() and in a type union.
        setattr(module, attribute, type(attribute, (), {}))
    return module


@contextmanager
def _stand_ins() -> Iterator[None]:
    """Puts stand-ins into `sys.modules` for one import, and takes them out again."""
    missing = _missing()
    sys.modules.update({name: _stand_in(name) for name in missing})
    try:
        yield
    finally:
        for name in missing:
            sys.modules.pop(name, None)


def _load() -> tuple[ModuleType, ModuleType]:
    if "trafilatura" not in sys.modules:
        with _stand_ins():
            importlib.import_module("trafilatura")
    # The browser's jusText has no other lists; so the same page gives the same blocks everywhere.
    sys.modules["trafilatura.external"].get_stoplists = lambda: LANGUAGES
    return sys.modules["trafilatura.core"], sys.modules["trafilatura.utils"]


_core, _utils = _load()


def bare_body(tree: HtmlElement) -> _Element | None:
    """Main content of a parsed page as trafilatura's TEI-like tree, or None where it finds none.

    Precision first: text that doesn't belong misleads a small model more than a missing
    side note does. `tree` is the document's root and isn't modified.
    """
    try:
        document = _core.bare_extraction(tree, favor_precision=True, include_comments=False)
    except Exception:  # arbitrary pages reach the library's corners; the caller's own walk takes over
        return None
    return None if document is None else document.body


def parse(html: str) -> HtmlElement:
    """Document element of any text; one without content where there is nothing to parse."""
    # Lone surrogates can't be encoded; libxml2 reads bytes with a stated encoding best.
    repaired = _utils.repair_faulty_html(html, html[:50].lower()).encode("utf-8", "replace")
    parser = HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True)
    try:
        return document_fromstring(repaired, parser=parser)
    except LxmlError:
        return document_fromstring("<html><body></body></html>")
