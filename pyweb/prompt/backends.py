"""The tokenizer of a browser: Hugging Face's `tokenizers` as wasm, behind `js_bridge/tokenizer.js`."""

import json
from collections.abc import Awaitable, Callable, Sequence

from pyweb.errors import ModelFileError
from pyweb.prompt.tokenizer import Tokenizer
from pyweb.prompt.vocabulary import Vocabulary

__all__ = ["BrowserBackend", "open_browser_tokenizer"]


class BrowserBackend:
    """A tokenizer that `openTokenizer` of `js_bridge/tokenizer.js` made."""

    def __init__(self, js_object):
        self._js = js_object

    def encode(self, text: str) -> list[int]:
        return self._js.encode(text).to_py().tolist()

    def decode(self, ids: Sequence[int]) -> str:
        from pyodide.ffi import to_js  # exists in a browser only

        return self._js.decode(to_js(list(ids)))

    def close(self):
        self._js.close()


async def open_browser_tokenizer(
    vocabulary: Vocabulary, open_backend: Callable[[str, str], Awaitable], module_url: str
) -> Tokenizer:
    """Build a tokenizer in a browser.

    Args:
        open_backend: `openTokenizer` of `js_bridge/tokenizer.js`.
        module_url: of `@mlc-ai/web-tokenizers`' `lib/index.js`.

    Raises:
        ModelFileError: the library refuses the vocabulary.
    """
    from pyodide.ffi import JsException

    backends = []
    for content in (vocabulary.trusted, vocabulary.untrusted):
        try:
            backends.append(BrowserBackend(await open_backend(module_url, json.dumps(content))))
        except JsException as error:
            raise ModelFileError(f"The tokenizer could not be built ({error.message}).") from None
    return Tokenizer(*backends, vocabulary.special_ids, vocabulary.bos_id)
