"""A page whose frames must come in time while a model decodes: the monitor, the budget, and how both are measured."""

from pathlib import Path

import pytest

from pyweb.cli.layout import Layout
from pyweb.cli.server import LocalServer

TINY = Path(__file__).resolve().parents[1] / "fixtures" / "tiny_chat.gguf"

LOAD = """
const { Assistant } = await import(base + 'js_bridge/client.js');
window.assistant = await Assistant.load({ model: base + 'models/tiny_chat.gguf', context: 512 });
"""


@pytest.fixture(scope="module")
def site():
    """Base URL of a site with the tiny model, for `call`."""
    with LocalServer(Layout({TINY.name: TINY}).resolve, port=0) as server:
        yield server.url


@pytest.fixture(scope="module")
def loaded(call):
    assert call(LOAD) is None
    return call


JUDGE = """
const { FrameJudge } = await import(base + 'js_bridge/frame-monitor.js');
const judge = new FrameJudge(16.7);
return args.frames.map(([time, lag, waited]) => judge.frame(time, time + lag, waited));
"""


@pytest.mark.parametrize(
    "frames, late",
    [
        ([(0, 1, 0), (17, 1, 0), (33, 1, 2), (50, 1, 16)], [None, False, False, False]),
        ([(0, 1, 0), (17, 1, 0), (67, 1, 0), (83, 1, 0)], [None, False, True, False]),  # frames were dropped
        ([(0, 1, 0), (17, 1, 20), (33, 1, 37), (50, 1, 0)], [None, True, True, False]),  # the probe waits
        ([(0, 1, 0), (17, 40, 40), (67, 1, 40), (83, 1, 0)], [None, None, None, False]),  # scripts held the thread
        ([(0, 1, 0), (33, 1, 0), (67, 1, 0), (167, 1, 0)], [None, False, False, True]),  # a display of 30 Hz
        ([(0, 1, 0), (7, 1, 0), (14, 1, 0), (28, 1, 0)], [None, False, False, False]),  # one of 144 Hz
    ],
    ids=["in time", "dropped", "waiting", "scripts", "30 Hz", "144 Hz"],
)
def test_which_frames_are_late(call, frames, late):
    assert call(JUDGE, frames=frames) == late


def test_the_monitor_tells_of_frames_until_it_is_stopped(call):
    told, after = call("""
    const { watchFrames } = await import(base + 'js_bridge/frame-monitor.js');
    const news = [];
    const stop = watchFrames(500, (one) => news.push(one));
    while (news.length < 3) await new Promise((resolve) => setTimeout(resolve, 50));
    stop();
    const told = [...news];
    await new Promise((resolve) => setTimeout(resolve, 600));
    return [told, news.length - told.length];
    """)
    assert all(one["frames"] > 0 and one["late"] <= one["frames"] for one in told) and after == 0


BUDGET = """
const options = { text: 'The lamp of Skerry Point.', maxTokens: 40, mode: args.mode, sampling: args.sampling };
const whole = await assistant.ask('What?', options);
const worst = setInterval(() => {
  assistant.request('frames', { frame_budget: args.budget, frames: 15, late: 15 });
}, 20);
const yielding = await assistant.ask('What?', { ...options, frameBudget: args.budget, reuse: false });
clearInterval(worst);
return [whole, yielding];
"""


# What is found for a budget is kept from reply to reply: each mode has one of its own.
@pytest.mark.parametrize("mode, budget", [("greedy", 16), ("loop", 17), ("fixed:4", 18), ("adaptive", 19)])
def test_a_reply_that_yields_has_the_same_ids(loaded, mode, budget):
    sampling = {"temperature": 0.8, "seed": 3}
    whole, yielding = loaded(BUDGET, mode=mode, budget=budget, sampling=sampling)
    assert len(whole["reply_ids"]) > 4  # of a random model, which may end a reply early
    assert yielding["reply_ids"] == whole["reply_ids"]
    assert (whole["least_share"], whole["times"]["paused"]) == (1, 0)
    assert yielding["least_share"] <= 0.5 and yielding["times"]["paused"] > 0  # the worst news halve the share
    assert yielding["submits"] > whole["submits"]


@pytest.mark.parametrize("budget", ["fast", 0, -5, 5000, True])
def test_a_budget_that_makes_no_sense(loaded, budget):
    result = loaded("return assistant.ask('What?', { text: 'A lamp.', frameBudget: args.budget })", budget=budget)
    assert result["error"] == "UsageError" and result["remedy"]


SLOWED = """
const { measureFrames, measureSlowedFrames } = await import(base + 'frames.js');
const options = { windows: [2], budgets: [null, 16.7], tokens: 8, seconds: 0.5 };
const load = { model: base + 'models/tiny_chat.gguf', context: 512 };
const notes = [];
const plain = await measureFrames(assistant, { ...options, onProgress: ({ note }) => notes.push(note) });
return { plain, slowed: await measureSlowedFrames(load, args.spin, { ...options, seconds: 2 }), notes };
"""


def test_frames_are_measured_also_on_a_slowed_gpu(loaded):
    result = loaded(SLOWED, spin=1000)
    assert "error" not in result, result
    plain, slowed = result["plain"], result["slowed"]
    for measured in (plain, slowed):
        assert 0 < measured["idle"]["fps"] < 70 and measured["idle"]["p50"] <= measured["idle"]["p99"]
        assert [(row["window"], row["frameBudget"]) for row in measured["rows"]] == [(2, None), (2, 16.7)]
        assert all(row["tokens"] > 0 and row["msPerToken"] > 0 for row in measured["rows"])
    assert all(row["spin"] == 1000 for row in slowed["rows"])
    assert slowed["rows"][0]["msPerToken"] > 3 * plain["rows"][0]["msPerToken"]
    assert len(result["notes"]) == 4
