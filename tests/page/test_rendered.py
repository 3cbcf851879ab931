import pytest

from pyweb.page.blocks import Block
from pyweb.page.library import parse
from pyweb.page.rendered import main_content, walk


def blocks(body: str) -> list[Block]:
    return walk(parse(f"<html><body>{body}</body></html>"))


def text(body: str) -> str:
    return "\n\n".join(block.text for block in blocks(body))


def test_inline_elements_run_together_and_blocks_do_not():
    assert text("<p>a<b>b</b> <i>c</i></p><div>d<div>e</div>f</div>") == "ab c\n\nd\n\ne\n\nf"


def test_br_is_a_line_break():
    assert text("<p>one<br>two<br><br> three</p>") == "one\ntwo\nthree"


def test_nested_list_is_indented():
    assert text("<ul><li>a<ul><li>b</li><li>c</li></ul></li><li><p>d</p><p>e</p></li></ul>") == (
        "- a\n  - b\n  - c\n- d e"
    )


def test_list_around_structure_is_a_container():
    found = blocks("<ul><li><h3>Name</h3><p>About</p></li></ul>")
    assert [block.kind for block in found] == ["heading", "paragraph"]


def test_definitions_follow_their_terms():
    assert text("<dl><dt>Size</dt><dd>12 : 4</dd><dd>more</dd></dl>") == "- Size: 12 : 4\n- more"


def test_table_cells_are_joined_by_bars():
    found = blocks("<table><caption>C</caption><tr><th>a<th>b<tr><td>1<br>2<td></table>")
    assert found == [Block("table", "C\na | b\n1 2 | ")]


def test_layout_table_is_a_container():
    assert text("<table><tr><td>left</td><td><h2>Head</h2></td></tr></table>") == "left\n\nHead"


def test_quote_keeps_its_paragraphs():
    assert blocks("<blockquote><p>One.</p><p>Two.</p></blockquote>") == [Block("quote", "One.\nTwo.")]


@pytest.mark.parametrize(
    "hidden",
    [
        "<p hidden>x</p>",
        "<p aria-hidden=true>x</p>",
        "<p style='color: red; DISPLAY : none'>x</p>",
        "<p style='visibility:hidden'>x</p>",
        "<dialog>x</dialog>",
        *(f"<{tag}>x</{tag}>" for tag in ("script", "style", "template", "noscript", "textarea", "button")),
        "<select><option>x</select>",
        "<input type=password value=x>",
    ],
)
def test_what_is_not_rendered_is_left_out(hidden):
    assert text(f"<p>seen {hidden}</p>tail") == "seen\n\ntail"


@pytest.mark.parametrize(
    "furniture",
    [
        "<nav>x</nav>",
        "<footer>x</footer>",
        "<header>x</header>",
        "<aside>x</aside>",
        "<div id=header>x</div>",
        "<div role=navigation>x</div>",
        "<div class='cookie-banner'>x</div>",
        "<form>x</form>",
    ],
)
def test_furniture_is_left_out(furniture):
    page = f"<p>{'The story. ' * 10}</p>{furniture}"
    assert "x" not in text(page)


@pytest.mark.parametrize(
    "content",
    [
        "<header><h1>x</h1></header>",
        "<article><header>x</header></article>",
        "<main><aside>x</aside></main>",
        "<div class=share><h1>x</h1></div>",
        f"<form>x {'long ' * 80}</form>",
        f"<div class=related>x {'long ' * 80}</div>",
    ],
)
def test_content_in_the_guise_of_furniture_is_kept(content):
    assert "x" in text(f"<p>The story.</p>{content}")


def test_main_element_is_preferred_unless_it_is_empty():
    around = "<p>Around it.</p>"
    full = parse(f"<body>{around}<main>{'Inside. ' * 30}</main></body>")
    empty = parse(f"<body>{around}<main>Inside.</main></body>")
    assert "Around" not in main_content(full)[0].text
    assert [block.text for block in main_content(empty)] == ["Around it.", "Inside."]
