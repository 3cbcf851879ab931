"""The turns of a conversation about a page, a text or nothing, and the prompt of the next one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pyweb.errors import EmptyPageError, PromptTooLongError, UsageError
from pyweb.prompt import ChatTemplate, Tokenizer, page_text, prompt_ids, question_message, system_message

__all__ = ["Conversation", "Prompt", "Turn"]

_SHARE_OF_MORE = 4  # a follow-up adds at most this part of the page budget
_SHARE_OF_SELECTION = 2

CountTokens = Callable[[str], int]


@dataclass(frozen=True)
class Turn:
    """A question with what it added of the page (`blocks`, as text in `more`), and the reply's ids as generated."""

    question: str
    more: str = ""
    selection: str = ""
    blocks: tuple = ()
    reply: tuple[int, ...] = ()


@dataclass(frozen=True)
class Prompt:
    """A prompt's ids and what they hold: the material behind the first question, the turns kept, the new one."""

    ids: list[int]
    material: str
    blocks: tuple
    turns: tuple[Turn, ...]
    turn: Turn
    dropped: int


@dataclass
class Conversation:
    """Builds prompts that begin like the one before, so that the KV cache serves again.

    The material stands before the first question and stays there. A follow-up about a page too long to be shown whole
    brings the blocks that fit its question, if they weren't shown. Where the context gets too short the oldest turns
    are left out, never the material or the system text.

    Args:
        page: a `pyweb.page.Page`.
        text: in place of a page.
        selection: what the reader has selected on the page, for the next question.
        system: a system text of the page's author.
    """

    tokenizer: Tokenizer
    template: ChatTemplate
    page: object = None
    text: str = ""
    selection: str = ""
    system: str = ""
    turns: tuple[Turn, ...] = ()
    _material: str | None = field(default=None, init=False)
    _blocks: tuple = field(default=(), init=False)

    def prompt(self, question: str, context: int, reserve: int, budget: int) -> Prompt:
        """The prompt of the next question.

        Args:
            context: tokens of prompt and reply together.
            reserve: tokens that turns are left out for.
            budget: tokens of page text.

        Raises:
            UsageError: the question is empty.
            EmptyPageError: the page has no text.
            PromptTooLongError: no reply fits behind it, even without earlier turns.
            TemplateError: the template refuses the messages.
        """
        if not question.strip():
            raise UsageError("The question is empty.", "Ask something.")
        material, blocks, more = self._shown(question, budget)
        turn = Turn(question, page_text("", more), self._selected(budget), more)
        turns = self.turns
        while True:
            ids = prompt_ids(self.tokenizer, self.template, self._messages(material, (*turns, turn)))
            if not turns or len(ids) + reserve <= context:
                break
            turns = turns[1:]
        if len(ids) >= context:
            raise PromptTooLongError(f"The prompt has {len(ids)} tokens, the context holds {context}.")
        return Prompt(ids, material, blocks, turns, turn, len(self.turns) - len(turns))

    def add(self, prompt: Prompt, reply: Sequence[int]) -> None:
        """Takes a question and its reply into the history."""
        turn = Turn(**{**vars(prompt.turn), "reply": tuple(reply)})
        self.turns = (*prompt.turns, turn)
        self._material, self._blocks = prompt.material, prompt.blocks
        self.selection = ""

    def _shown(self, question: str, budget: int) -> tuple[str, tuple, tuple]:
        """Material, its blocks, and the blocks that the question adds."""
        if self.page is None:
            return self.text, (), ()
        if self._material is None:
            blocks = self._select(question, budget)
            if not blocks:
                raise EmptyPageError("The page has no text that fits the budget.")
            return page_text(self.page.title, blocks), blocks, ()
        shown = {*self._blocks, *(block for turn in self.turns for block in turn.blocks)}
        if shown.issuperset(self.page.blocks):
            return self._material, self._blocks, ()
        chosen = self._select(question, budget // _SHARE_OF_MORE)
        return self._material, self._blocks, _without(chosen, shown)

    def _select(self, question: str, budget: int) -> tuple:
        from pyweb.page import select  # lxml and trafilatura load in the background

        return tuple(select(self.page, question, budget, self._count))

    def _count(self, text: str) -> int:
        return len(self.tokenizer.encode_untrusted(text))

    def _selected(self, budget: int) -> str:
        """The reader's selection, cut to its share of the budget; four characters are about a token."""
        text = self.selection.strip()
        while text and self._count(text) > budget // _SHARE_OF_SELECTION:
            text = text[: len(text) * 3 // 4]
        return text

    def _messages(self, material: str, turns: Sequence[Turn]) -> list[dict]:
        messages: list[dict] = system_message(self.system, material)
        for number, turn in enumerate(turns):
            text = "" if number else material
            messages.append(question_message(turn.question, text, turn.more, turn.selection))
            if number < len(turns) - 1:
                messages.append({"role": "assistant", "ids": turn.reply})
        return messages


def _without(blocks: Sequence, shown: set) -> tuple:
    """Blocks that weren't shown, with headings only where text of theirs is left."""
    out: list = []
    for block in blocks:
        if block in shown and block.kind != "heading":
            continue
        while block.kind == "heading" and out and out[-1].kind == "heading" and out[-1].level >= block.level:
            out.pop()
        out.append(block)
    while out and out[-1].kind == "heading":
        out.pop()
    return tuple(out)
