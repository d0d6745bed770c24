"""The receipt of a request, which `collect` needs: the prompts' ids and the public key.

No secret.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal

from sealpipe.errors import EncodingError, UsageError
from sealpipe.parsing import (
    find_nearest_file,
    format_optional_time,
    parse_link_base_url,
    parse_name,
    parse_time,
)
from sealpipe.prompts import Prompt, check_prompt, check_prompts
from sealpipe.state.creations import KnownLink, read_flag
from sealpipe.state.files import refuse_newer
from sealpipe.wire import link
from sealpipe.wire.encoding import decode_base64url

MAX_SIZE: Final = 1024 * 1024
"""Maximum size in bytes of a receipt."""
_TAKEN_BY: Final[Mapping[str, tuple[str, str]]] = {
    "request": ("a request receipt", "give it to `sealpipe collect` or `sealpipe requests expire`"),
    "share": ("a share receipt", "give it to `sealpipe shares expire`"),
    "batch-plan": ("the plan of a batch", "give it to `sealpipe batch run FILE` with --plan"),
}
"""JSON files that our commands write, by their `kind`: what they are, and what takes them."""

RequestKey = Literal["credential", "new", "given"]
"""The key that a request is sealed to: the credential's, a fresh one, or the caller's."""


_OPTIONAL: Final = ("seed", "name", "link", "run")
"""Members that are left out if they are not set."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """A request to collect.

    `public_key` is base64url of 65 bytes; `seed` is the reference to a fresh key's seed.

    `name` is the owner's, `link` the collect link, `run` the CI run that created it. Older receipts
    have none of them.
    """

    short_code: str
    public_key: str
    prompts: tuple[Prompt, ...]
    key: RequestKey = "credential"
    expires_at: datetime | None = None
    title: str | None = None
    seed: str | None = None
    name: str | None = None
    link: str | None = None
    run: str | None = None

    def to_members(self) -> dict[str, Any]:
        """Return the receipt as JSON members."""
        members = {
            "schema": 1,
            "kind": "request",
            "short_code": self.short_code,
            "public_key": self.public_key,
            "expires_at": format_optional_time(self.expires_at),
            "prompts": [each._asdict() for each in self.prompts],
            "key": self.key,
            "title": self.title,
        }
        optional = {name: getattr(self, name) for name in _OPTIONAL}
        return members | {name: value for name, value in optional.items() if value is not None}

    def to_creation(self) -> KnownLink:
        """Return what it says about the request's creation. It does not name the service."""
        known = (self.expires_at, self.name, self.title, self.run or "", self.link, self.public_key)
        return KnownLink("request", "", self.short_code, *known)

    @staticmethod
    def load(text: str) -> Receipt:
        """Parse a receipt from the text of `dump`. Raises UsageError."""
        return parse_receipt(text)

    def dump(self) -> str:
        """Return the receipt as a line of JSON."""
        return json.dumps(self.to_members()) + "\n"


def identify_file(members: object, expected: str) -> tuple[str, str] | None:
    """Return which other command's JSON file this is, and what takes it; None if unknown."""
    kind = members.get("kind") if isinstance(members, Mapping) and "schema" in members else None
    return _TAKEN_BY.get(str(kind)) if kind != expected else None


def _refuse(members: object, kind: str, remedy: str) -> UsageError:
    """Return the error for a file that is not a receipt of this kind."""
    other = identify_file(members, kind)
    if other:
        return UsageError(f"this is {other[0]}, not a {kind} receipt", remedy=other[1])
    return UsageError(f"this is not a {kind} receipt", remedy=remedy)


