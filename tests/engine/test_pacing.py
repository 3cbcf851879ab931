"""How a reply makes room for the frames of a page: the rule alone, and the real loops in simulated time."""

import asyncio
from types import SimpleNamespace

import pytest

from pyweb.engine import decode
from pyweb.engine.decode import Decoding, Generation
from pyweb.engine.modes import FixedWidth, parse_mode
from pyweb.engine.pacing import LEAST_SHARE, MOST_PIECES, Pacer
from pyweb.engine.prefill import Prefilling
from pyweb.errors import UsageError

FRAME = 1 / 60


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def pacer(clock):
    async def sleep(seconds):
        clock.now += seconds

    return Pacer(FRAME, clock, sleep)


def settle(pacer, clock):
    """A submission that began after the last cut is done, and the news that speak of earlier ones are over."""
    pacer.completed("step", clock.now, 0.004, 1, 1)
    clock.now += 0.3


def cut(pacer, clock, times=1, late=15):
    for _ in range(times):
        pacer.hear(15, late)
        settle(pacer, clock)


@pytest.mark.parametrize("budget", [0, -1, 0.0001, 2, float("nan")])
def test_a_budget_is_a_time(budget):
    with pytest.raises(UsageError, match="1 to 1000 milliseconds"):
        Pacer(budget)


def test_without_a_budget_nothing_is_held_back():
    pacer = Pacer()
    pacer.hear(10, 10)
    pacer.completed("step", 0, 1.0, 1, 1)
    asyncio.run(pacer.rest())
    assert (pacer.at_ease, pacer.division("step", 8), pacer.paused) == (True, (8, 1), 0)


def test_single_late_frames_are_no_reason(pacer):
    for _ in range(20):
        pacer.hear(15, 1)
    assert pacer.at_ease


def test_a_cut_is_as_deep_as_many_frames_are_late(pacer, clock):
    few, many = pacer, Pacer(FRAME, clock)
    few.hear(15, 2)
    many.hear(15, 15)
    assert few.share == pytest.approx(0.85) and many.share == pytest.approx(0.5)


def test_news_of_what_was_in_flight_cut_once(pacer, clock):
    pacer.completed("step", 0, 0.04, 1, 1)
    pacer.hear(15, 15)
    clock.now += 0.1
    pacer.hear(6, 6)
    pacer.completed("step", -0.05, 0.04, 1, 1)  # submitted before the cut
    clock.now += 10
    pacer.hear(6, 6)
    assert pacer.share == 0.5
    settle(pacer, clock)
    pacer.hear(6, 6)
    assert pacer.share == 0.25


def test_the_share_rises_quickly_to_what_was_too_much_and_slowly_from_there(pacer, clock):
    cut(pacer, clock, 2)
    assert pacer.share == 0.25  # after a cut at 0.5
    pacer.hear(15, 0)
    pacer.hear(15, 0)
    assert pacer.share == pytest.approx(0.45)
    for share in (0.455, 0.46, 0.465):
        pacer.hear(15, 0)
        assert pacer.share == pytest.approx(share)


def test_all_of_the_gpu_within_seconds_once_frames_come_in_time(pacer, clock):
    cut(pacer, clock, 3)
    assert pacer.share == pytest.approx(0.125)
    news = 0
    while not pacer.at_ease:
        pacer.hear(15, 0)
        news += 1
    assert news < 30  # four a second


def test_never_less_than_the_least(pacer, clock):
    cut(pacer, clock, 6)
    assert pacer.share == pacer.least_share == LEAST_SHARE


def test_yielding_in_vain_is_given_up_for_a_while(pacer, clock):
    """Frames that are late beside the least share too are late for other reasons."""
    truces = []
    for _ in range(3):
        while not truces or not pacer.at_ease:
            cut(pacer, clock)
            if pacer.at_ease:
                break
        start = clock.now
        while pacer.at_ease:
            cut(pacer, clock)
        truces.append(clock.now - start)
    assert truces == pytest.approx([5, 10, 20], abs=1)


