"""`pyweb extract`: a page's title, text and blocks, without a browser."""

import json
from argparse import Namespace
from dataclasses import asdict
from pathlib import Path

from pyweb.cli.snapshot import is_url, read_page
from pyweb.errors import UsageError

__all__ = ["extract"]


def extract(options: Namespace) -> None:
    """Prints what extraction finds in a local page."""
    if is_url(options.page):
        raise UsageError("`pyweb extract` reads files.", "Save the page first; `pyweb ask` opens URLs.")
    # Imported here: the other commands start faster without lxml.
    from pyweb.page import extract as extract_page

    page = extract_page(read_page(Path(options.page).expanduser()), url=options.url)
    if options.json:
        blocks = [asdict(block) for block in page.blocks]
        content = {"title": page.title, "text": page.text, "blocks": blocks}
        print(json.dumps(content | {"url": page.url, "language": page.language}, ensure_ascii=False))
    else:
        print(f"{page.title}\n\n{page.text}" if page.title else page.text)
