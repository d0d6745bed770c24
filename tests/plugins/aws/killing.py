"""sealpipe killed between any two calls to AWS, or while an answer is on its way."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

from sealpipe.errors import PluginError
from sealpipe.plugin import WriteResult
from support.aws import Front
from support.fake_web import dead_from, drop, drop_after


def killed_everywhere(front: Front, put: Callable[[str], WriteResult]) -> Iterator[str]:
    """A place for each call that a run may be killed before or after; each is then run again to its
    end.

    `put` stores in the place that it is given, twice the same. Ends with the kill that comes too
    late.
    """
    for number, last in (
        (number, last) for number in itertools.count() for last in (drop, drop_after)
    ):
        place = f"killed-{number}-{last.__name__}"
        front.asked.clear()
        front.rule = dead_from(number, last)
        try:
            put(place)
            done = True
        except PluginError:
            done = False
        reached = len(front.asked) > number
        front.rule = lambda _: None
        if done and not reached:
            return
        put(place)
        yield place
