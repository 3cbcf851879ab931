"""Prompts: tokenizer, chat template, the page as material, and the reply's text as it streams."""

from pyweb.prompt.backends import BrowserBackend, open_browser_tokenizer
from pyweb.prompt.ids import prompt_ids
from pyweb.prompt.messages import page_text, question_message, system_message
from pyweb.prompt.splitting import SPLITTINGS
from pyweb.prompt.stops import StopStream
from pyweb.prompt.stream import TextStream
from pyweb.prompt.template import ChatTemplate
from pyweb.prompt.tokenizer import Backend, Tokenizer
from pyweb.prompt.tokenizer_file import vocabulary_of_file
from pyweb.prompt.vocabulary import (
    Vocabulary,
    bos_id,
    named_specials,
    special_ids,
    stop_ids,
    tokenizer_json,
    vocabulary,
)

__all__ = [
    "SPLITTINGS",
    "Backend",
    "BrowserBackend",
    "ChatTemplate",
    "StopStream",
    "TextStream",
    "Tokenizer",
    "Vocabulary",
    "bos_id",
    "named_specials",
    "open_browser_tokenizer",
    "page_text",
    "prompt_ids",
    "question_message",
    "special_ids",
    "stop_ids",
    "system_message",
    "tokenizer_json",
    "vocabulary",
    "vocabulary_of_file",
]