def test_yielding_that_helps_is_kept_up(pacer, clock):
    """An eighth of the frames is late beside the least share, nearly all are beside more: known after one truce."""

    def news():
        cut(pacer, clock, late=14 if pacer.share > LEAST_SHARE else 2)
        return pacer.at_ease

    while not news():
        pass
    while news():
        pass
    assert not any(news() for _ in range(100))


def test_a_hidden_page_leaves_all_of_the_gpu(pacer, clock):
    cut(pacer, clock, 3)
    pacer.release()
    assert pacer.at_ease


def test_a_submission_is_as_long_as_its_part_of_a_frame(pacer, clock):
    assert pacer.division("step", 8) == (1, 1)  # what it costs isn't known yet
    pacer.completed("step", 0, 0.002, 1, 1)
    assert pacer.division("step", 8) == (4, 1)  # two of them are in flight
    pacer.share = 0.6
    assert pacer.division("step", 8) == (5, 1)
    assert pacer.division("step", 2) == (2, 1)
    pacer.share = 0.1
    assert pacer.division("step", 8) == (1, 2)


def test_pieces_are_powers_of_two_up_to_a_bound(pacer):
    pacer.completed("long", 0, 0.03, 1, 1)
    pacer.completed("endless", 0, 9.0, 1, 1)
    pacer.share = 0.5
    assert pacer.division("long", 4) == (1, 4)
    assert pacer.division("endless", 4) == (1, MOST_PIECES)


def test_waits_for_pieces_do_not_make_a_step_dearer(pacer):
    pacer.completed("step", 0, 0.03, 1, 1)
    pacer.completed("step", 0, 0.09, 1, 8)
    pacer.share = 0.5
    assert pacer.division("step", 4) == (1, 4)


def test_rests_are_the_rest_of_a_frame(pacer, clock):
    asyncio.run(pacer.rest())
    assert clock.now == 0
    pacer.share = 0.4
    asyncio.run(pacer.rest())
    assert clock.now == pacer.paused == pytest.approx(0.6 * FRAME)
    pacer.begin()
    assert (pacer.paused, pacer.least_share) == (0, 0.4)


class SimulatedLoop(asyncio.SelectorEventLoop):
    """Time that leaps to the next timer whenever nothing is left to do."""

    now = 0.0

    def time(self):
        return self.now

    def _run_once(self):
        if not self._ready and self._scheduled:
            self.now = max(self.now, self._scheduled[0].when())
        super()._run_once()


class Gpu:
    """Runs submissions one after the other. A program is the seconds it takes; `tokens` is what a reply has so far."""

    def __init__(self):
        self.free_at, self.tokens, self.longest, self.made = 0.0, 0, 0.0, []

    def submit(self, program, repeats=1, readbacks=()):
        self.longest = max(self.longest, program * repeats)
        self.tokens += repeats if readbacks else 0
        loop = asyncio.get_running_loop()
        self.free_at = max(self.free_at, loop.time()) + program * repeats
        self.made.append((self.free_at, self.tokens.to_bytes(4, "little")))
        return len(self.made) - 1

    async def collect(self, ticket):
        end, news = self.made[ticket]
        await asyncio.sleep(end - asyncio.get_running_loop().time())
        return news


class Programs:
    """Steps and chunks that take the same time each."""

    def __init__(self, seconds):
        self.seconds = seconds

    async def step_pieces(self, count, *_):
        return [self.seconds / count] * count

    prefill_pieces = step_pieces


class Page:
    """Draws 60 times a second, for `drawing(time)` seconds, and tells the pacer as the page's monitor does."""

    def __init__(self, gpu, pacer, drawing):
        self.gpu, self.pacer, self.drawing, self.latencies = gpu, pacer, drawing, []

    async def run(self):
        frames = late = 0
        loop = asyncio.get_running_loop()
        told = loop.time()
        while True:
            start = loop.time()
            await self.gpu.collect(self.gpu.submit(self.drawing(start)))
            took = loop.time() - start
            self.latencies.append((start, took))
            frames, late = frames + 1, late + (took > FRAME)
            if late > 1 or loop.time() - told > 0.25:
                self.pacer.hear(frames, late)
                frames, late, told = 0, 0, loop.time()
            await asyncio.sleep(max(0, start + FRAME - loop.time()))

    def late(self, since=0.0):
        """The part of the frames that were late."""
        seen = [took for start, took in self.latencies if start >= since]
        return sum(took > FRAME for took in seen) / len(seen)


