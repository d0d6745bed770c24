"""What asking for secrets costs: making a request, waiting for the answer, opening and storing what
was submitted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from bench import SEALPIPE, Bench
from measuring import Command, Pair
from table import Row

VALUE = "correct horse battery staple"
PROMPT = "Staging password"
HOUR, DAY = 3_600, 86_400
SEVERAL, SHORT_SEVERAL = 40, 3
ANSWERS = (1_000, 20_000)
SHORT_ANSWERS = (10, 20)
RATE, BURST = 100, 200
"""What the smallest plan allows: requests a minute, and at once (specification: Limits)."""


def rows(bench: Bench) -> Iterator[Row]:
    """The rows of this group."""
    yield from _whole(bench)
    yield from _at_once(bench)
    yield from _waiting(bench)
    for number, shown in zip(SHORT_ANSWERS if bench.short else ANSWERS, ANSWERS, strict=True):
        yield from _answers(bench, number, shown)


def _whole(bench: Bench) -> Iterator[Row]:
    """A whole command, beside the smallest script."""
    environ = bench.at(bench.other.fresh())
    ask, script = (
        Command([SEALPIPE, "request", "-a", PROMPT], environ),
        bench.python("smallest_request.py"),
    )
    links = [bench.meter.run(command).out.strip() for command in (ask, Command(script, environ))]
    for link in links:
        bench.other.submit(link, {PROMPT: VALUE})
    codes = [link.rpartition("/")[2] for link in links]
    get = Command([SEALPIPE, "collect", codes[0]], environ)
    bare, looking = (
        Command(bench.python("smallest_collect.py", codes[1], *words), environ)
        for words in ((), ("look",))
    )
    for command in (get, bare, looking):
        found = bench.meter.run(command).out.strip()
        assert found == f"{PROMPT}: {VALUE}", "it was not collected"
    yield bench.counted(
        "request", "`sealpipe request`; the smallest script", ask, Command(script, environ), 1.1
    )
    yield bench.counted(
        "collect", "`sealpipe collect`, answered; the smallest script", get, bare, 1.1
    )
    what = "the same; the script looks at the request's key, too"
    yield bench.counted("collect-both", what, get, looking, 1.1)


def _at_once(bench: Bench) -> Iterator[Row]:
    """One command for many requests, beside a command for each."""
    environ = bench.at(bench.other.fresh())
    codes = []
    for _ in range(SHORT_SEVERAL if bench.short else SEVERAL):
        link = bench.meter.run(Command([SEALPIPE, "request", "-a", PROMPT], environ)).out.strip()
        bench.other.submit(link, {PROMPT: VALUE})
        codes.append(link.rpartition("/")[2])
    turns = []
    for _ in range(bench.runs):
        whole = bench.meter.run(Command([SEALPIPE, "collect", *codes], environ))
        assert whole.out.count(VALUE) == len(codes), "some were not collected"
        turns.append(
            (
                whole,
                [bench.meter.run(Command([SEALPIPE, "collect", code], environ)) for code in codes],
            )
        )
    what = f"{SEVERAL} requests, all answered, in one `sealpipe collect`; in a command each"
    pair = Pair.of(
        [one.cpu for one, _ in turns], [sum(cost.cpu for cost in each) for _, each in turns]
    )
    yield Row("collect-40-cpu", what, "ms CPU", pair, 0.1)
    pair = Pair.of(
        [one.wall for one, _ in turns], [sum(cost.wall for cost in each) for _, each in turns]
    )
    yield Row("collect-40-wall", "the same, one after the other", "ms", pair, 0.1)


def _waiting(bench: Bench) -> Iterator[Row]:
    several = SHORT_SEVERAL if bench.short else SEVERAL

    def told(
        number: int, seconds: int, way: str = "plain", runs: int = bench.runs
    ) -> list[dict[str, Any]]:
        seconds = seconds // 60 if bench.short else seconds
        command = Command(
            bench.python("waiting.py", str(number), str(seconds), str(runs), way), environ
        )
        found: list[dict[str, Any]] = json.loads(bench.meter.run(command).out)
        return found

    def pair(
        kind: str, ours: list[dict[str, Any]], theirs: list[dict[str, Any]], times: int = 1
    ) -> Pair:
        return Pair.of([run[kind] for run in ours], [times * run[kind] for run in theirs])

    environ = bench.at(bench.other.fresh())
    hour, loop = told(1, HOUR), told(1, HOUR, "loop")
    what = "an hour's wait for 1 request; a loop that asks every 15 s"
    yield Row("wait-cpu", what, "ms CPU", pair("cpu", hour, loop))
    yield Row("wait-requests", "the same", "requests", pair("requests", hour, loop))
    what = "the same hour with a countdown on a terminal; without"
    yield Row("wait-countdown", what, "ms CPU", pair("cpu", told(1, HOUR, "countdown"), hour))
    all_hour = told(several, HOUR)
    what = f"an hour's wait for {SEVERAL} requests in one command; in {SEVERAL}"
    yield Row("wait-40-cpu", what, "ms CPU", pair("cpu", all_hour, hour, several), 1.0)
    yield Row(
        "wait-40-requests", "the same", "requests", pair("requests", all_hour, hour, several), 1.0
    )
    day = told(1, DAY)
    what = f"a day's wait for 1 request; {DAY // HOUR} times an hour's"
    yield Row("wait-day-cpu", what, "ms CPU", pair("cpu", day, hour, DAY // HOUR), 1.0)
    (whole,) = told(several, DAY, runs=1)
    minutes = (DAY // 60 if bench.short else DAY) / 60
    what = f"a day's wait for {SEVERAL} requests; what the smallest plan allows"
    yield Row(
        "wait-day-40-rate",
        what,
        "requests/min",
        Pair.of([whole["requests"] / minutes], [RATE]),
        0.5,
    )
    yield Row(
        "wait-day-40-burst",
        "the same, at once at the most",
        "requests",
        Pair.of([whole["burst"]], [BURST]),
        0.5,
    )
    yield Row(
        "wait-day-40-cpu",
        "the same; the wait itself",
        "ms CPU",
        Pair.of([whole["cpu"]], [60_000 * minutes]),
    )


def _answers(bench: Bench, number: int, shown: int) -> Iterator[Row]:
    environ = bench.at(bench.other.fresh())
    words = bench.python(
        "many_answers.py", str(number), str(bench.runs), bench.folder / f"submissions-{shown}"
    )
    found = json.loads(bench.meter.run(Command(words, environ)).out)
    what = f"`Client.collect` of {shown:,} answers; httpx, `json.loads` and cryptography"
    yield Row(
        f"submissions-{shown}", what, "us CPU each", Pair.of(found["ours"], found["bare"]), 2.0
    )
    if shown == ANSWERS[0]:
        what = "the same, each into a folder of its own; without"
        yield Row(
            f"submissions-{shown}-dir", what, "us CPU each", Pair.of(found["dir"], found["ours"])
        )
    memory = Pair.of([found["peak"]["ours"]], [found["peak"]["bare"]])
    yield Row(
        f"submissions-{shown}-memory",
        "the same, what Python allocates",
        "x response",
        memory,
        5.0,
        bounds_ours=True,
    )
