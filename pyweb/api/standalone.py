"""The engine in a Pyodide that somebody else started: a notebook, a PyScript page, a worker of one's own.

    import pyweb
    assistant = await pyweb.load("https://example.org/model.gguf")
    answer = await assistant.ask("What is this about?", text="...")

Nothing of our page client or worker takes part: the bridge's modules come out of the wheel.
"""

import asyncio
import hashlib
from importlib.util import find_spec

from pyweb.api.assistant import Assistant
from pyweb.api.opening import Progress, no_progress
from pyweb.device.modules import blob_url, import_module
from pyweb.errors import EmptyPageError, IntegrityError, NetworkError, NoWebGPUError, SetupError, UsageError
from pyweb.page import Page, extract
from pyweb.prompt import Tokenizer, open_browser_tokenizer, vocabulary
from pyweb.weights import GGUF

__all__ = ["PAGE_WHEELS", "TOKENIZERS", "TOKENIZERS_SHA256", "load", "page_of"]

TOKENIZERS = "https://cdn.jsdelivr.net/npm/@mlc-ai/web-tokenizers@0.1.6/lib/index.js"
"""Hugging Face's tokenizers as wasm, Apache-2.0, 1.3 MB on the wire."""

TOKENIZERS_SHA256 = "1835f057a5923a0cac8b17276af4a011a4f4ccecfe9fe16e73ed5fc374f8c6c1"

PAGE_WHEELS = ("trafilatura==2.3.1", "jusText==3.0.2", "charset-normalizer==3.5.3")
"""What reading a page takes beside lxml; without their own dependencies, which extraction never calls."""

# Names of Jupyter's module loader; the package would register there instead of where the bridge looks for it.
_NO_LOADER = b"var define, exports, module;\n"

_library: asyncio.Future[str] | None = None


async def load(
    model: object,
    *,
    name: str = "",
    context: int | None = None,
    kv: str = "f16",
    memory: str = "off",
    keep: bool = True,
    tokenizers: str = TOKENIZERS,
    on_progress: Progress = no_progress,
) -> Assistant:
    """Loads a model in this Pyodide, whether it runs in a window or in a worker. Cancelling its task ends it at once.

    Args:
        model: URL of a GGUF file, whose server allows this origin (CORS) and byte ranges, or a picked `File`.
        name: under which the file is kept between visits; the last word of its URL where left out.
        context: tokens of prompt and reply; 4,096 or the model's own where less.
        kv: storage of keys and values, "f16" or "f32".
        memory: what replies are drafted from, see `Assistant.remember`.
        keep: keep a URL's file in the browser's own storage (OPFS).
        tokenizers: URL of `lib/index.js` of npm's `@mlc-ai/web-tokenizers` 0.1.6, a copy of your own where the CDN
            won't do; its SHA-256 is checked.
        on_progress: stage ("model" in bytes, "kernels"), done, total.

    Raises:
        NoWebGPUError, NoAdapterError: nothing to run on here.
        NetworkError, IntegrityError: a download failed, or has other bytes than it should.
        ModelFileError, UnknownModelError, LimitError, GPUOutOfMemoryError: the model doesn't run here.
        UsageError: this isn't Pyodide in a browser.
    """
    _require_browser()
    from js import Object
    from pyodide.ffi import JsException, to_js

    from pyweb.device.browser import BrowserDevice, BrowserSource, typed
    from pyweb.device.store import BrowserStore

    gpu, weights, tokenizer, store = [
        await import_module(f"{module}.js") for module in ("gpu", "weights", "tokenizer", "store")
    ]
    if isinstance(model, str):
        url = _absolute(model)
        name = name or url.partition("?")[0].rstrip("/").rpartition("/")[2] or "model"
        described = to_js({"url": url, "name": name, "keep": keep}, dict_converter=Object.fromEntries)
    else:
        name = name or model.name
        described = to_js({"file": model, "name": name}, dict_converter=Object.fromEntries)
    signal = weights.signal()
    options = to_js({"signal": signal}, dict_converter=Object.fromEntries)
    library = asyncio.ensure_future(_tokenizer_library(tokenizers))
    library.add_done_callback(_heard)  # a load that fails before it is needed doesn't ask

    async def open_device() -> BrowserDevice:
        try:
            return BrowserDevice(await gpu.open(), weights.load)
        except JsException as error:
            raise typed(error) from None

    async def open_source() -> BrowserSource:
        try:
            return BrowserSource(await weights.openSource(described, options))
        except JsException as error:
            raise typed(error) from None

    async def open_tokenizer(gguf: GGUF) -> Tokenizer:
        return await open_browser_tokenizer(vocabulary(gguf.metadata), tokenizer.openTokenizer, await library)

    try:
        assistant = await Assistant.load(
            open_device, open_source, open_tokenizer, context=context, kv=kv, on_progress=on_progress, signal=signal
        )
    except BaseException:
        signal.stop()
        library.cancel()
        raise
    await assistant.remember(memory, BrowserStore(store), name)
    await asyncio.sleep(0)  # as at the end of a reply: the caller goes on in a turn of its own
    return assistant


