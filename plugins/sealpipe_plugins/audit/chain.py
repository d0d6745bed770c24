"""The audit log's chain: each line has the mark of the one before it, so that none changes, goes or comes unseen.

    line  = {..., "seq": N, "prev": MARK, ["torn": SHA256,] "chain": KIND, "mac": MARK} LF
    mark  = HMAC-SHA256 under the key, or without one SHA-256, of the line's bytes without its `mac`; in hex

`prev` is the mark of the line before (64 zeros in the first), `torn` the digest of what a writer left that was cut off.
The last line's `seq:mac` is the head: whoever has it finds that lines are missing at the end, too. Without a key
whoever can write the file can make a whole chain of their own; then only a head that is kept elsewhere tells.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

FIRST_PREV: Final = "0" * 64
MAX_LINE: Final = 256 * 1024
"""Bytes of a line at most: so much of a file's end holds the last line, whatever is in it."""

_MAC: Final = re.compile(rb',"mac":"([0-9a-f]{64})"\}$')
_KINDS: Final = {True: "hmac-sha256", False: "sha256"}
_MAX_SEQ: Final = 2**63
"""No log has so many lines: a longer number could not even be written down."""
_MAX_ITEMS, _MAX_TEXT = 50, 200
"""Entries of a list, characters of a text, where a line would be too long."""


class Link(NamedTuple):
    """One line of a chain: its place, the mark before it, its own, and its bytes without that."""

    seq: int
    prev: str
    mac: str
    body: bytes
    members: Mapping[str, Any]

    @property
    def head(self) -> str:
        """What tells it from any other."""
        return f"{self.seq}:{self.mac}"

    def is_valid(self, key: bytes | None) -> bool:
        """Whether the mark is that of these bytes, under this key."""
        kind = self.members.get("chain") == _KINDS[key is not None]
        return kind and hmac.compare_digest(compute_mac(self.body, key), self.mac)


def compute_mac(body: bytes, key: bytes | None) -> str:
    """The mark of a line, in hex."""
    if key is None:
        return hashlib.sha256(body).hexdigest()
    return hmac.new(key, body, hashlib.sha256).hexdigest()


def make_link(event: Mapping[str, Any], previous: Link | None, torn: bytes, key: bytes | None) -> tuple[Link, bytes]:
    """The next line and its bytes. `torn` is what was cut off before it; empty for nothing."""
    seq, prev = (1, FIRST_PREV) if previous is None else (previous.seq + 1, previous.mac)
    chain_members = {
        "seq": seq,
        "prev": prev,
        **({"torn": sha256_hex(torn)} if torn else {}),
        "chain": _KINDS[key is not None],
    }
    members = {**event, **chain_members}
    body = _encode(members)
    if len(body) > MAX_LINE - 128:
        members = {**_shorten(event), **chain_members}
        body = _encode(members)
    mac = compute_mac(body, key)
    return Link(seq, prev, mac, body, members), body[:-1] + b',"mac":"' + mac.encode() + b'"}\n'


def parse_line(line: bytes) -> Link | None:
    """The link that a line (without its end) is; None for what is none. Whether its mark holds is not looked at."""
    match = _MAC.search(line)
    if match is None:
        return None
    body = line[: match.start()] + b"}"
    try:
        members = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(members, dict):
        return None
    seq, prev = members.get("seq"), members.get("prev")
    if not isinstance(seq, int) or isinstance(seq, bool) or not 0 < seq < _MAX_SEQ or not isinstance(prev, str):
        return None
    return Link(seq, prev, match[1].decode(), body, members)


def sha256_hex(data: bytes) -> str:
    """Of what was cut off."""
    return hashlib.sha256(data).hexdigest()


def find_last(tail: bytes) -> tuple[Link | None, bytes]:
    """The last link in the end of a file, and what comes after the last line's end: it was cut off.

    A whole line that lacks its end only is the last link, and nothing was cut off.
    """
    *lines, rest = tail.split(b"\n")
    complete_line = parse_line(rest) if rest else None
    if complete_line is not None:
        return complete_line, b""
    return next((match for line in reversed(lines) if (match := parse_line(line)) is not None), None), rest


def _encode(members: Mapping[str, Any]) -> bytes:
    return json.dumps(members, default=str, separators=(",", ":")).encode()


def _shorten(event: Mapping[str, Any]) -> dict[str, Any]:
    """An event whose lists and texts are too long, as much as there is room for, and how much was left out."""
    omitted = {
        name: len(value) - _MAX_ITEMS for name, value in event.items() if _is_list(value) and len(value) > _MAX_ITEMS
    }
    shortened: dict[str, object] = {}
    for name, value in event.items():
        is_list = isinstance(value, list | tuple)
        shortened[name] = [_shorten_value(each) for each in value[:_MAX_ITEMS]] if is_list else _shorten_value(value)
    return {**shortened, "left_out": omitted}


def _is_list(value: object) -> bool:
    return isinstance(value, list | tuple)


def _shorten_value(value: object) -> object:
    return value if value is None or isinstance(value, bool | int | float) else str(value)[:_MAX_TEXT]
