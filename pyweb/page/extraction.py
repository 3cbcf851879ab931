"""From the HTML of a page to its title and blocks."""

from pyweb.errors import EmptyPageError
from pyweb.page.blocks import Block, Page
from pyweb.page.charset import decode

__all__ = ["extract"]

# An article shorter than this is a teaser or a mistake, whatever the page declares.
_MIN_ARTICLE = 100
# On a page that doesn't declare itself an article, the article extractor must have found
# this share of the rendered text, else it took one post of a thread or one item of a list, ...
_MIN_COVERAGE = 0.8
# ... and what it found must read like an article: this much text, this share of it in
# paragraphs of this length. Else there are prices, parameters or rows that it leaves out.
_MIN_PROSE = 500
_PROSE_SHARE = 0.7
_LONG_PARAGRAPH = 120


def _length(blocks: list[Block]) -> int:
    return sum(len(block.text) for block in blocks)


def _reads_like_article(found: list[Block], whole: list[Block]) -> bool:
    length = _length(found)
    prose = _length([b for b in found if b.kind in ("paragraph", "quote") and len(b.text) >= _LONG_PARAGRAPH])
    return prose >= max(_MIN_PROSE, _PROSE_SHARE * length) and length >= _MIN_COVERAGE * _length(whole)


def _blocks(html: str) -> tuple[list[Block], str, str]:
    # Here and not above: lxml and trafilatura arrive in the browser while weights
    # stream, and the first page is what needs them.
    from pyweb.page import article, metadata, rendered
    from pyweb.page.library import parse

    tree = parse(html)
    about = metadata.title(tree), metadata.language(tree)
    whole = rendered.main_content(tree)
    found = article.article_blocks(tree)
    declared = metadata.is_article(tree) and _length(found) >= _MIN_ARTICLE
    chosen = found if declared or _reads_like_article(found, whole) else whole
    return chosen or found, *about


def extract(html: str | bytes, url: str = "") -> Page:
    """Title and typed blocks of a page, in document order.

    The article where the page is one, else everything a browser would show but for
    navigation, footers and the like.

    Args:
        html: a whole document; bytes are decoded as their own marks tell.
        url: kept in the page; nothing is fetched.

    Raises:
        EmptyPageError: there is no text.
    """
    text = decode(html) if isinstance(html, bytes) else html
    blocks, title, language = _blocks(text)
    if not blocks:
        raise EmptyPageError("The page has no text.")
    return Page(title, tuple(blocks), url, language)
