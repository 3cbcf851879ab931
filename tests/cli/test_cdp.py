"""The DevTools pipe against a pretended browser."""

import json
import os
import threading

import pytest

from pyweb.cli.cdp import Pipe, Tab
from pyweb.errors import BrowserError


class FakeBrowser:
    """Answers each message with what `answer` makes of it; written in pieces, to test the framing."""

    def __init__(self, answer, piece: int = 7):
        their_in, our_out = os.pipe()
        our_in, their_out = os.pipe()
        self._in, self._out = os.fdopen(their_in, "rb", 0), os.fdopen(their_out, "wb", 0)
        self._answer, self._piece = answer, piece
        self.pipe = Pipe(os.fdopen(our_in, "rb", 0), os.fdopen(our_out, "wb", 0))
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        rest = b""
        while chunk := self._in.read(5):
            *messages, rest = (rest + chunk).split(b"\0")
            for message in messages:
                self.send(*self._answer(json.loads(message)))
        self._out.close()

    def send(self, *messages):
        data = b"".join(json.dumps(message).encode() + b"\0" for message in messages)
        for start in range(0, len(data), self._piece):
            self._out.write(data[start : start + self._piece])

    def die(self):
        self._out.close()


def echo(message):
    return [{"id": message["id"], "result": {"got": message["params"]}}]


def test_answers_find_their_calls():
    browser = FakeBrowser(echo)
    assert browser.pipe.call("A.b", text="ü" * 100) == {"got": {"text": "ü" * 100}}
    assert browser.pipe.call("A.c") == {"got": {}}
    browser.pipe.close()


def test_refusal_is_a_browser_error():
    browser = FakeBrowser(lambda message: [{"id": message["id"], "error": {"message": "no such thing"}}])
    with pytest.raises(BrowserError, match="refused A.b: no such thing"):
        browser.pipe.call("A.b")


def test_death_ends_a_waiting_call():
    browser = FakeBrowser(lambda message: [])
    threading.Timer(0.1, browser.die).start()
    with pytest.raises(BrowserError, match="ended"):
        browser.pipe.call("A.b")


def pretend(message):
    """A browser with one tab, whose scripts give their own source or throw."""
    results = {"Target.createTarget": {"targetId": "t"}, "Target.attachToTarget": {"sessionId": "s"}}
    result = results.get(message["method"], {})
    if message["method"] == "Runtime.evaluate":
        script = message["params"]["expression"]
        result = {"result": {"value": script}}
        if script == "throw":
            result = {"result": {}, "exceptionDetails": {"text": "Uncaught"}}
    events = [{"method": "A.mine", "sessionId": "s"}, {"method": "A.other", "sessionId": "x"}]
    return [*events, {"id": message["id"], "result": result}]


def test_tab_evaluates_and_hears_only_its_own_events():
    tab, heard = Tab(FakeBrowser(pretend).pipe), []
    tab.listen(lambda message: heard.append(message["method"]))
    assert tab.evaluate("1") == "1"
    assert set(heard) == {"A.mine"}
    with pytest.raises(BrowserError, match="Uncaught"):
        tab.evaluate("throw")
