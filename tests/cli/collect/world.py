"""A service that answers GETs as a script says, a cabinet to store in, and time that passes only in
waiting.

What hypothesis draws is a `World`: requests, what is submitted to each and when, how each answer
goes wrong.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

from hypothesis import strategies as st

from sealpipe.api.operation import Failure, Operation, Response
from sealpipe.collect import poll
from sealpipe.collect.options import CollectPlan
from sealpipe.collect.results import CollectResult
from sealpipe.config import Config
from sealpipe.plugin import (
    AccessDeniedError,
    Locator,
    Mode,
    Sink,
    SinkField,
    SinkInfo,
    UnavailableError,
    WriteResult,
    hookimpl,
)
from sealpipe.registry import Registry
from sealpipe.session import Session, open_session
from sealpipe.wire import keys, sealed_box
from sealpipe.wire.encoding import encode_base64url
from support.playing import PlayedNetwork, play

CUSTODY = "A" * 43
API_KEY = f"svc_sk_live_{'A' * 16}.{'A' * 43}.{CUSTODY}"
URL = "http://127.0.0.1:9/v1"
OURS, THEIRS = keys.from_custody_secret(CUSTODY), keys.from_seed(bytes(range(32)))
TARGET = "cabinet:{request}/{submission}#password=Password"
START = datetime(2026, 11, 21, tzinfo=UTC)


def _sealed(pair: keys.KeyPair, *fields: tuple[str, str]) -> str:
    rows = [{"key": key, "value": value, "type": "password"} for key, value in fields]
    return sealed_box.seal(pair.public_key, json.dumps(rows).encode())


GOOD = tuple(f"value {number}" for number in range(4))
BOXES: dict[str, str | None] = {
    **{value: _sealed(OURS, ("Password", value)) for value in GOOD},
    "no answer": _sealed(OURS, ("Other", "x")),
    "two answers": _sealed(OURS, ("Password", "x"), ("Password", "y")),
    "empty": _sealed(OURS, ("Password", "")),
    "no fields": sealed_box.seal(OURS.public_key, b"[1"),
    "another key": _sealed(THEIRS, ("Password", "x")),
    "no box": "AAAA",
    "nothing": None,
}
"""What may be submitted: what each of `GOOD` holds is its name, the others are of no use."""

FAULTS: dict[str, Response | Failure] = {
    "429": Response(429, {}, b'{"error_code": 107, "message": "slow"}'),
    "500": Response(500, {}, b'{"error_code": 11, "message": "oops"}'),
    "502": Response(502, {}, b"<html>"),
    "cut": Failure(sent=True, detail="the connection broke"),
    "refused": Failure(sent=False, detail="no connection"),
    "garbled": Response(200, {}, b"{"),
    "404": Response(404, {}, b'{"error_code": 70, "message": "no"}'),
    "401": Response(401, {}, b'{"message": "Unauthorized"}'),
}
"""What an answer can be in place of the right one."""


@dataclass(frozen=True)
class Item:
    """A submission: when it comes, its short code, when it says it came, and which of `BOXES` it
    is.
    """

    at: int
    code: str
    told: int | None
    box: str


@dataclass(frozen=True)
class Asked:
    """A request: what is submitted, when it ends, and when the service begins to show another
    key.
    """

    items: tuple[Item, ...]
    ends: int | None
    swapped: int | None


@dataclass
class World:
    """What is there, how answers go wrong (one of `FAULTS`, or how a list is told), what the
    cabinet does.
    """

    asked: tuple[Asked, ...]
    faults: tuple[str, ...]
    pick: str
    wait: int
    cabinet: tuple[str, ...]
    now: float = 0.0
    until: float = 0.0
    """When waiting is to end."""
    trace: list[tuple[float, str, str, Any]] = field(default_factory=list)
    """Each exchange: when, the request's code, `state` or `items`, and the name of a fault, or what
    was told.

    Between two rounds of looks there is a `pause`.
    """
    _sent: int = 0

    def code(self, number: int) -> str:
        return f"request{number}"

    def send(self, operation: Operation[Any], _timeout: float) -> Response | Failure:
        assert operation.method == "GET", "nothing here is to be changed at the service"
        code, _, rest = operation.path.removeprefix("/requests/").partition("/")
        what = "items" if rest else "state"
        how = self.faults[self._sent] if self._sent < len(self.faults) else "right"
        self._sent += 1
        if how in FAULTS:
            self.trace.append((self.now, code, what, how))
            return FAULTS[how]
        told = self._items(code, how) if rest else self._state(code)
        self.trace.append((self.now, code, what, told))
        return Response(200, {}, json.dumps(self._listed(told) if rest else told).encode())

    def _state(self, code: str) -> dict[str, Any]:
        asked = self._of(code)
        if asked.ends is not None and asked.ends <= self.now:
            return {"short_code": code, "expired_at": None, "public_key": None}
        pair = THEIRS if asked.swapped is not None and asked.swapped <= self.now else OURS
        key = encode_base64url(pair.public_key)
        return {"short_code": code, "expired_at": "2036-11-21T00:00:00Z", "public_key": key}

    def _items(self, code: str, how: str) -> list[Item]:
        there = [item for item in self._of(code).items if item.at <= self.now]
        return {"dropped": there[1:], "repeated": there + there, "reversed": there[::-1]}.get(
            how, there
        )

    def _listed(self, items: Sequence[Item]) -> dict[str, Any]:
        rows = [
            {
                "short_code": item.code,
                "created_at": None
                if item.told is None
                else (START + timedelta(seconds=item.told)).isoformat(),
                "encryption_type": "e2ee-ecdh-p256",
                "data": BOXES[item.box],
            }
            for item in items
        ]
        return {"submissions": rows, "count": len(rows), "skipped_not_end_to_end_encrypted": 0}

    def _of(self, code: str) -> Asked:
        return self.asked[int(code.removeprefix("request"))]

    def collect(self, session: Session, options: CollectPlan) -> list[CollectResult]:
        """Collect in this world."""
        here = session.with_transport(PlayedNetwork(self.send))
        return play(lambda: poll.collect(here, options, clock=lambda: self.now), self._wait)

    def _wait(self, seconds: float) -> None:
        self.now += seconds


class Cabinet(Sink):
    """A sink in memory. `ways` says how each value fares: `denied`, or not at the first time
    (`once`).

    `puts` are the places in the order in which they were written.
    """

    values: ClassVar[dict[str, str]] = {}
    puts: ClassVar[list[str]] = []
    ways: ClassVar[dict[str, str]] = {}

    def describe(self, locator: Locator, mode: Mode) -> str:
        return f"{mode} {locator.body}"

    def put(
        self,
        locator: Locator,
        fields: Sequence[SinkField],
        *,
        mode: Mode,  # noqa: ARG002
        marker: str,  # noqa: ARG002
    ) -> WriteResult:
        (value,) = (each.value.reveal() for each in fields)
        way = self.ways.get(value, "")
        if way == "denied":
            raise AccessDeniedError("no", locator=locator.text)
        if way == "once":
            self.ways[value] = ""
            raise UnavailableError("not now", locator=locator.text)
        if locator.body in self.values:
            return WriteResult(locator, already=True)
        self.values[locator.body] = value
        self.puts.append(locator.body)
        return WriteResult(locator)


@hookimpl
def sealpipe_sinks(register: Callable[[SinkInfo], None]) -> None:
    register(SinkInfo("cabinet", "a cabinet", "cli.collect.world:Cabinet"))


def session() -> Session:
    """A client's, with the cabinet as its only sink."""
    made = Registry(environ={}, built_in=(__name__,))
    return open_session(
        Config({}),
        lambda *_: made,
        api_key=API_KEY,
        base_url=URL,
        link_base_url=URL.removesuffix("/v1"),
    )


