"""Waits for requests that nobody answers, by a clock that jumps: python waiting.py REQUESTS SECONDS RUNS WAY. JSON.

WAY is `plain`, `countdown` (told of each second, as on a terminal) or `loop`: what one would write, a GET of the
submissions every 15 seconds over one httpx.Client. Waiting takes no time; every request really goes to the service.
`burst` is how much of a bucket that the plan's rate refills is in use at the most.
"""

import json
import os
import sys
import time
from datetime import timedelta

import httpx
from opening import URL, headers

from sealpipe import Client
from sealpipe.cli import collect_report, render
from sealpipe.client_base import get_service
from sealpipe.errors import SealpipeError
from sealpipe.flows import Do, Notify, Send, Wait
from sealpipe.flows.collect import poll
from sealpipe.flows.collect.options import CollectEachOptions
from sealpipe.http import ServiceNetwork

SETTINGS = {name: os.environ[f"SEALPIPE_{name.upper()}"] for name in ("api_key", "base_url", "link_base_url")}
PLAN = 100 / 60
"""Requests a second of the smallest plan (specification: Limits)."""


class Jumping:
    """A clock that moves when somebody waits, and the requests that left, each at its time."""

    def __init__(self):
        self.now, self.asked = 0.0, []

    def drive(self, flow, network):
        """`sealpipe.client_base.run`, but for what waiting is."""
        result, error = None, None
        while True:
            try:
                step = flow.send(result) if error is None else flow.throw(error)
            except StopIteration as stop:
                return stop.value
            result, error = None, None
            try:
                match step:
                    case Wait(seconds):
                        self.now += seconds
                    case Send(operation, timeout):
                        self.asked.append(self.now)
                        result = network.send(operation, timeout)
                    case Do(work, _) | Notify(work):
                        result = work()
            except SealpipeError as raised:
                error = raised

    def burst(self):
        level = most = before = 0.0
        for at in self.asked:
            level = max(0.0, level - (at - before) * PLAN) + 1
            most, before = max(most, level), at
        return most


def ours(client, codes, seconds, *, countdown):
    clock, progress = Jumping(), collect_report.ProgressReport()
    plan = CollectEachOptions(codes, wait=timedelta(seconds=seconds), on_progress=progress)
    network = ServiceNetwork(get_service(client.session))
    flow = poll.collect(client.session, plan, tick=1.0 if countdown else None, clock=lambda: clock.now)
    began = time.process_time()
    found = clock.drive(flow, network)
    spent = time.process_time() - began
    network.close()
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
