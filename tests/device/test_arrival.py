"""Tasks that wait for an arrival: on asyncio's own loop, whose tasks are those of Pyodide's."""

import asyncio

import pytest

from pyweb.device.arrival import Arrival


async def waiting(log, arrival):
    try:
        log.append(await arrival)
    except ValueError as error:
        log.append(str(error))
    return log


def called(function, *args):
    """Calls it outside of every task, as JavaScript does, and waits until it was."""
    loop, done = asyncio.get_running_loop(), asyncio.Event()
    loop.call_soon(lambda: (function(*args), done.set()))
    return done.wait()


async def started(log):
    arrival = Arrival(asyncio.get_running_loop())
    task = asyncio.ensure_future(waiting(log, arrival))
    await asyncio.sleep(0)
    return arrival, task


def test_the_task_goes_on_inside_the_call():
    async def main():
        log = []
        arrival, task = await started(log)

        def bring():
            arrival.bring(b"bytes")
            log.append("brought")

        await called(bring)
        return await task

    assert asyncio.run(main()) == [b"bytes", "brought"]


def test_a_value_brought_by_another_task_waits_for_its_turn():
    async def main():
        log = []
        arrival, task = await started(log)
        arrival.bring(b"bytes")
        log.append("brought")
        return await task

    assert asyncio.run(main()) == ["brought", b"bytes"]


def test_what_came_before_anybody_waited():
    async def main():
        arrival = Arrival(asyncio.get_running_loop())
        arrival.bring(7)
        return await arrival

    assert asyncio.run(main()) == 7


def test_errors():
    async def main():
        log = []
        arrival, task = await started(log)
        await called(lambda: arrival.bring(error=ValueError("the device was lost")))
        return await task

    assert asyncio.run(main()) == ["the device was lost"]


def test_the_task_keeps_its_context():
    import contextvars

    name = contextvars.ContextVar("name", default="none")

    async def main():
        arrival, seen = Arrival(asyncio.get_running_loop()), []

        async def task():
            name.set("task")
            await arrival
            seen.append(name.get())

        running = asyncio.ensure_future(task())
        await asyncio.sleep(0)
        await called(arrival.bring, None)
        await running
        return seen, name.get()

    assert asyncio.run(main()) == (["task"], "none")


@pytest.mark.parametrize("late", [False, True], ids=["alone", "with a late value"])
def test_a_cancelled_wait_ends_at_once(late):
    async def main():
        log = []
        arrival, task = await started(log)
        task.cancel()
        if late:
            await called(arrival.bring, b"bytes")
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not arrival.cancel()
        return log

    assert asyncio.run(main()) == []


def test_many_one_after_the_other():
    async def main():
        loop = asyncio.get_running_loop()
        total = 0
        for number in range(1000):
            arrival = Arrival(loop)
            loop.call_soon(arrival.bring, number)
            total += await arrival
        return total

    assert asyncio.run(main()) == sum(range(1000))
