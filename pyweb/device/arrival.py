"""What JavaScript brings to a waiting task, without a turn of Pyodide's event loop."""

import asyncio
from collections.abc import Callable, Generator
from contextvars import Context

__all__ = ["Arrival"]


class Arrival:
    """A future for one task, which goes on inside the call that brings the value.

    asyncio's own futures wake their task by `call_soon`: in a browser that is a message to itself. With what awaiting a
    promise adds, it takes longer than everything else that Python does for a window of steps.
    """

    # By this attribute, `get_loop`, `add_done_callback`, `result` and `cancel` tasks know what they may wait for.
    _asyncio_future_blocking = False

    def __init__(self, loop: asyncio.AbstractEventLoop):
        self._loop = loop
        self._done = False
        self._value: object = None
        self._error: BaseException | None = None
        self._waiting: tuple[Callable, Context] | None = None

    def bring(self, value: object = None, error: BaseException | None = None) -> None:
        """Ends the wait with a value or an error; what comes after a cancellation is dropped."""
        if self._done:
            return
        self._settle(value, error)
        if self._waiting and asyncio.current_task(self._loop) is None:
            callback, context = self._waiting
            context.run(callback, self)
        else:  # inside another task's step, which must end first
            self._wake_soon()

    def cancel(self, msg: object = None) -> bool:
        """What `Task.cancel` calls."""
        if self._done:
            return False
        self._settle(None, asyncio.CancelledError() if msg is None else asyncio.CancelledError(msg))
        self._wake_soon()
        return True

    def result(self) -> object:
        if self._error is None:
            return self._value
        try:
            raise self._error
        finally:
            self = None  # else the error's traceback would keep everything alive that waits above

    def get_loop(self) -> asyncio.AbstractEventLoop:
        return self._loop

    def add_done_callback(self, callback: Callable, *, context: Context) -> None:
        self._waiting = callback, context

    def __await__(self) -> Generator["Arrival", None, object]:
        if not self._done:
            self._asyncio_future_blocking = True
            yield self
        return self.result()

    def _settle(self, value: object, error: BaseException | None) -> None:
        self._done, self._value, self._error = True, value, error

    def _wake_soon(self) -> None:
        if self._waiting:
            callback, context = self._waiting
            self._loop.call_soon(callback, self, context=context)
