"""What this machine knows of the shares and requests that it created.

Name, title, collect link and CI run.

Each is a small 0600 file of one JSON line in a 0700 folder, written once, as soon as the service
has responded. None holds a secret: a collect link has no key. Lists show them, and shares and
requests can be expired by them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Literal

from sealpipe.errors import StateError, UsageError
from sealpipe.parsing import format_optional_time, format_time, parse_time
from sealpipe.state.files import create_file, make_private_directory, refuse_newer

REPEAT_SECONDS: Final = 600.0
"""For how long the same call of an assistant sends nothing twice."""
_MAX_SIZE: Final = 1024 * 1024
Kind = Literal["share", "request"]


@dataclass(frozen=True, slots=True)
class KnownLink:
    """What is known of a share or a request of the service at `base_url`, from a receipt, say.

    What it does not have, or what is not known, is None.

    `run` is the CI run that it belongs to, as an outbox entry and the audit log name it; empty
    outside CI. `link` is a request's collect link; a share's is never kept. `public_key` is a
    request's, base64url of 65 bytes. `is_used_up_by_opening` says that a share has one view and no
    passcode, so that only opening it uses it up. `notes` are those of the program that created it,
    as JSON: no secret.
    """

    kind: Kind
    base_url: str
    short_code: str
    expires_at: datetime | None = None
    name: str | None = None
    title: str | None = None
    run: str = ""
    link: str | None = None
    public_key: str | None = None
    is_used_up_by_opening: bool | None = field(default=None, kw_only=True)
    created_at: datetime | None = field(default=None, kw_only=True)
    notes: Mapping[str, Any] = field(default_factory=dict, kw_only=True)

    def is_of_run(self, run: str) -> bool:
        """Return whether it belongs to a run.

        The beginning of a run, up to a slash, stands for all of it: `org/app/123` for every job of
        run 123. One that ends in a slash stands for itself only: its last part may be a variable
        that is not set.
        """
        return self.run == run or f"{self.run}/".startswith(f"{run}/")


@dataclass(frozen=True, slots=True)
class Creation(KnownLink):
    """What was recorded of a share or a request when this machine created it."""

    created_at: datetime = field(kw_only=True)


def note_creation(folder: Path, creation: Creation) -> None:
    """Record a creation; one that is recorded stays as it is. Raises StateError."""
    path = make_private_directory(folder) / _make_name(
        creation.base_url, creation.kind, creation.short_code
    )
    line = (
        json.dumps({"schema": 1, **_to_members(creation)}, separators=(",", ":")).encode() + b"\n"
    )
    try:
        with suppress(FileExistsError):
            create_file(path, lambda: [line])
    except OSError as error:
        raise StateError(f"{path} cannot be written: {error.strerror}") from None


def find_creation(folder: Path, base_url: str, kind: Kind, short_code: str) -> Creation | None:
    """Return what is known of a share or a request; None if nothing is."""
    found = _read(folder / _make_name(base_url, kind, short_code))
    is_it = found is not None and (found.base_url, found.kind, found.short_code) == (
        base_url,
        kind,
        short_code,
    )
    return found if is_it else None


def list_creations(
    folder: Path, kind: Kind | None, base_url: str | None = None, *, is_strict: bool = False
) -> list[Creation]:
    """List all that is known, of a kind and one service or of every one: newest first.

    A damaged file, or one that a newer sealpipe wrote, is left out. If `is_strict`, it is a
    StateError; a damaged one only for `REPEAT_SECONDS`, in which it may be of the same call.
    """
    paths = sorted(folder.glob("*.json"), key=_read_age, reverse=True)  # times are in whole seconds
    found = filter(None, (_read(path, is_strict=is_strict) for path in paths))
    chosen = [
        each for each in found if kind in (None, each.kind) and base_url in (None, each.base_url)
    ]
    return sorted(chosen, key=lambda each: each.created_at, reverse=True)


def _read_age(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _make_name(base_url: str, kind: Kind, short_code: str) -> str:
    return (
        sha256(f"{base_url}\n{kind}\n{short_code}".encode(errors="surrogatepass")).hexdigest()[:32]
        + ".json"
    )


def _to_members(creation: Creation) -> dict[str, Any]:
    expires_at = format_optional_time(creation.expires_at)
    return {
        "kind": creation.kind,
        "base_url": creation.base_url,
        "short_code": creation.short_code,
        "created_at": format_time(creation.created_at),
        "expires_at": expires_at,
        "name": creation.name,
        "title": creation.title,
        "run": creation.run,
        "link": creation.link,
        "public_key": creation.public_key,
        **(
            {"used_up_by_opening": creation.is_used_up_by_opening}
            if creation.is_used_up_by_opening is not None
            else {}
        ),
        **({"notes": creation.notes} if creation.notes else {}),
    }


def _read(path: Path, *, is_strict: bool = False) -> Creation | None:
    """Read a file; None if there is none, or it is no creation.

    Members that are not known are ignored.
    """
    try:
        with path.open("rb") as file:
            members = json.loads(file.read(_MAX_SIZE))
            if is_strict:
                refuse_newer(members, str(path))
            return _parse(members)
    except FileNotFoundError:
        return None
    except StateError:
        raise
    except OSError as error:
        if is_strict:
            raise StateError(f"the record {path} cannot be read: {error.strerror}") from None
        return None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, UsageError):
        if is_strict and time.time() - _read_age(path) / 1e9 < REPEAT_SECONDS:
            raise StateError(
                f"the record {path} is damaged, and may be of this call; nothing was sent",
                remedy="look whether what you want is in `sealpipe shares list` or `sealpipe "
                "requests list`; if not, move the file away, or wait ten minutes",
            ) from None
        return None


def _parse(members: Mapping[str, Any]) -> Creation:
    kind: Kind = "share" if members["kind"] == "share" else "request"
    if members["schema"] != 1 or members["kind"] != kind:
        raise ValueError
    ends = members.get("expires_at")
    return Creation(
        kind,
        _read_text(members["base_url"]),
        _read_text(members["short_code"]),
        None if ends is None else parse_time(ends),
        _read_optional(members.get("name")),
        _read_optional(members.get("title")),
        _read_text(members.get("run", "")),
        _read_optional(members.get("link")),
        _read_optional(members.get("public_key")),
        is_used_up_by_opening=read_flag(members.get("used_up_by_opening")),
        created_at=parse_time(members["created_at"]),
        notes=members.get("notes") or {},
    )


def read_flag(value: object) -> bool | None:
    """Return a member that is true, false or missing. Raises TypeError."""
    if value is not None and not isinstance(value, bool):
        raise TypeError
    return value


def _read_text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _read_optional(value: object) -> str | None:
    return None if value is None else _read_text(value)
