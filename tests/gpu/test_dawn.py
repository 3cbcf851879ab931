"""The software adapter sometimes stops: its process may not take the whole run along."""

import signal

import pytest

from tests.gpu import dawn


@pytest.fixture
def own(monkeypatch):
    monkeypatch.setattr(dawn, "lost", [])
    device = dawn.DawnDevice()
    monkeypatch.setattr(dawn, "ANSWER", 2.0)
    yield device
    device.close()


@pytest.mark.parametrize("end", [signal.SIGSTOP, signal.SIGKILL], ids=["stopped", "killed"])
def test_a_silent_process_is_ended_and_remembered(own, end):
    own._process.send_signal(end)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="The Dawn process ended in `counters`"):
            own.call("counters")
    assert len(dawn.lost) == 2
