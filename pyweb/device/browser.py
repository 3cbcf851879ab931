"""The device in the browser: the JavaScript bridge through Pyodide's foreign function interface."""

from collections.abc import Callable, Sequence

from pyodide.ffi import JsException, create_proxy, to_js

from pyweb import errors
from pyweb.errors import PywebError

__all__ = ["BrowserDevice", "BrowserSource", "typed"]


def typed(error: JsException) -> PywebError:
    """The typed error that a bridge error names, so that it is the same on both sides."""
    known = getattr(errors, error.name, None)
    if isinstance(known, type) and issubclass(known, PywebError):
        return known(error.message)
    return PywebError(f"{error.name}: {error.message}.")


def _array(values: Sequence[int]):
    return to_js(list(values))


class BrowserSource:
    """A model file behind `weights.js`."""

    def __init__(self, source):
        self.js = source
        self.size = int(source.size)

    async def read(self, offset: int, length: int) -> bytes:
        try:
            return (await self.js.read(offset, length)).to_bytes()
        except JsException as error:
            raise typed(error) from None

    @property
    def fetched(self) -> int:
        """Bytes that came from the network, not from OPFS."""
        return int(self.js.fetched)

    @property
    def not_kept(self) -> str:
        """Why the file isn't kept in OPFS; empty where it is."""
        return str(self.js.notKept)

    def close(self) -> None:
        self.js.close()


class BrowserDevice:
    """`pyweb.device.base.Device` over a `Bridge` of gpu.js; `stream` is `load` of weights.js."""

    def __init__(self, bridge, stream):
        self._bridge = bridge
        self._stream = stream
        self.info = bridge.info.to_py()
        self.limits = bridge.limits.to_py()

    async def buffer(self, size: int, label: str = "") -> int:
        try:
            return await self._bridge.buffer(size, label)
        except JsException as error:
            raise typed(error) from None

    def write(self, buffer: int, offset: int, data: bytes) -> None:
        self._bridge.write(buffer, offset, to_js(data))

    def destroy(self, buffer: int) -> None:
        self._bridge.destroy(buffer)

    async def compile(self, shaders: Sequence[tuple[str, str]]) -> list[int]:
        try:
            return (await self._bridge.compile(to_js([list(pair) for pair in shaders]))).to_py()
        except JsException as error:
            raise typed(error) from None

    def bind(self, pipeline: int, bindings: Sequence[int]) -> int:
        return self._bridge.bind(pipeline, _array(bindings))

    def program(self, commands: Sequence[int]) -> int:
        return self._bridge.program(_array(commands))

    def submit(self, program: int, repeats: int = 1, readbacks: Sequence[int] = ()) -> int:
        try:
            return self._bridge.submit(program, repeats, _array(readbacks))
        except JsException as error:
            raise typed(error) from None

    async def collect(self, ticket: int) -> bytes:
        try:
            return (await self._bridge.collect(ticket)).to_bytes()
        except JsException as error:
            raise typed(error) from None

    async def load(
        self,
        source: BrowserSource,
        steps: Sequence[int],
        on_progress: Callable[[int, int], None],
        signal: object = None,
    ) -> None:
        report = create_proxy(on_progress)
        try:
            await self._stream(self._bridge, source.js, _array(steps), report, *([signal] if signal else []))
        except JsException as error:
            raise typed(error) from None
        finally:
            report.destroy()

    def counters(self) -> dict[str, int]:
        return self._bridge.counters().to_py()

    def close(self) -> None:
        self._bridge.close()