def open_cabinet(ways: Sequence[str]) -> type[Cabinet]:
    """Empty, and as it treats each value."""
    Cabinet.values, Cabinet.puts = {}, []
    Cabinet.ways = dict(zip(GOOD, ways, strict=True))
    return Cabinet


_MOMENTS = st.integers(0, 900)
_ITEMS = st.builds(
    Item,
    at=_MOMENTS | st.just(0),
    code=st.sampled_from(["one", "two", "three", "../x"]),
    told=st.none() | st.integers(0, 3),
    box=st.sampled_from(GOOD) | st.sampled_from(list(BOXES)),
)
_ASKED = st.builds(
    Asked,
    items=st.lists(_ITEMS, max_size=4, unique_by=lambda item: (item.code, item.box)).map(tuple),
    ends=st.none() | _MOMENTS | st.just(0),
    swapped=st.none() | st.none() | st.none() | _MOMENTS,
)
_PASSING = ["429", "500", "502", "cut", "refused", "garbled"]
_HOW = st.sampled_from(
    ["right"] * 9 + ["dropped", "repeated", "reversed"] * 2 + _PASSING + ["404", "401"]
)
_RUN = st.builds(lambda how, times: [how] * times, _HOW, st.sampled_from([1, 1, 2, 5, 6]))

WORLDS: st.SearchStrategy[World] = st.builds(
    World,
    asked=st.lists(_ASKED, min_size=1, max_size=3).map(tuple),
    faults=st.lists(_RUN, max_size=12).map(lambda runs: tuple(how for run in runs for how in run)),
    pick=st.sampled_from(["only", "only", "newest", "oldest", "each", "two"]),
    wait=st.sampled_from([0, 40, 900]),
    cabinet=st.tuples(*[st.sampled_from(["", "", "denied", "once"])] * 4),
)
