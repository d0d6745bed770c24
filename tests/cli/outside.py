"""What a kill leaves, told by what is outside of the command: at the service, on disk, printed and
delivered.

A state names no function, no time and no id, so that it outlives every change within: the same
kills have to reach the same states before and after. Those of each sweep are listed in
`kill_states/`; `reached.py` compares.
"""

from __future__ import annotations

import base64
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from sealpipe.api.operation import Credential
from sealpipe.state.journal import Journal, derive_key, read_header
from sealpipe_rehearsal.database import RehearsalDatabase
from support.job import Job
from support.terminal import Done

State = tuple[str, ...]
"""Lines, each of which begins with `asked`, `service`, `disk`, `printed` or `delivered`."""

KNOWN = frozenset({"v1", "shares", "requests", "submissions", "stats", "capabilities"})
"""The segments of a path that are no code."""
FOUND: Mapping[str, str] = {
    r"https?://\S+/s/\S+#\S+": "<share link>",
    r"https?://\S+/r/\S+": "<collect link>",
    r"p\.w\.[0-9a-f]+": "<password>",
    r"[gG][0-9a-fA-F]{10}": "<group>",
    r"(?:(?<=<group>[-/])|(?<=\t))[^/:\t.]+\.[0-9a-f]{8,}": "<submission>",
    r"\b[0-9a-f]{12}\b|\b[0-9a-f]{32}\b": "<id>",
    r"[\w-]{20,}": "<secret>",
}
"""What varies, as patterns, and what stands for it."""
FOLDERS = ("state", "work", "tmp")
IN_EVERY_ENTRY = frozenset(
    {"schema", "kind", "base_url", "link_base_url", "idempotency_key", "body_size"}
)


def look(job: Job, done: Done, delivered: Iterable[str] = ()) -> State:
    """What is there after a command of the job was killed.

    Looks before anybody asks the service with the job's key.
    """
    asked = [
        each
        for each in job.service.seen()
        if ("authorization", f"Bearer {_sent_part(job)}") in each.headers
    ]
    lines = tell_requests((each.method, each.target) for each in asked)
    lines += tell_service(job.service.service.database, job.account)
    lines += [f"disk {line}" for line in counted(_on_disk(job, asked))]
    lines += [f"printed {_scrub(job, line)}" for line in done.out.splitlines()]
    lines += [f"delivered {line}" for line in counted(_scrub(job, each) for each in delivered)]
    return tuple(lines)


def _sent_part(job: Job) -> str:
    return job.api_key.rpartition(".")[0]


def tell_requests(asked: Iterable[tuple[str, str]]) -> list[str]:
    """What was asked, of the methods and paths; nothing where nothing was."""
    sent = ", ".join(in_order(f"{method} {_template(target)}" for method, target in asked))
    return [f"asked {sent}"] if sent else []


def tell_service(store: RehearsalDatabase, account: str) -> list[str]:
    """What the service has of an account."""
    return [f"service {line}" for line in counted(_at_the_service(store, {"space": account}))]


def _template(target: str) -> str:
    segments = target.partition("?")[0].removeprefix("/v1").removeprefix("/").split("/")
    return "/" + "/".join(segment if segment in KNOWN else "{code}" for segment in segments)


def in_order(lines: Iterable[str]) -> list[str]:
    """Lines in their order, with a number where one follows itself."""
    return [_times(line, len(list(group))) for line, group in groupby(lines)]


def counted(lines: Iterable[str]) -> list[str]:
    """Lines sorted, with a number where there are several."""
    return [_times(line, number) for line, number in sorted(Counter(lines).items())]


def _times(line: str, number: int) -> str:
    return line if number == 1 else f"{line} ({number} times)"


def _at_the_service(store: RehearsalDatabase, space: Mapping[str, Any]) -> Iterator[str]:
    for row in store.rows(
        "SELECT ended_at FROM shares WHERE space = :space ORDER BY number", space
    ):
        yield "a share, ended" if row["ended_at"] is not None else "a share"
    for row in store.rows(
        "SELECT number, ended_at FROM requests WHERE space = :space ORDER BY number", space
    ):
        given = store.rows(
            "SELECT number FROM submissions WHERE request = :number", {"number": row["number"]}
        )
        yield f"a request, {len(given)} submitted{', ended' if row['ended_at'] is not None else ''}"