def state_of(data):
    """Of a reply of one token a step that never ends by itself."""
    count = int.from_bytes(data, "little")
    return SimpleNamespace(
        tokens=lambda start: list(range(start, count)),
        records=lambda start: [(1, 0, 1)] * (count - start),
        finish_reason=None,
        valid=0,
    )


def beside_a_page(monkeypatch, seconds, budget, step, work, drawing=lambda time: 0.002):
    """Runs `work(gpu, programs, pacer, stopped)` for so many seconds beside a page; the page, the GPU, the pacer."""
    monkeypatch.setattr(decode, "parse_state", state_of)
    loop = SimulatedLoop()

    async def run():
        gpu, pacer = Gpu(), Pacer(budget, loop.time, asyncio.sleep)
        page = Page(gpu, pacer, drawing)
        drawn = asyncio.ensure_future(page.run())
        await work(gpu, Programs(step), pacer, lambda: loop.time() >= seconds)
        drawn.cancel()
        return page, gpu, pacer

    try:
        return loop.run_until_complete(run())
    finally:
        loop.close()


def decoding(gpu, programs, pacer, stopped, result=None):
    loop = Decoding(
        device=gpu, programs=programs, control=1, mode=parse_mode("loop", 4), window=4, steering=FixedWidth(1),
        prompt_length=1, context=10**6, stops=(), pacer=pacer,
    )  # fmt: skip
    return loop.run(result or Generation(), lambda ids: None, stopped)


def test_a_slow_gpu_keeps_the_frames_of_a_page_within_a_budget(monkeypatch):
    """A step of 40 ms, as on an integrated GPU: windows of four hold every frame up, pieces of a step nearly none."""
    without, _, _ = beside_a_page(monkeypatch, 20, None, 0.04, decoding)
    page, gpu, pacer = beside_a_page(monkeypatch, 20, FRAME, 0.04, decoding)
    assert without.late() > 0.9 and len(without.latencies) < 150
    assert page.late(since=1) < 0.01 and len(page.latencies) > 1150
    assert gpu.tokens > 0.9 * 0.88 * 20 / 0.04  # drawing takes 12% of the time


def test_a_fast_gpu_is_not_held_back(monkeypatch):
    """Windows as long as half a frame leave no frame late, so that no rest is taken."""
    without = beside_a_page(monkeypatch, 5, None, 0.001, decoding)[1]
    page, gpu, pacer = beside_a_page(monkeypatch, 5, FRAME, 0.001, decoding)
    assert (page.late(), pacer.paused, pacer.least_share) == (0, 0, 1)
    assert gpu.tokens > 0.99 * without.tokens


def test_the_gpu_is_taken_back_when_the_page_rests(monkeypatch):
    """Drawing takes 12 of 16.7 ms for ten seconds and then nothing: the reply slows down and recovers."""
    shares = {}

    def work(gpu, programs, pacer, stopped):
        def watched():
            shares[asyncio.get_running_loop().time()] = pacer.share
            return stopped()

        return decoding(gpu, programs, pacer, watched)

    def drawing(time):
        return 0.012 if time < 10 else 0.0001

    page, gpu, pacer = beside_a_page(monkeypatch, 20, FRAME, 0.04, work, drawing)
    busy = [share for time, share in shares.items() if 5 < time < 10]
    assert max(busy) < 0.5 and pacer.paused > 1
    assert page.late(since=3) < 0.05
    assert all(share == 1 for time, share in shares.items() if time > 18)


def test_prefill_yields_too(monkeypatch):
    """Chunks of 100 ms."""

    def prefilling(gpu, programs, pacer, stopped):
        return Prefilling(gpu, programs, 32, pacer, lambda done, total: None, stopped, 2).run(0, 32 * 100)

    without, _, _ = beside_a_page(monkeypatch, 60, None, 0.1, prefilling)
    page, gpu, pacer = beside_a_page(monkeypatch, 60, FRAME, 0.1, prefilling)
    assert without.late() > 0.9
    assert page.late(since=1) < 0.01
