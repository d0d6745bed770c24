"""Turns of the worker threads of `AsyncClient`."""

from __future__ import annotations

import asyncio
import gc
import time
import weakref
from functools import partial
from typing import Any

from sealpipe.workers import IDLE_SECONDS, Call, Workers


def ignore(_loop: asyncio.AbstractEventLoop, _context: dict[str, Any]) -> None:
    """Say nothing of tasks that are destroyed."""


def test_a_loop_that_is_closed_while_calls_wait_leaves_as_many_turns_as_there_were() -> None:
    workers, at_work, most = Workers(1), 0, 0
    assert workers._slots.take(lambda: None)
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(ignore)
    waiting = [loop.create_task(workers.run(lambda _: None, timeout=60, grace=0)) for _ in range(3)]
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    workers._slots.give()
    del waiting
    gc.collect()

    def count(call: Call) -> None:
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        call.sleep(0.05)
        at_work -= 1

    async def run_four() -> None:
        await asyncio.gather(*(workers.run(count, timeout=60, grace=0) for _ in range(4)))

    asyncio.run(run_four())
    workers.close()
    assert most == 1


def test_an_idle_thread_does_not_keep_what_its_first_call_was_given() -> None:
    class Value:
        """Something that only the call refers to."""

    async def main() -> weakref.ref[Value]:
        value = Value()
        found = weakref.ref(value)
        await Workers(1).run(partial(lambda _value, _call: None, value), timeout=60.0, grace=0.0)
        return found

    found = asyncio.run(main())
    end = time.monotonic() + IDLE_SECONDS / 2  # until then its thread waits for another call
    while found() is not None and time.monotonic() < end:
        gc.collect()
        time.sleep(0.01)
    assert found() is None
