"""Two ways to read the same secrets, by turns: ms of each, as JSON."""

import json
import time
from collections.abc import Callable

Way = Callable[[list[str]], list[str]]


def by_turns(ours: Way, theirs: Way, count: int, runs: int) -> str:
    """The wall and CPU times of so many runs of both.

    The names are s0, s1, ...; their values are as the fakes hold.
    """
    names = [f"s{number}" for number in range(count)]
    _took(ours, names[:1])  # so that both are imported whole
    _took(theirs, names[:1])
    turns = [(_took(ours, names), _took(theirs, names)) for _ in range(runs)]
    return json.dumps(
        {
            kind: [[turn[side][index] for turn in turns] for side in (0, 1)]
            for index, kind in enumerate(("wall", "cpu"))
        }
    )


def _took(way: Way, names: list[str]) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    found = way(names)
    spent = time.perf_counter() - wall, time.process_time() - cpu
    assert found == [f"value of {name}" for name in names]
    return 1000 * spent[0], 1000 * spent[1]
