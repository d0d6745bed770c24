"""What must come of hostile submissions, said from how each was made; nothing of the code under
test is asked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from hypothesis import strategies as st

from sealpipe.prompts import Prompt
from support.hostile import NO_TIMES, PASSWORD, USER, Hostile, Row, rows

BATCH = 25
PROMPTS = (Prompt("staging_password", PASSWORD, "password"), Prompt("user", USER, "text"))
MOST_FILES = 1000
_PLAIN = re.compile(r"[A-Za-z0-9._-]+")
_WHITE = " \t\n\r\v\f"


class Take(NamedTuple):
    """A target: its sink, its folder, each key with the label of its value (None: the one field),
    its parameters.
    """

    sink: str
    folder: str
    keys: Mapping[str, str | None]
    selector: str
    params: str = ""

    def text(self, place: str) -> str:
        end = {"file": ".pw", "dotenv": ".env", "dir": ""}[self.sink]
        return f"{self.sink}:{self.folder}/{place}{end}{self.params}{self.selector}"


_BOTH = {"PASSWORD": PASSWORD, "USER_NAME": USER}
WAYS: Mapping[str, tuple[tuple[Take, ...], bool]] = {
    "by ids": (
        (
            Take("file", "f", {"": PASSWORD}, "#staging_password"),
            Take("dotenv", "e", _BOTH, "#PASSWORD=staging_password,USER_NAME=user"),
            Take("dir", "d", {"staging_password": PASSWORD, "user": USER}, "#*"),
        ),
        True,
    ),
    "by labels": (
        (
            Take("file", "f", {"": PASSWORD}, f"#x={PASSWORD}"),
            Take("dotenv", "e", _BOTH, f"#PASSWORD={PASSWORD},USER_NAME={USER}"),
            Take("dir", "d", {"password": PASSWORD}, f"#password={PASSWORD}"),
        ),
        False,
    ),
    "optional, trimmed": (
        (
            Take("file", "f", {"": PASSWORD}, "#staging_password", "?optional=1&trim=1"),
            Take(
                "dotenv",
                "e",
                _BOTH,
                "#PASSWORD=staging_password,USER_NAME=user",
                "?optional=1&trim=1",
            ),
        ),
        True,
    ),
    "the one field": ((Take("file", "f", {"": None}, ""),), False),
    "a folder by ids": ((), True),
    "a folder": ((), False),
}
"""How results are taken, and whether by a receipt. Without a target, into --dir."""


class Batch(NamedTuple):
    """Submissions of one request (`together`), or each of a request of its own; `lie` is what the
    service says once.
    """

    rows: tuple[Row, ...]
    way: str
    together: bool
    lie: Any


_LIES = (
    *({"created_at": time} for time in NO_TIMES),
    {"data": 1},
    {"short_code": ["x"]},
    {"data": {"a": "b"}},
)
batches = st.builds(
    Batch,
    st.lists(rows, min_size=BATCH, max_size=BATCH).map(tuple),
    st.sampled_from(sorted(WAYS)),
    st.booleans(),
    st.sampled_from((None,) * 200 + _LIES),
)


def taken(sent: Hostile, takes: Sequence[Take]) -> list[dict[str, str]] | None:
    """What each target gets of it; None where it does not answer what is taken of it."""
    if sent.fields is None or (not takes and len(sent.fields) > MOST_FILES):
        return None
    taken = []
    for take in takes:
        values: dict[str, str] = {}
        for key, label in take.keys.items():
            if label is None and len(sent.fields) != 1:
                return None
            found = {value for name, value, _ in sent.fields if label in (name, None)}
            if len(found) > 1:
                return None
            value = found.pop() if found else ""
            value = value.strip(_WHITE) if "trim" in take.params else value
            if not value and "optional" not in take.params:
                return None
            values |= {key: value} if value else {}
        taken.append(values)
    return taken


def anybodys(values: Mapping[str, str]) -> bool:
    """Whether every reader of dotenv files knows them."""
    return all(_PLAIN.fullmatch(value) and len(value) < 60_000 for value in values.values())


def folder_of(row: Row, place: str, *, by_receipt: bool) -> dict[str, bytes]:
    """What `--dir` makes of a submission: a file for each field under a name of ours, and one that
    tells which.
    """
    ids = {prompt.text: prompt.id for prompt in PROMPTS} if by_receipt else {}
    fields = row.sent.fields or ()
    names = [ids.pop(key, f"field-{number}") for number, (key, _, _) in enumerate(fields, 1)]
    files = {
        f"{place}/{name}": value.encode() for name, (_, value, _) in zip(names, fields, strict=True)
    }
    index = {
        "schema": 1,
        "short_code": row.short_code,
        "created_at": _utc(row.created_at),
        "fields": [
            {"file": name, "key": key, "type": kind}
            for name, (key, _, kind) in zip(names, fields, strict=True)
        ],
    }
    return {**files, f"{place}/index.json": (json.dumps(index) + "\n").encode()}


def _utc(time: str | None) -> str | None:
    known = {"2026-11-21T10:00:00.123456789+14:00": "2026-11-20T20:00:00Z"}
    known |= {"2026-11-21 10:00:00-23:59": "2026-11-22T09:59:00Z"}
    return None if time is None else known.get(time, time)
