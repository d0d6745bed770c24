"""The hash chain of the audit log.

Each line contains the MAC of the previous line, so every change is detectable.

    line  = {..., "stream": NAME, "seq": N, "prev": MARK, ["torn": SHA256,] "chain": KIND,
             "mac": MARK} LF
    mark  = HMAC-SHA256 under the key (without one, SHA-256) of the line without its `mac`, in hex

`stream` is a random name that the first line gives to the chain, so that the lines of many chains
can be told apart. `prev` is the MAC of the previous line (64 zeros in the first), `torn` the digest
of a truncated line before this one. The last line's `seq:mac` is the head: anyone who has it can
also detect missing lines at the end. Without a key, anyone who can write the file can forge a whole
chain; then only a head stored elsewhere reveals it.
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
"""Maximum bytes of a line: this much of a file's end always holds the last line."""

_MAC: Final = re.compile(rb',"mac":"([0-9a-f]{64})"\}$')
_KINDS: Final = {True: "hmac-sha256", False: "sha256"}
_MAX_SEQ: Final = 2**63
"""Upper bound of a line's number."""
_MAX_ITEMS, _MAX_TEXT = 50, 200
"""Limits of a list's items and a text's characters, if a line would be too long."""


class Link(NamedTuple):
    """One line of a chain.

    `prev` and `mac` are the MACs of the line before and of this one; `body` lacks `mac`.
    """

    seq: int
    prev: str
    mac: str
    body: bytes
    members: Mapping[str, Any]

    @property
    def head(self) -> str:
        """The line's `seq:mac`, which identifies it."""
        return f"{self.seq}:{self.mac}"

    def is_valid(self, key: bytes | None) -> bool:
        """Return whether the MAC matches these bytes under this key."""
        kind = self.members.get("chain") == _KINDS[key is not None]
        return kind and hmac.compare_digest(compute_mac(self.body, key), self.mac)

    @property
    def is_keyed(self) -> bool:
        """Whether it says that its MAC was made under a key."""
        return self.members.get("chain") == _KINDS[True]

    def find_fault(self, key: bytes | None) -> str:
        """Return what is wrong with the line by itself, to follow its number; empty if nothing."""
        if self.is_valid(key):
            return ""
        if key is None:
            return "cannot be verified without its key" if self.is_keyed else "was changed"
        if self.is_valid(None):
            return "is not protected by the key: it was written without one, or forged"
        return "was changed, or written under another key"


def compute_mac(body: bytes, key: bytes | None) -> str:
    """Return the MAC of a line, in hex."""
    if key is None:
        return hashlib.sha256(body).hexdigest()
    return hmac.new(key, body, hashlib.sha256).hexdigest()


def make_link(
    event: Mapping[str, Any],
    previous: Link | None,
    torn: bytes,
    key: bytes | None,
    new_stream: str,
) -> tuple[Link, bytes]:
    """Return the next line and its bytes. `torn` is a truncated line before it, or empty.

    `new_stream` names the chain if this is its first line. The chains of earlier versions have no
    name.
    """
    seq, prev = (1, FIRST_PREV) if previous is None else (previous.seq + 1, previous.mac)
    stream = new_stream if previous is None else previous.members.get("stream")
    chain_members = {
        **({} if stream is None else {"stream": stream}),
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
    """Parse a line without its line end; None if it is not a link. Does not verify the MAC."""
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
    seq, prev = read_seq(members), members.get("prev")
    if seq is None or not isinstance(prev, str):
        return None
    return Link(seq, prev, match[1].decode(), body, members)


def read_seq(members: Mapping[str, Any]) -> int | None:
    """Return the number that a line gives itself; None if it has no valid one."""
    seq = members.get("seq")
    is_valid = isinstance(seq, int) and not isinstance(seq, bool) and 0 < seq < _MAX_SEQ
    return seq if is_valid else None


def sha256_hex(data: bytes) -> str:
    """Return the SHA-256 digest of a truncated line, or of what is before a position."""
    return hashlib.sha256(data).hexdigest()


def find_last(tail: bytes) -> tuple[Link | None, bytes]:
    """Return the last link in the end of a file, and the truncated line after it.

    A complete line without a newline is the last link.
    """
    *lines, rest = tail.split(b"\n")
    complete_line = parse_line(rest) if rest else None
    if complete_line is not None:
        return complete_line, b""
    return next(
        (match for line in reversed(lines) if (match := parse_line(line)) is not None), None
    ), rest


def _encode(members: Mapping[str, Any]) -> bytes:
    return json.dumps(members, default=str, separators=(",", ":")).encode()


def _shorten(event: Mapping[str, Any]) -> dict[str, Any]:
    """Shorten an event's lists and texts, and add how many items were left out."""
    omitted = {
        name: len(value) - _MAX_ITEMS
        for name, value in event.items()
        if _is_list(value) and len(value) > _MAX_ITEMS
    }
    shortened: dict[str, object] = {}
    for name, value in event.items():
        is_list = isinstance(value, list | tuple)
        shortened[name] = (
            [_shorten_value(each) for each in value[:_MAX_ITEMS]]
            if is_list
            else _shorten_value(value)
        )
    return {**shortened, "left_out": omitted}


def _is_list(value: object) -> bool:
    return isinstance(value, list | tuple)


def _shorten_value(value: object) -> object:
    return (
        value if value is None or isinstance(value, bool | int | float) else str(value)[:_MAX_TEXT]
    )
