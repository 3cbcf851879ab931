"""The device in the browser: the JavaScript bridge through Pyodide's foreign function interface."""

import asyncio
from collections.abc import Callable, Sequence
from functools import lru_cache

from pyodide.ffi import JsException, create_proxy, to_js

from pyweb import errors
from pyweb.device.arrival import Arrival
from pyweb.errors import DeviceLostError, PywebError

__all__ = ["BrowserDevice", "BrowserSource", "typed"]


def typed(error: JsException) -> PywebError:
    """The typed error that a bridge error names, so that it is the same on both sides."""
    known = getattr(errors, error.name, None)
    if isinstance(known, type) and issubclass(known, PywebError):
        return known(error.message, getattr(error, "remedy", None))
    return PywebError(f"{error.name}: {error.message.rstrip('.')}.")


class _TypedErrors:
    """Turns the bridge's errors into typed ones. A class, since every window passes here: generators cost more."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type | None, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, JsException):
            raise typed(error) from None


_typed_errors = _TypedErrors()


def _array(values: Sequence[int]):
    return to_js(list(values))


_kept_array = lru_cache(16)(_array)  # of read-backs: every window asks for the same


def _reporter(on_progress: Callable[[int, int], None]):
    """What JavaScript calls with bytes, all bytes and seconds left."""
    return create_proxy(lambda done, total, *_: on_progress(int(done), int(total)))


class BrowserSource:
    """A model file behind `weights.js`; `on_progress` hears of the bytes that reads outside of a load wait for."""

    def __init__(self, source, on_progress: Callable[[int, int], None] | None = None):
        self.js = source
        self.size = int(source.size)
        self._report = _reporter(on_progress) if on_progress else None
        if self._report:
            source.progress.report = self._report

    async def read(self, offset: int, length: int) -> bytes:
        with _typed_errors:
            return (await self.js.read(offset, length)).to_bytes()

    @property
    def fetched(self) -> int:
        """Bytes that came from the network, not from OPFS."""
        return int(self.js.fetched)

    @property
    def not_kept(self) -> str:
        """Why the file isn't kept in OPFS; empty where it is."""
        return str(self.js.notKept)

    @property
    def seconds_left(self) -> float | None:
        """What the rest of the file will take at the rate of the last seconds; None where that isn't known."""
        left = self.js.secondsLeft
        return None if left is None else float(left)

    def close(self) -> None:
        self.js.close()
        if self._report:
            self._report.destroy()
            self._report = None


class BrowserDevice:
    """`pyweb.device.base.Device` over a `Bridge` of gpu.js; `stream` is `load` of weights.js."""

    def __init__(self, bridge, stream):
        self._bridge = bridge
        self._submit, self._deliver = bridge.submit, bridge.deliver  # each look-up would make them anew
        self._stream = stream
        self.info = bridge.info.to_py()
        self.limits = bridge.limits.to_py()
        self.features = frozenset(bridge.features.to_py())
        self._awaited: dict[int, Arrival] = {}
        self._receiver = create_proxy(self._receive)
        self._closed = False

    async def buffer(self, size: int, label: str = "") -> int:
        with _typed_errors:
            return await self._bridge.buffer(size, label)

    def write(self, buffer: int, offset: int, data: bytes) -> None:
        with _typed_errors:
            self._bridge.write(buffer, offset, to_js(data))

    def destroy(self, buffer: int) -> None:
        self._bridge.destroy(buffer)

    async def compile(self, shaders: Sequence[tuple[str, str]]) -> list[int]:
        with _typed_errors:
            return (await self._bridge.compile(to_js([list(pair) for pair in shaders]))).to_py()

    def bind(self, pipeline: int, bindings: Sequence[int]) -> int:
        with _typed_errors:
            return self._bridge.bind(pipeline, _array(bindings))

    def program(self, commands: Sequence[int]) -> int:
        with _typed_errors:
            return self._bridge.program(_array(commands))

    def submit(self, program: int, repeats: int = 1, readbacks: Sequence[int] = ()) -> int:
        with _typed_errors:
            return self._submit(program, repeats, _kept_array(tuple(readbacks)))

    async def collect(self, ticket: int) -> bytes:
        if self._closed:
            raise DeviceLostError("The GPU device was closed.")
        with _typed_errors:
            self._deliver(ticket, self._receiver)
        self._awaited[ticket] = arrival = Arrival(asyncio.get_running_loop())
        return await arrival

    def _receive(self, ticket: int, data, error=None) -> None:
        arrival = self._awaited.pop(ticket)
        try:
            value, failure = (data.to_bytes(), None) if error is None else (None, typed(error))
        except Exception as raised:  # whatever it is, the task must hear of it
            value, failure = None, raised
        arrival.bring(value, failure)
        self._release()

    def _release(self) -> None:
        """Frees what JavaScript calls, once nothing more can come."""
        if self._closed and not self._awaited and self._receiver:
            asyncio.get_running_loop().call_soon(self._receiver.destroy)
            self._receiver = None

    async def time(self, program: int, repeats: int = 1) -> float:
        with _typed_errors:
            return float(await self._bridge.time(program, repeats))

    async def load(
        self,
        source: BrowserSource,
        steps: Sequence[int],
        on_progress: Callable[[int, int], None],
        signal: object = None,
    ) -> None:
        """See `Device.load`; `signal` is a `signal()` of weights.js, the source's own where left out.

        Raises:
            StoppedError, NetworkError, IntegrityError, ModelFileError, DeviceLostError, GPUOutOfMemoryError.
        """
        report = _reporter(on_progress)
        try:
            with _typed_errors:
                await self._stream(self._bridge, source.js, _array(steps), report, *([signal] if signal else []))
        finally:
            report.destroy()

    def counters(self) -> dict[str, float]:
        return self._bridge.counters().to_py()

    def close(self) -> None:
        self._bridge.close()
        self._closed = True
        self._release()
