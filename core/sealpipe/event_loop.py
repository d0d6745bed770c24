"""Commands that serve in an event loop."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

from sealpipe import signals


def run_in_loop(work: Coroutine[Any, Any, None]) -> None:
    """Run this in an event loop, in the main thread.

    The first signal cancels it and all other tasks; then `Interrupted` is raised. A handler that
    raised it within the loop would end one callback or task only.
    """
    number = None
    try:
        with asyncio.Runner() as runner, _waking(runner.get_loop()):
            signals.call_on_signal(runner.get_loop().stop)
            runner.run(work)
    except RuntimeError:  # the loop was stopped
        number = signals.find_first()
        if number is None:
            raise
    finally:
        signals.raise_on_signals()
        work.close()  # it may not have begun
    if number is not None:
        raise signals.Interrupted(number)


@contextmanager
def _waking(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Let every signal wake the loop: one just before a wait would be noticed only after it."""
    with signals.open_wakeup() as reading:
        loop.add_reader(reading, os.read, reading, 4096)
        try:
            yield
        finally:
            loop.remove_reader(reading)
