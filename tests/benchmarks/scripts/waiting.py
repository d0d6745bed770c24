"""Waits for requests that nobody answers, by a clock that jumps: python waiting.py REQUESTS SECONDS
RUNS WAY. JSON.

WAY is `plain`, `countdown` (told of each second, as on a terminal) or `loop`: what one would write,
a GET of the submissions every 15 seconds over one httpx.Client. Waiting takes no time; every
request really goes to the service. `burst` is how much of a bucket that the plan's rate refills is
in use at the most.
"""

import json
import os
import sys
import time
from datetime import timedelta

import httpx
from opening import URL, headers

from sealpipe import Client
from sealpipe.cancellation import Cancellation, make_current
from sealpipe.cli import collect_report, render
from sealpipe.client_base import connect
from sealpipe.collect import poll
from sealpipe.collect.options import plan_collect
from sealpipe.session import Transport

SETTINGS = {
    name: os.environ[f"SEALPIPE_{name.upper()}"]
    for name in ("api_key", "base_url", "link_base_url")
}
PLAN = 100 / 60
"""Requests a second of the smallest plan (specification: Limits)."""


class Jumping(Cancellation):
    """A clock that moves when somebody waits, and the requests that left, each at its time."""

    def __init__(self):
        super().__init__()
        self.now, self.asked = 0.0, []

    def sleep(self, seconds):
        self.now += seconds

    def burst(self):
        level = most = before = 0.0
        for at in self.asked:
            level = max(0.0, level - (at - before) * PLAN) + 1
            most, before = max(most, level), at
        return most


class Noting(Transport):
    """Connections that note at the clock what leaves."""

    def __init__(self, clock):
        super().__init__()
        self._clock = clock

    def send(self, *words):
        self._clock.asked.append(self._clock.now)
        return super().send(*words)


def ours(client, codes, seconds, *, countdown):
    clock, progress = Jumping(), collect_report.ProgressReport()
    make_current(clock)
    session = connect(client.session.with_transport(Noting(clock)))
    plan = plan_collect(codes, wait=timedelta(seconds=seconds), on_progress=progress)
    began = time.process_time()
    found = poll.collect(session, plan, tick=1.0 if countdown else None, clock=lambda: clock.now)
    spent = time.process_time() - began
    session.transport.close()
    assert [each.status for each in found] == ["pending"] * len(codes)
    return {"cpu": 1000 * spent, "requests": len(clock.asked), "burst": clock.burst()}


def loop(codes, seconds):
    """What one would write."""
    with httpx.Client(headers=headers()) as http:
        began = time.process_time()
        for _ in range(0, seconds, 15):
            for code in codes:
                answer = http.get(f"{URL}/requests/{code}/submissions")
                assert answer.raise_for_status().json()["submissions"] == []
        spent = time.process_time() - began
    return {"cpu": 1000 * spent, "requests": seconds // 15 * len(codes)}


def main():
    number, seconds, runs, way = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    if way == "countdown":
        render.is_terminal = lambda: True
    with Client(**SETTINGS) as client:
        codes = [client.request(["Password"], title="t").short_code for _ in range(number)]

        def once(seconds):
            if way == "loop":
                return loop(codes, seconds)
            return ours(client, codes, seconds, countdown=way == "countdown")

        once(15)
        print(json.dumps([once(seconds) for _ in range(runs)]))


main()
