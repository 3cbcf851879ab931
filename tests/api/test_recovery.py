"""A device that is lost while a tiny model loads, waits or answers."""

import pytest

from pyweb.api import opening
from pyweb.errors import DeviceLostError, StoppedError
from tests.api.conftest import ask, talk, with_vocabulary


class LosingDevice:
    """A device that is lost after so many read-backs."""

    def __init__(self, device, left):
        self._device, self.left, self.closed = device, left, False

    def __getattr__(self, name):
        return getattr(self._device, name)

    async def collect(self, ticket):
        self.left -= 1
        data = await self._device.collect(ticket)
        if self.left < 0:
            raise DeviceLostError("The GPU device was lost (test).")
        return data

    def close(self):
        self.closed = True


def losing(device, *left):
    """open_device that gives devices which are lost after so many read-backs each; the last one lasts."""
    made = []

    async def open_device():
        made.append(LosingDevice(device, left[len(made)] if len(made) < len(left) else 1 << 30))
        return made[-1]

    return open_device, made


def load_collects(device, open_assistant):
    """Read-backs that loading takes."""
    open_device, made = losing(device)
    open_assistant(open_device)
    return (1 << 30) - made[0].left


@pytest.mark.parametrize("after", [0, 1, 5])
def test_a_lost_device_is_recovered_once_by_itself(device, open_assistant, after):
    """Idle (before the first read-back of the question) or within the reply: no text twice, none missing."""
    loading = load_collects(device, open_assistant)
    open_device, made = losing(device, loading + after)
    assistant = open_assistant(open_device)
    pieces, stages = [], []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(opening, "read_gguf", with_vocabulary)
        answer = ask(
            assistant, mode="loop", max_tokens=24, on_text=pieces.append, on_progress=lambda *p: stages.append(p[0])
        )
    assert len(made) == 2 and made[0].closed and assistant.device is made[1]
    assert "".join(pieces) == answer.answer and "model" in stages
    assert answer.reply_ids == ask(open_assistant(), mode="loop", max_tokens=24).reply_ids


def test_a_device_lost_again_is_an_error(device, open_assistant):
    loading = load_collects(device, open_assistant)
    open_device, made = losing(device, loading + 3, loading + 3)
    assistant = open_assistant(open_device)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(opening, "read_gguf", with_vocabulary)
        with pytest.raises(DeviceLostError):
            ask(assistant, mode="loop", max_tokens=24)
        assert len(made) == 2
        chat = assistant.chat(text="some text")
        assert talk(chat, "One ?").reply_ids and len(made) == 3


def test_a_device_lost_while_loading_is_tried_once_more(device, open_assistant):
    open_device, made = losing(device, 1)
    assert ask(open_assistant(open_device), mode="loop", max_tokens=3).reply_ids and len(made) == 2
    open_device, made = losing(device, 1, 1)
    with pytest.raises(DeviceLostError):
        open_assistant(open_device)
    assert len(made) == 2 and all(device.closed for device in made)


def test_closing_while_answering(device, open_assistant):
    open_device, made = losing(device)
    assistant = open_assistant(open_device)

    def close(text):
        assistant.close()
        made[0].left = 0

    with pytest.raises(StoppedError, match="closed"):
        ask(assistant, mode="loop", max_tokens=24, on_text=close)
    assert len(made) == 1
