"""The tokenizer of a browser: Hugging Face's `tokenizers` as wasm, behind `js_bridge/tokenizer.js`."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence

from pyweb.prompt.tokenizer import Tokenizer
from pyweb.prompt.vocabulary import bos_id, special_ids, tokenizer_json

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
    metadata: Mapping[str, object], open_backend: Callable[[str, str], Awaitable], module_url: str
) -> Tokenizer:
    """Build the tokenizer of a GGUF in a browser.

    Args:
        metadata: the GGUF's.
        open_backend: `openTokenizer` of `js_bridge/tokenizer.js`.
        module_url: of `@mlc-ai/web-tokenizers`' `lib/index.js`.

    Raises:
        UnknownModelError, ModelFileError: as `tokenizer_json`.
    """
    backends = []
    for specials in (True, False):
        content = json.dumps(tokenizer_json(metadata, specials))
        backends.append(BrowserBackend(await open_backend(module_url, content)))
    return Tokenizer(*backends, special_ids(metadata), bos_id(metadata))
