"""The DevTools protocol over a pipe: JSON messages that end with a zero byte."""

import itertools
import json
import queue
import threading
import time
from collections.abc import Callable
from typing import BinaryIO

from pyweb.errors import BrowserError

__all__ = ["Pipe", "Tab"]

ANSWER_SECONDS = 60


class Pipe:
    """Calls and events of one browser.

    Args:
        source: where the browser writes.
        target: where the browser reads.
    """

    def __init__(self, source: BinaryIO, target: BinaryIO):
        self._source = source
        self._target = target
        self._ids = itertools.count(1)
        self._answers: dict[int, queue.SimpleQueue] = {}
        self._listeners: list[Callable[[dict], None]] = []
        self._lock = threading.Lock()
        self.closed = threading.Event()
        threading.Thread(target=self._read, daemon=True).start()

    def call(self, method: str, session: str | None = None, **params) -> dict:
        """One command's result.

        Raises:
            BrowserError: the browser refused, ended or did not answer.
        """
        number = next(self._ids)
        answers = self._answers[number] = queue.SimpleQueue()
        message = {"id": number, "method": method, "params": params}
        self._write(message | ({"sessionId": session} if session else {}))
        answer = self._wait(answers, method)
        if "error" in answer:
            raise BrowserError(f"The browser refused {method}: {answer['error'].get('message')}.", "")
        return answer["result"]

    def send_quietly(self, method: str, session: str | None = None, **params) -> None:
        """A command whose answer nobody waits for; a browser that is gone is fine."""
        message = {"id": next(self._ids), "method": method, "params": params}
        try:
            self._write(message | ({"sessionId": session} if session else {}))
        except BrowserError:
            pass

    def listen(self, listener: Callable[[dict], None]) -> None:
        """Adds a function that gets every event, on the reading thread."""
        self._listeners.append(listener)

    def close(self) -> None:
        self._target.close()
        self.closed.wait(1)
        self._source.close()

    def _write(self, message: dict) -> None:
        data = json.dumps(message).encode() + b"\0"
        try:
            with self._lock:
                while data:
                    data = data[self._target.write(data) :]
        except (OSError, ValueError) as error:
            raise BrowserError("The browser ended.") from error

    def _wait(self, answers: queue.SimpleQueue, method: str) -> dict:
        end = time.monotonic() + ANSWER_SECONDS
        while time.monotonic() < end:
            try:
                return answers.get(timeout=0.2)
            except queue.Empty:
                if self.closed.is_set() and answers.empty():
                    raise BrowserError("The browser ended.") from None
        raise BrowserError(f"The browser did not answer {method}.", "Try again, or with --fresh.")

    def _read(self) -> None:
        rest = b""
        try:
            while chunk := self._source.read(1 << 16):
                *messages, rest = (rest + chunk).split(b"\0")
                for message in messages:
                    self._dispatch(json.loads(message))
        except (OSError, ValueError):
            pass
        finally:
            self.closed.set()

    def _dispatch(self, message: dict) -> None:
        if "id" in message:
            if answers := self._answers.pop(message["id"], None):
                answers.put(message)
            return
        for listener in self._listeners:
            listener(message)


class Tab:
    """One page of the browser, opened empty; `close` it when done."""

    def __init__(self, pipe: Pipe):
        self._pipe = pipe
        self.target = pipe.call("Target.createTarget", url="about:blank")["targetId"]
        attached = pipe.call("Target.attachToTarget", targetId=self.target, flatten=True)
        self.session = attached["sessionId"]

    def call(self, method: str, **params) -> dict:
        return self._pipe.call(method, self.session, **params)

    def send_quietly(self, method: str, **params) -> None:
        self._pipe.send_quietly(method, self.session, **params)

    def ended(self) -> bool:
        """Whether the browser is gone."""
        return self._pipe.closed.is_set()

    def listen(self, listener: Callable[[dict], None]) -> None:
        """Adds a function that gets this tab's events."""

        def filtered(message: dict) -> None:
            if message.get("sessionId") == self.session:
                listener(message)

        self._pipe.listen(filtered)

    def evaluate(self, expression: str):
        """The JSON value of an expression; a promise is awaited.

        Raises:
            BrowserError: it threw.
        """
        answer = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if details := answer.get("exceptionDetails"):
            reason = details.get("exception", {}).get("description") or details.get("text")
            raise BrowserError(f"A script failed in the page: {reason}.", "")
        return answer["result"].get("value")

    def close(self) -> None:
        self._pipe.call("Target.closeTarget", targetId=self.target)
