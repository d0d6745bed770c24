"""Collects in a world that hypothesis has drawn, and fails where the outcome is not the model's."""

from __future__ import annotations

from collections import Counter
from copy import copy
from datetime import timedelta

from cli.collect.model import Expected, expected
from cli.collect.world import TARGET, World, open_cabinet, session
from sealpipe.collect.options import plan_collect
from sealpipe.collect.results import CollectResult, Progress


def played(world: World) -> Counter[str]:
    """Collect, compare with the model, collect again; how it ended, for the figures of the
    endurance run.
    """
    world = copy(world)
    world.trace = []
    cabinet = open_cabinet(world.cabinet)
    found, wanted = _collect(world), expected(world)
    for collected, should in zip(found, wanted, strict=True):
        assert _told(collected) == should
    assert sorted(cabinet.values.values()) == sorted(
        value for each in wanted for value in each.values
    )
    assert len(cabinet.puts) == len(set(cabinet.puts)) == len(cabinet.values)

    before = dict(cabinet.values)
    again = copy(world)
    again.trace, again.faults, again.wait = [], (), 0
    found_again = _collect(again)
    assert [_told(each) for each in found_again] == expected(again)
    assert before.items() <= cabinet.values.items(), "what was stored is still what it was"
    assert len(cabinet.puts) == len(set(cabinet.puts)), "nothing is stored twice"
    ends = Counter(f"{each.status}, exit code {each.code}" for each in wanted)
    return ends + Counter(
        {"worlds": 1, "requests": len(wanted), "answers compared": len(world.trace)}
    )


def _collect(world: World) -> list[CollectResult]:
    codes = [world.code(number) for number in range(len(world.asked))]
    world.until = world.now + world.wait

    def told(progress: Progress) -> None:
        if progress.event == "waiting":
            world.trace.append((world.now, "", "pause", None))

    wait = timedelta(seconds=world.wait)
    options = plan_collect(codes, pick=world.pick, to=[TARGET], wait=wait, on_progress=told)
    return world.collect(session(), options)


def _told(collected: CollectResult) -> Expected:
    problem = collected.problem()
    code = 0 if problem is None else problem.exit_code
    values = []
    for placed in collected.stored:
        (value,) = (
            each.value.reveal()  # type: ignore[union-attr]
            for row in collected.submissions
            if row.marker == placed.submission
            for each in row.fields
        )
        values.append(value)
    return Expected(collected.status, code, values, len(collected.unreadable))
