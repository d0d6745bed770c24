"""The states that a sweep of kills reaches, against those that are listed for it: none is missing,
none is new.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

from cli.outside import State

LISTS = Path(__file__).parent / "kill_states"
NOTHING: State = ("nothing",)
COMMAND = "pytest --update tests/cli/kills/test_every_step.py tests/cli/batch/test_kills.py"
HEAD = (
    "# The states in which a kill lands: {title}. The numbers only count them.\n"
    f"# Written by `{COMMAND}`; read what it changes before you keep it.\n"
)


class Found(Protocol):
    """What was found at one kill, or at the step beyond the end."""

    @property
    def state(self) -> State: ...


def assert_reached(title: str, found: Iterable[Found], *, is_update: bool = False) -> None:
    """Compare what a sweep reached, by its title; or write it down, in the order in which it was
    reached.
    """
    reached = list(dict.fromkeys(each.state or NOTHING for each in found))
    path = LISTS / name_list(title)
    if is_update:
        path.write_text(_dump(title, reached))
        return
    listed = list_states(title)
    missing = [state for state in listed if state not in reached]
    new = [state for state in reached if state not in listed]
    told = [
        f"{title}: {len(missing)} states are no longer reached, {len(new)} are new",
        *(f"missing:\n{_block(state)}" for state in missing),
        *(f"new:\n{_block(state)}" for state in new),
        f"if that is meant: {COMMAND}",
    ]
    assert set(reached) == set(listed), "\n".join(told)


def list_states(title: str) -> list[State]:
    """The states that are listed for a sweep."""
    return _load((LISTS / name_list(title)).read_text())


def name_list(title: str) -> str:
    """The file of a sweep's list."""
    return f"{title.replace(',', '').replace(chr(39), '').replace(' ', '-')}.txt"


def _dump(title: str, states: Sequence[State]) -> str:
    blocks = (f"\n{number}\n{_block(state)}" for number, state in enumerate(states, start=1))
    return HEAD.format(title=title) + "".join(blocks)


def _block(state: State) -> str:
    return "".join(f"  {line}\n" for line in state)


def _load(text: str) -> list[State]:
    states: list[list[str]] = []
    for line in text.splitlines():
        if line.startswith("  "):
            states[-1].append(line[2:])
        elif line[:1].isdigit():
            states.append([])
    return [tuple(state) for state in states]
