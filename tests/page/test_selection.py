import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyweb.page import Block, Page, select
from pyweb.page.blocks import KINDS
from pyweb.page.cutting import cut
from pyweb.page.words import is_general, terms


def count(text: str) -> int:
    return len(text.split())


def paragraph(text: str) -> Block:
    return Block("paragraph", text)


FILLER = "Plain words about nothing in particular stand here to take up room on the page."
GUIDE = Page(
    "Island guide",
    (
        Block("heading", "Island guide", 1),
        paragraph(f"The island lies far out. {FILLER}"),
        Block("heading", "Getting there", 2),
        paragraph(f"The ferry leaves at nine from the old pier. {FILLER}"),
        paragraph(f"Tickets are sold on board. {FILLER}"),
        Block("heading", "Eating", 2),
        paragraph(f"Two kitchens serve fish. {FILLER}"),
        Block("heading", "Puffins", 3),
        paragraph(f"They nest from May until July. {FILLER}"),
        Block("heading", "Sleeping", 2),
        paragraph(f"The hostel has eight beds. {FILLER}"),
    ),
)


def chosen(question: str, budget: int) -> list[str]:
    return [block.text.removesuffix(FILLER).strip() for block in select(GUIDE, question, budget, count)]


def test_everything_is_kept_where_it_fits():
    assert select(GUIDE, "ferry", 1000, count) == GUIDE.blocks


def test_best_block_comes_with_its_headings():
    assert chosen("When does the ferry leave?", 30) == [
        "Island guide",
        "Getting there",
        "The ferry leaves at nine from the old pier.",
    ]


def test_heading_speaks_for_its_section():
    assert chosen("Are there puffins?", 26) == [
        *("Island guide", "Eating", "Puffins"),
        "They nest from May until July.",
    ]


def test_neighbour_in_the_section_comes_next():
    assert "Tickets are sold on board." in chosen("When does the ferry leave?", 52)


def test_blocks_stay_in_document_order():
    found = chosen("hostel beds, fish kitchens", 60)
    assert found.index("Two kitchens serve fish.") < found.index("The hostel has eight beds.")


@pytest.mark.parametrize("question", ["Summarize", "What is this page about?", "", "TL;DR"])
def test_general_question_keeps_the_lead_and_openings(question):
    found = chosen(question, 48)
    assert "The island lies far out." in found
    assert "The ferry leaves at nine from the old pier." in found
    assert "Tickets are sold on board." not in found


def test_question_in_other_words_falls_back_to_the_lead():
    assert "The island lies far out." in chosen("Xylophone?", 48)


def test_large_block_is_cut_around_the_best_sentences():
    sentences = [f"Sentence number {i} says little." for i in range(40)]
    sentences[30] = "The treasure lies under the lighthouse."
    page = Page("", (paragraph(" ".join(sentences)),))
    (block,) = select(page, "Where is the treasure?", 20, count)
    assert "The treasure lies under the lighthouse." in block.text
    assert all(sentence in sentences for sentence in block.text.replace(". ", ".|").split("|"))
    assert count(block.text) <= 20


def test_large_block_keeps_its_beginning_for_a_general_question():
    text = " ".join(f"Sentence {i} of this article." for i in range(40))
    (block,) = select(Page("", (paragraph(text),)), "Summarize this article.", 20, count)
    assert block.text.startswith("Sentence 0 ")


def test_cut_table_keeps_its_first_row():
    rows = ["name | price", *(f"thing{i} | {i}" for i in range(30))]
    part = cut(Block("table", "\n".join(rows)), 12, lambda text: float("thing17" in text), count)
    assert part.text.splitlines()[0] == "name | price"
    assert "thing17 | 17" in part.text


def test_cut_list_keeps_whole_items():
    items = [f"- item {i} of the list" for i in range(30)]
    part = cut(Block("list", "\n".join(items)), 13, lambda text: float("item 9 " in text), count)
    assert set(part.text.splitlines()) <= set(items)
    assert "- item 9 of the list" in part.text


def test_text_without_borders_is_cut_too():
    part = cut(Block("code", "x" * 5000), 1000, lambda text: 0.0, len)
    assert 0 < len(part.text) <= 1000


def test_page_of_headings_only_is_chosen_from():
    page = Page("", tuple(Block("heading", f"Entry {i}", 2) for i in range(50)))
    assert Block("heading", "Entry 37", 2) in select(page, "entry 37", 8, count)


def test_no_budget_keeps_nothing():
    assert select(GUIDE, "ferry", 0, count) == ()


BLOCKS = st.builds(Block, st.sampled_from(KINDS), st.text(min_size=1), st.integers(0, 6))


@settings(max_examples=150, deadline=None)
@given(st.lists(BLOCKS, max_size=12), st.text(), st.integers(0, 60), st.sampled_from([1, 3, 4]))
def test_never_more_than_the_budget_and_in_order(blocks, question, budget, per_token):
    def floor(text: str) -> int:
        return len(text) // per_token

    found = select(Page("", tuple(blocks)), question, budget, floor)
    assert floor("\n\n".join(block.text for block in found)) <= budget
    kinds = iter(block.kind for block in blocks)
    assert all(block.kind in kinds for block in found)


def test_terms_meet_across_endings():
    assert terms("Running ferries") == terms("run ferry")
    assert terms("the of and") == []
    assert set(terms("東京の天気")) >= {"東京", "天気"}


@pytest.mark.parametrize("question", ["Who founded the town?", "Summarize the ferry timetable", "Puffins?"])
def test_specific_questions_are_not_general(question):
    assert not is_general(question)
