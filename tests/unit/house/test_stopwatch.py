"""What tests hold against a deadline is time in which they could run."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from contextlib import ExitStack

import pytest

from support.stopwatch import LONGEST, stopwatch


def test_a_choice_to_wait_counts_and_so_does_work() -> None:
    with stopwatch() as seconds:
        time.sleep(0.2)
        waited = seconds()
        begun = time.thread_time()
        while time.thread_time() - begun < 0.2:
            pass
        assert waited > 0.05
        assert seconds() - waited > 0.1


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system tells no waits")
def test_waiting_for_a_core_does_not_count() -> None:
    """Four others and a thread of ours share one core: it works a fifth of the time."""
    core, wall = {min(os.sched_getaffinity(0))}, []

    def work() -> None:
        os.sched_setaffinity(0, core)
        begun = time.monotonic()
        while time.thread_time() < 0.2:
            pass
        wall.append(time.monotonic() - begun)

    with ExitStack() as stack:
        for _ in range(4):
            other = stack.enter_context(subprocess.Popen(["/bin/sh", "-c", "while :; do :; done"]))
            stack.callback(other.kill)
            os.sched_setaffinity(other.pid, core)
        with stopwatch() as seconds:
            worker = threading.Thread(target=work)
            worker.start()
            worker.join()
            assert seconds() < wall[0] / 2


def test_what_stands_still_as_a_whole_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monotonic = time.monotonic
    with stopwatch() as seconds:
        monkeypatch.setattr(time, "monotonic", lambda: monotonic() + 3600)
        assert seconds() < 2 * LONGEST + 1
