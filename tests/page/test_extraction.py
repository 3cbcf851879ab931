from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyweb.errors import EmptyPageError, PywebError
from pyweb.page import Block, Page, extract

PAGES = Path(__file__).parent / "pages"

# Page -> strings that must appear, strings that must not.
EXPECTED = {
    "article": (
        ["four metres nearer to the cliff", "What it cost", "There was one", "chosen the next spot"],
        ["Coast Letters home", "My uncle drove the cart", "recycled paper"],
    ),
    "forum": (
        ["climbs to 600 degrees", "old_ember", "mine read 14 ohms", "behind the third brick", "as a pair"],
        ["session-token", "Sign in", "Newest threads", "Board index", "Best wheel", "Draft of", "cookies"],
    ),
    "listing": (
        [
            "Five lanterns in stock",
            *("Pilot lantern", "£48.00", "£31.50", "frosted globe", "£27.25"),
            "Sold out",
        ],
        [
            "Wicks and oil",
            "Price ascending",
            "Next page",
            "ten per cent",
            "Hidden tracking",
            "Whitby",
            "json-",
        ],
    ),
    "product": (
        ["74.90 EUR", "In stock", "rice doesn't scorch", "Piezo igniter", "Weight | 86 g", "wet week in the"],
        ["Trailhead home", "All stoves", "sku-from-json", "Titanium", "delivery country", "thirty days"],
    ),
    "documentation": (
        [
            "return read_gauge()  # metres",
            "never overlap",
            "jitter: Largest",
            "JobClash | two jobs",
            "daily limit",
        ],
        ["Installing", "API index", "Search the docs", "DocPress", "¶"],
    ),
    "search": (
        ["Der Bohlenweg", "sechs Kilometern", "torf.example", "Führungen am Sonntag", "Linie 43"],
        ["Kartenansicht", "Suchen", "Gummistiefel", "Nächste Seite", "JavaScript einschalten", "Impressum"],
    ),
    "table": (
        ["Weekdays", "From | Departs | Arrives", "Holm | 08:00 | 08:45", "1 January", "Bicycles travel free"],
        ["Draft row", "script-departures"],
    ),
    "code": (
        ['    """Fixed-size ring of bytes."""\n\n    def __init__', "if value < 0 or value > 255:"],
        ["Explore repositories", "Template text", "all systems normal"],
    ),
    "nearly_empty": (["Le musée est fermé jusqu'au 12 mai."], ["analytics-ping"]),
}


def page(name: str) -> Page:
    return extract((PAGES / f"{name}.html").read_bytes(), "https://example.org/")


def kinds(name: str) -> list[str]:
    return [block.kind for block in page(name).blocks]


@pytest.mark.parametrize("name", EXPECTED)
def test_text_has_the_content_and_not_the_furniture(name):
    wanted, unwanted = EXPECTED[name]
    text = page(name).text
    assert [string for string in wanted if string not in text] == []
    assert [string for string in unwanted if string in text] == []


def test_order_is_the_document_s():
    text = page("forum").text
    places = [text.index(s) for s in ("marta_clay", "old_ember", "third brick", "glazehound", "upper 14.1")]
    assert places == sorted(places)


def test_blocks_are_typed():
    assert kinds("documentation") == [
        *("heading", "paragraph", "code", "paragraph", "paragraph", "heading", "list", "heading", "table"),
        *("heading", "list", "paragraph"),
    ]
    assert "quote" in kinds("article")
    assert "quote" in kinds("forum")


def test_levels_are_those_of_the_headings():
    levels = [(block.text, block.level) for block in page("documentation").blocks if block.kind == "heading"]
    assert levels == [("Scheduling jobs", 1), ("Parameters", 2), ("Errors", 2), ("Retrying", 3)]


def test_code_is_verbatim():
    code = next(block.text for block in page("code").blocks if block.kind == "code")
    assert code.startswith("class Ring:\n    ")
    assert code.endswith("        self.head += 1")


@pytest.mark.parametrize(
    ("name", "title", "language"),
    [
        ("article", "The lighthouse that moved", "en"),
        ("listing", "Lanterns", "en-GB"),
        ("product", "Fernway 2 hiking stove", "en"),
        ("search", "moor wandern - Findling Suche", "de"),
        ("table", "Ferry timetable", ""),
    ],
)
def test_title_and_language(name, title, language):
    assert (page(name).title, page(name).language) == (title, language)


def test_url_is_kept():
    assert page("table").url == "https://example.org/"


def test_text_joins_blocks_by_blank_lines():
    blocks = (Block("heading", "One", 1), Block("list", "- a\n- b"))
    assert Page("", blocks).text == "One\n\n- a\n- b"


def test_plain_pre_in_an_article_is_code():
    prose = "<p>" + "A sentence that makes the page an article of some length. " * 6 + "</p>"
    html = f'<html><head><meta property="og:type" content="article"></head><body><article>{prose}<pre>x = 1\n'
    html += f"  y = 2</pre>{prose}</article></body></html>"
    assert Block("code", "x = 1\n  y = 2") in extract(html).blocks


def test_fragment_and_plain_text_are_pages_too():
    assert extract("<p>Only this.</p>").text == "Only this."
    assert extract("Nothing but words").text == "Nothing but words"


def test_page_of_navigation_only_still_has_text():
    assert "Harbour" in extract("<body><nav><ul><li><a href=/h>Harbour</a></li></ul></nav></body>").text


@pytest.mark.parametrize(
    "html",
    [
        "",
        b"",
        "   \n",
        "<!DOCTYPE html>",
        "<html><head><title>Loading</title></head><body><div id=app></div></body></html>",
        "<script>var text = 'not text';</script>",
        "<body><p hidden>secret</p><template><p>x</p></template></body>",
        "\x00\x01",
        "<!-- only a comment -->",
    ],
)
def test_page_without_text_is_an_error(html):
    with pytest.raises(EmptyPageError):
        extract(html)


MARKUP = st.lists(
    st.one_of(
        st.sampled_from(
            "<p> </p> <div> <table> <tr> <td> </table> <ul> <li> <pre> <h2> <article> <main> <dd> <dl> <br> "
            "<code> <blockquote> <html/> <title> <body> <script> </script> <!DOCTYPE <!-- --> <![CDATA[ "
            "<svg> <a".split()
        ),
        st.text(max_size=20),
    ),
    max_size=30,
).map("".join)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.one_of(st.text(), st.binary(), MARKUP, MARKUP.map(lambda s: s.encode("utf-8", "replace"))))
def test_any_input_gives_a_page_or_a_typed_error(html):
    try:
        result = extract(html)
    except PywebError:
        return
    assert result.text.strip()


@pytest.mark.parametrize("tag", ["div", "span", "ul><li", "table><tr><td", "blockquote", "b"])
def test_deep_nesting_is_survived(tag):
    try:
        extract(f"<body>before{f'<{tag}>' * 5000}inside")
    except PywebError:
        pytest.fail("there is text")
