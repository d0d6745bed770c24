"""What collecting should end with, told from the exchanges alone: a reading of DESIGN 6.5 that
shares no code with it.

A request is a little machine that is fed what the service answered. It knows what each ciphertext
is, for it was made that way; it opens nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from cli.collect.world import GOOD, OURS, Item, World
from sealpipe.wire.encoding import encode_base64url

TRIES = 5
AT_ONCE = {"404": 6, "401": 3}
"""Answers that are final at the first time, and their exit codes."""
IN_THE_END = {"429": 7, "500": 7, "502": 7, "cut": 7, "refused": 10, "garbled": 12}
"""The exit code of a read whose every try went wrong, and the last one so that was answered at all
(else the last).
"""
SILENT = ("cut", "refused")
PASSING = (7, 10)
"""Those that waiting outlives."""


@dataclass
class Expected:
    """What one request should end with.

    `code` is the exit code, 0 where all is well; `values` are those stored.
    """

    status: str = ""
    code: int = 0
    values: list[str] = field(default_factory=list)
    unusable: int = 0


@dataclass
class Machine:
    """One request, fed with answers."""

    world: World
    known: dict[tuple[str, str], Item] = field(default_factory=dict)
    over: bool = False
    tries: list[str] = field(default_factory=list)
    trouble: int = 0
    asked_at: float = -1.0
    result: Expected | None = None

    def feed(self, what: str, told: Any) -> None:
        """One answer: the name of a fault, or what the service told."""
        assert self.result is None, "asked on, though it was over"
        if isinstance(told, str):
            self._fault(told)
        elif what == "state":
            self.tries = []
            key = told["public_key"]
            self.over = key is None
            if key not in (None, encode_base64url(OURS.public_key)):
                self.fail(13)  # without a receipt, a key that is none of ours is a wrong key
        else:
            self.tries, self.trouble = [], 0
            for item in told:
                self.known.setdefault((item.code, item.box), item)
            self._decide()

    def fail(self, code: int) -> None:
        self.result = Expected("failed", code, unusable=len(self.known) - len(self._usable()))

    def end(self) -> Expected:
        """Time is out."""
        assert self.result or self.asked_at >= self.world.until, "not asked for up to the end"
        if self.result is None and self.trouble:
            self.fail(self.trouble)
        return self.result or self._unanswered("pending", 15)

    def _fault(self, name: str) -> None:
        self.tries.append(name)
        if name in AT_ONCE:
            self.fail(AT_ONCE[name])
        elif len(self.tries) == TRIES:
            code = IN_THE_END[
                ([each for each in self.tries if each not in SILENT] or self.tries)[-1]
            ]
            self.tries = []
            if code in PASSING:
                self.trouble = code
            else:
                self.fail(code)

    def _decide(self) -> None:
        usable, pick = self._usable(), self.world.pick
        if pick == "two":
            usable = [item for item in usable if item.code == "two"]
        if pick in ("only", "two") and len(usable) > 1:
            self.fail(17)
        elif usable:
            self._collect(usable)
        elif self.over and self._usable() and not self._rotten(pick):
            self.fail(17)
        elif self.over:
            self.result = self._unanswered("expired", 16)

    def _collect(self, usable: list[Item]) -> None:
        # Where two say the same time, or none says any, the one that was told of first is the
        # older.
        by_time = sorted(usable, key=lambda item: -1 if item.told is None else item.told)
        chosen = {"newest": by_time[-1:], "oldest": by_time[:1]}.get(self.world.pick, usable)
        ways = dict(zip(GOOD, self.world.cabinet, strict=True))
        values = [item.box for item in chosen]
        unusable = len(self.known) - len(self._usable())
        code = 14 if any(ways[value] == "denied" for value in values) else 13 if unusable else 0
        self.result = Expected(
            "collected", code, [each for each in values if ways[each] != "denied"], unusable
        )

    def _unanswered(self, status: str, code: int) -> Expected:
        unusable = len(self.known) - len(self._usable())
        return Expected(status, 13 if unusable else code, unusable=unusable)

    def _rotten(self, pick: str) -> bool:
        return any(item.code == pick and item.box not in GOOD for item in self.known.values())

    def _usable(self) -> list[Item]:
        return [item for item in self.known.values() if item.box in GOOD]


def expected(world: World) -> list[Expected]:
    """What the exchanges of a world that has been run should have led to, request by request."""
    machines = {world.code(number): Machine(world) for number in range(len(world.asked))}
    asked: set[str] = set()
    began = 0.0
    for at, code, what, told in world.trace:
        if what == "pause":
            asked = set()
            continue
        machine = machines[code]
        if not machine.tries and (what == "state" or code not in asked):
            began = at
            if code in asked:  # the last round follows without a pause when time is up
                asked = set()
        machine.asked_at = at
        machine.feed(what, told)
        asked.add(code)
        # What the caller may not do is the same for every request that would have been next.
        if told == "401":
            for name, other in machines.items():
                if other.result is None and name not in asked:
                    other.fail(AT_ONCE["401"])
        elif isinstance(told, str) and not machine.tries and not machine.result:
            asked = asked if began >= world.until else set()  # trouble ends a round, with time left
    return [machine.end() for machine in machines.values()]
