"""From messages to the ids of a prompt, in which only the template writes special tokens."""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from pyweb.prompt.template import ChatTemplate
from pyweb.prompt.tokenizer import Tokenizer

__all__ = ["prompt_ids"]


def prompt_ids(tokenizer: Tokenizer, template: ChatTemplate, messages: Sequence[Mapping[str, object]]) -> list[int]:
    """The prompt of `messages`, up to where the reply begins.

    The template sees the contents as they are, but for a mark inside whatever reads as a special token.
    The rendered text is split at the special tokens, which now are those that the template wrote; the
    rest is encoded, without the marks, by the tokenizer that knows no special tokens. So the ids are
    those of the whole text, and special-token text in a content stays text.

    A message with `ids` in place of `content` is a reply of the model: the template sees one character, for which
    the ids stand in the prompt. Its text encoded again could give other ids, and then the KV cache would be useless.

    Raises:
        TemplateError: the template refuses the messages.
    """
    contents = [message["content"] for message in messages if "ids" not in message]
    mark, *places = _unused_characters(contents, 1 + len(messages) - len(contents))
    known = {text: [number] for text, number in tokenizer.special_ids.items()}
    shown, left = [], iter(places)
    for message in messages:
        if "ids" in message:
            place = next(left)
            known[place] = message["ids"]
            shown.append({"role": message["role"], "content": place})
        else:
            shown.append({**message, "content": _guard(message["content"], tokenizer, mark)})
    text = template.render(shown)
    ids, end = [], 0
    for found in re.finditer("|".join(_patterns(tokenizer, places)) or r"(?!)", text):
        ids += _plain(tokenizer, text[end : found.start()], mark)
        ids += known[found.group()]
        end = found.end()
    return _with_bos(tokenizer, ids + _plain(tokenizer, text[end:], mark))


def _patterns(tokenizer: Tokenizer, places: Sequence[str]) -> list[str]:
    pattern = tokenizer.special_pattern
    return ([pattern.pattern] if pattern else []) + ([f"[{''.join(places)}]"] if places else [])


def _with_bos(tokenizer: Tokenizer, ids: list[int]) -> list[int]:
    """Begin with the model's first token, once: many templates write it themselves."""
    if tokenizer.bos_id is None or ids[:1] == [tokenizer.bos_id]:
        return ids
    return [tokenizer.bos_id, *ids]


def _plain(tokenizer: Tokenizer, text: str, mark: str) -> list[int]:
    text = text.replace(mark, "")
    return tokenizer.encode_untrusted(text) if text else []


def _unused_characters(contents: Iterable[str], count: int) -> list[str]:
    """Characters that none of the contents holds; private use, so that no filter of a template minds them."""
    used = set().union(*contents)
    return list(islice((chr(code) for code in range(0xF0000, 0x10FFFE) if chr(code) not in used), count))


def _guard(content: str, tokenizer: Tokenizer, mark: str) -> str:
    """Put the mark into all special-token text, and at the borders where those could complete some."""
    if tokenizer.special_pattern is None:
        return content
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
