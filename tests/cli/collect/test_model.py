"""Collecting in random worlds ends as a model says; tests/endurance/collect_model.py has many more
of them.
"""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import example, given, settings

from cli.collect.playing import played
from cli.collect.world import GOOD, WORLDS, Asked, World
from sealpipe.collect import collection, poll
from support.hostile import MANY

UNAVAILABLE = World(
    (Asked((), None, None),), faults=("500",) * 100, pick="only", wait=40, cabinet=("",) * len(GOOD)
)
"""Exit code 7, which few worlds end with."""


def run(worlds: int) -> Counter[str]:
    """Play so many, and compare each with the model; how they ended."""
    figures: Counter[str] = Counter()

    @settings(MANY, max_examples=worlds, derandomize=True)
    @example(UNAVAILABLE)
    @given(WORLDS)
    def play(world: World) -> None:
        figures.update(played(world))

    play()
    return figures


def test_every_outcome_is_the_models() -> None:
    figures = run(300)
    # They do meet what they are about.
    codes = {int(what.rpartition(" ")[2]) for what in figures if "exit code" in what}
    assert codes >= {0, 3, 6, 7, 13, 14, 15, 16, 17}


BROKEN = {
    "a second answer is passed over": (
        collection,
        "pick",
        lambda found, how, code: list(found)[:1],  # noqa: ARG005
    ),
    "trouble is not outlived": (poll, "TRANSIENT", ()),
    "a refused credential is asked with again": (poll, "FATAL", ()),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_rule_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*BROKEN[name])
    with pytest.raises(AssertionError):
        run(400)
