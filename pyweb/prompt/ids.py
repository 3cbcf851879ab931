"""From messages to the ids of a prompt, in which only the template writes special tokens."""

import re
from collections.abc import Iterable, Mapping, Sequence

from pyweb.prompt.template import ChatTemplate
from pyweb.prompt.tokenizer import Tokenizer

__all__ = ["prompt_ids"]


def prompt_ids(
    tokenizer: Tokenizer, template: ChatTemplate, messages: Sequence[Mapping[str, str]]
) -> list[int]:
    """The prompt of `messages`, up to where the reply begins.

    The template sees the contents as they are, but for a mark inside whatever reads as a special token.
    The rendered text is split at the special tokens, which now are those that the template wrote; the
    rest is encoded, without the marks, by the tokenizer that knows no special tokens. So the ids are
    those of the whole text, and special-token text in a content stays text.

    Raises:
        TemplateError: the template refuses the messages.
    """
    pattern = tokenizer.special_pattern
    if pattern is None:
        return _with_bos(tokenizer, tokenizer.encode_untrusted(template.render(messages)))
    mark = _unused_character(message["content"] for message in messages)
    guarded = [{**message, "content": _guard(message["content"], tokenizer, mark)} for message in messages]
    text = template.render(guarded)
    ids, end = [], 0
    for special in pattern.finditer(text):
        ids += _plain(tokenizer, text[end : special.start()], mark)
        ids.append(tokenizer.special_ids[special.group()])
        end = special.end()
    return _with_bos(tokenizer, ids + _plain(tokenizer, text[end:], mark))


def _with_bos(tokenizer: Tokenizer, ids: list[int]) -> list[int]:
    """Begin with the model's first token, once: many templates write it themselves."""
    if tokenizer.bos_id is None or ids[:1] == [tokenizer.bos_id]:
        return ids
    return [tokenizer.bos_id, *ids]


def _plain(tokenizer: Tokenizer, text: str, mark: str) -> list[int]:
    text = text.replace(mark, "")
    return tokenizer.encode_untrusted(text) if text else []


def _unused_character(contents: Iterable[str]) -> str:
    """A character that none of the contents holds; private use, so that no filter of a template minds it."""
    used = set().union(*contents)
    return next(chr(code) for code in range(0xF0000, 0xFFFFE) if chr(code) not in used)


def _guard(content: str, tokenizer: Tokenizer, mark: str) -> str:
    """Put the mark into all special-token text, and at the borders where those could complete some."""
    inside = re.compile(f"(?=(?:{tokenizer.special_pattern.pattern}))(.)", re.DOTALL)
    content = inside.sub(lambda match: match.group() + mark, content)
    words = content.strip()
    if not words or not _could_join(words, tokenizer.special_ids):
        return content
    start = content.index(words)
    return content[:start] + mark + words + mark + content[start + len(words) :]


def _could_join(words: str, specials: Iterable[str]) -> bool:
    """Whether text around `words` could complete them to a special token."""
    return any(
        words.endswith(text[:cut]) or words.startswith(text[cut:]) or text[cut:].startswith(words)
        for text in specials
        for cut in range(1, len(text))
    )
