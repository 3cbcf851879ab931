"""Prompts: tokenizer, chat template, the page as material, and the reply's text as it streams."""

from pyweb.prompt.backends import BrowserBackend, open_browser_tokenizer
from pyweb.prompt.ids import prompt_ids
from pyweb.prompt.messages import page_messages, text_messages
from pyweb.prompt.splitting import SPLITTINGS
from pyweb.prompt.stream import TextStream
from pyweb.prompt.template import ChatTemplate
from pyweb.prompt.tokenizer import Backend, Tokenizer
from pyweb.prompt.vocabulary import bos_id, named_specials, special_ids, stop_ids, tokenizer_json

__all__ = [
    "SPLITTINGS",
    "Backend",
    "BrowserBackend",
    "ChatTemplate",
    "TextStream",
    "Tokenizer",
    "bos_id",
    "named_specials",
    "open_browser_tokenizer",
    "page_messages",
    "prompt_ids",
    "special_ids",
    "stop_ids",
    "text_messages",
    "tokenizer_json",
]