async def page_of(document: object, url: str = "") -> Page:
    """A page as material for questions: `await assistant.ask("...", page=await pyweb.page_of(js.document))`.

    The first call installs what extraction takes (1.3 MB) with micropip.

    Args:
        document: a window's live document, of which what is rendered now is read, or HTML as `str` or `bytes`.
        url: where the page is from; a document's own where left out.

    Raises:
        EmptyPageError: the page has no text.
        SetupError: micropip is not there.
        NetworkError: it could not install a part.
        UsageError: this isn't Pyodide in a browser.
    """
    _require_browser()
    await _install_page_wheels()
    if isinstance(document, (str, bytes)):
        return extract(document, url)
    if document is None:
        raise EmptyPageError("There is no document here.", "A worker has none: give the HTML as text.")
    snapshot = (await import_module("snapshot.js")).snapshot(document)
    return extract(snapshot.html, url or snapshot.url)


def _require_browser() -> None:
    try:
        import js  # Pyodide's
        import pyodide  # noqa: F401
    except ImportError:
        raise UsageError("This needs Pyodide in a browser.", "On a desktop use `pyweb ask`.") from None
    if not hasattr(js, "navigator"):
        raise NoWebGPUError("This Pyodide runs outside of a browser.")


def _absolute(url: str) -> str:
    """A URL that is relative to the page or worker, whole."""
    from js import URL, location
    from pyodide.ffi import JsException

    try:
        return URL.new(url, location.href).href
    except JsException:
        raise UsageError(f"{url!r:.200} is no URL.", "Give the whole URL of a GGUF file.") from None


async def _fetched(url: str) -> bytes:
    from pyodide.ffi import JsException
    from pyodide.http import pyfetch

    try:
        reply = await pyfetch(url)
        reply.raise_for_status()
        return await reply.bytes()
    except (OSError, JsException) as error:
        raise NetworkError(f"{url} could not be fetched ({error}).") from None


async def _tokenizer_library(url: str) -> str:
    """Blob URL of the tokenizer's module, fetched once in a session.

    Raises:
        NetworkError, IntegrityError: it could not be had, or is another one.
    """
    global _library
    if _library is None or (_library.done() and (_library.cancelled() or _library.exception())):
        _library = asyncio.ensure_future(_checked_library(url))
        _library.add_done_callback(_heard)
    return await asyncio.shield(_library)


def _heard(future: asyncio.Future) -> None:
    """Keeps the event loop from reporting a failure that whoever awaits the future hears of."""
    if not future.cancelled():
        future.exception()


async def _checked_library(url: str) -> str:
    content = await _fetched(_absolute(url))
    found = hashlib.sha256(content).hexdigest()
    if found != TOKENIZERS_SHA256:
        raise IntegrityError(f"{url} has the SHA-256 {found}, not {TOKENIZERS_SHA256}.")
    return blob_url(_NO_LOADER + content)


async def _install_page_wheels() -> None:
    if all(find_spec(package) for package in ("trafilatura", "justext")):
        return
    try:
        import micropip
    except ImportError:
        raise SetupError(
            "Reading a page takes packages that micropip installs, and micropip is not there.",
            "Run `await pyodide_js.loadPackage('micropip')` first.",
        ) from None
    try:
        await micropip.install(list(PAGE_WHEELS), deps=False)
    except Exception as error:  # micropip raises whatever its index and its client raise
        raise NetworkError(f"The packages that read pages could not be installed ({error}).") from None