def _on_disk(job: Job, asked: Sequence[Any]) -> Iterator[str]:
    place = job.state.parent
    for path in sorted(place.rglob("*")):
        name = path.relative_to(place)
        if name.parts[0] not in FOLDERS and not name.parts[0].startswith("state-"):
            continue
        shown = _scrub(job, str(name))
        if path.is_dir():
            if not any(path.iterdir()) and name.parts[0] not in ("work", "tmp"):
                yield f"{shown}/"
        elif path.suffix == ".sealed":
            yield f"{shown}: {_entry(job, path, asked)}"
        elif path.suffix == ".jsonl":
            yield f"{shown}: {_ledger(job, path)}"
        else:
            yield f"{shown}: {_content(job, path.read_text())}"


def _entry(job: Job, path: Path, asked: Sequence[Any]) -> str:
    """An entry's notes that say something, how often its bytes were sent under its key, and what
    happened since.
    """
    salt = base64.b64decode(read_header(path)["salt"])
    journal, records = Journal.open(
        path, derive_key(Credential.parse(job.api_key), salt, b"sealpipe-outbox", 32)
    )
    journal.close()
    meta = json.loads(records[0][1])
    body = b"".join(payload for tag, payload in records if tag == b"B")
    events = [json.loads(payload) for tag, payload in records if tag == b"E"]
    keys = [meta["idempotency_key"], *(event["key"] for event in events if "key" in event)]
    sent = sum(
        each.body == body and ("idempotency-key", keys[-1]) in each.headers for each in asked
    )
    notes = " ".join(
        sorted(name for name, value in meta.items() if value and name not in IN_EVERY_ENTRY)
    )
    since = "".join(f", then {_event(job, event)}" for event in events)
    return f"{meta['kind']} ({notes}), sent {_times('as it is', sent) if sent else 'never'}{since}"


def _event(job: Job, event: Mapping[str, Any]) -> str:
    match event:
        case {"answered": dict(response)}:
            return f"answered ({_members(response)})"
        case {"delivery": [number, state]}:
            return f"message {number} {state}"
        case {"place": [place, state]}:
            return f"{_scrub(job, place)} {state}"
        case {"key": _}:
            return "another key"
        case {"stored": True}:
            return "stored"
    return json.dumps(event)


def _ledger(job: Job, path: Path) -> str:
    def line(members: Mapping[str, Any]) -> str:
        match members:
            case {"placing": {"place": str(place), "state": str(state)}}:
                return f"{_scrub(job, place)} {state}"
            case {"settled": str(outcome)}:
                return f"settled as {outcome}"
        return " ".join(
            each for each in members if each not in ("schema", "base_url", "short_code")
        )

    whole, _, rest = path.read_text().rpartition("\n")
    lines = [line(json.loads(each)) for each in whole.splitlines()] + ["a line cut off"] * bool(
        rest
    )
    return ", then ".join(in_order(lines))


def _content(job: Job, text: str) -> str:
    """The members of JSON that say something; else the text itself."""
    try:
        members = json.loads(text)
    except ValueError:
        members = None
    return (
        _members(members)
        if isinstance(members, dict)
        else _scrub(job, text).rstrip("\n").replace("\n", " | ")
    )


def _members(members: Mapping[str, Any]) -> str:
    """The names of members that say something, and the values that are words of ours."""
    words = {
        name: f"={value}"
        for name, value in members.items()
        if name in ("kind", "key", "custody", "outcome")
    }
    return " ".join(
        f"{name}{words.get(name, '')}"
        for name, value in sorted(members.items())
        if value not in (None, "")
    )


def _scrub(job: Job, text: str) -> str:
    """A text without what differs from run to run."""
    for pattern, name in FOUND.items():
        text = re.sub(pattern, name, text)
    for code in _codes(job):
        text = text.replace(code, "<code>")
    return text


def _codes(job: Job) -> list[str]:
    made = (
        "SELECT short_code FROM shares WHERE space = :space UNION SELECT short_code FROM "
        "requests WHERE space = :space"
    )
    answers = (
        "SELECT submissions.short_code FROM submissions JOIN requests ON requests.number = "
        "submissions.request WHERE requests.space = :space"
    )
    store = job.service.service.database
    return [
        row["short_code"]
        for sql in (made, answers)
        for row in store.rows(sql, {"space": job.account})
    ]