def parse_receipt(text: str) -> Receipt:
    """Parse a receipt from its JSON. Raises UsageError, which shows nothing of the text."""
    members: Any = None
    with suppress(ValueError, RecursionError):
        members = json.loads(text)
    refuse_newer(members, "this receipt", UsageError)
    try:
        if members["schema"] != 1 or members["kind"] != "request":
            raise ValueError
        return Receipt(
            _read_code(members),
            _read_point(members),
            check_prompts([check_prompt(Prompt(**_read_texts(row))) for row in members["prompts"]]),
            _read_key(members["key"]),
            _read_optional_time(members, "expires_at"),
            None if members.get("title") is None else _read_text(members, "title"),
            None if members.get("seed") is None else _read_line(members, "seed"),
            None if members.get("name") is None else parse_name(_read_text(members, "name")),
            None if members.get("link") is None else _read_link(members),
            None if members.get("run") is None else _read_line(members, "run"),
        )
    except (
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        RecursionError,
        UsageError,
        EncodingError,
    ):
        pass
    raise _refuse(members, "request", "give the file that `sealpipe request --receipt` wrote")


def read_receipt(path: Path) -> Receipt:
    """Read a receipt from its file. Raises UsageError."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_SIZE + 1)
        return parse_receipt(_decode_utf8(content) if len(content) <= MAX_SIZE else "")
    except OSError as error:
        raise UsageError(
            f"the receipt {path} cannot be read: {error.strerror}",
            remedy=f"{_suggest(path)}a short code that looks like a file is written code:WORD",
        ) from None
    except UsageError as error:
        raise UsageError(f"{path}: {error.message}", remedy=error.remedy) from None


def _suggest(path: Path) -> str:
    near = find_nearest_file(path)
    return f"did you mean {near}? Else " if near else "check the path; "


def read_share_receipt(path: Path) -> KnownLink:
    """Read the file that `share --receipt` wrote.

    Raises UsageError, which shows nothing of the text.
    """
    members: Any = None
    try:
        with path.open("rb") as file:
            members = json.loads(file.read(MAX_SIZE))
        refuse_newer(members, f"{path}: this receipt", UsageError)
        if members["schema"] == 1 and members["kind"] == "share":
            name, title = (
                members.get(each) and _read_text(members, each) for each in ("name", "title")
            )
            return KnownLink(
                "share",
                "",
                _read_code(members),
                name=name,
                title=title,
                run=str(members.get("run", "")),
                is_used_up_by_opening=read_flag(members.get("used_up_by_opening")),
                created_at=_read_optional_time(members, "created_at"),
            )
    except OSError as error:
        raise UsageError(
            f"the receipt {path} cannot be read: {error.strerror}", remedy="check the path"
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass
    refusal = _refuse(members, "share", "give the file that `sealpipe share --receipt` wrote")
    raise UsageError(f"{path}: {refusal.message}", remedy=refusal.remedy)


def _decode_utf8(content: bytes) -> str:
    """Decode the text. Invalid UTF-8 becomes empty text, which is not a valid receipt."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return ""


def _read_text(members: Mapping[str, Any], name: str) -> str:
    value = members[name]
    if not isinstance(value, str) or not value:
        raise ValueError
    return value


def _read_optional_time(members: Mapping[str, Any], name: str) -> datetime | None:
    if members.get(name) is None:
        return None
    try:
        return parse_time(_read_text(members, name))
    except UsageError:
        raise ValueError from None


def _read_line(members: Mapping[str, Any], name: str) -> str:
    value = _read_text(members, name)
    if not value.isprintable():
        raise ValueError
    return value


def _read_code(members: Mapping[str, Any]) -> str:
    """Read a short code, in a form that the service may use."""
    value = _read_line(members, "short_code")
    if value in (".", ".."):
        raise ValueError
    return value


def _read_link(members: Mapping[str, Any]) -> str:
    """Read the collect link: to this request, on an address that links may have."""
    value = _read_line(members, "link")
    base, code = link.split_collect_link(value)
    if code != _read_code(members) or parse_link_base_url(base) != base:
        raise ValueError
    return value


def _read_point(members: Mapping[str, Any]) -> str:
    value = _read_text(members, "public_key")
    if len(decode_base64url(value)) != 65:
        raise ValueError
    return value


def _read_texts(row: Mapping[str, Any]) -> dict[str, str]:
    return {name: _read_text(row, name) for name in ("id", "text", "type")}


def _read_key(value: object) -> RequestKey:
    kinds: tuple[RequestKey, ...] = ("credential", "new", "given")
    return kinds[kinds.index(value)]  # ValueError for any other value
