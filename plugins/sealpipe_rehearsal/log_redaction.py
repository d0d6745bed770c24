"""Keeps custody secrets out of the log, wherever in a request they came.

Specification: Credential, 3.

The service knows the SHA-256 of each custody secret, which only a rehearsal is told. It compares
every text of 43 characters of base64url that a request has, also one that was put together from
short texts. Texts of more than 16 KiB are ciphertext and are not searched: hashing each of their
positions would cost a second for each MiB.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from hashlib import sha256
from itertools import permutations
from typing import Any
from urllib.parse import unquote, unquote_plus

PLACEHOLDER = "[withheld: a custody secret came here]"
CUSTODY_PLACEHOLDER = "[custody part withheld]"
LONGEST = 16 * 1024
_SIZE = 43
_RUN = re.compile(rb"[A-Za-z0-9_-]{43,}")
_PIECE = re.compile(r"[A-Za-z0-9_-]{1,42}")
_CREDENTIAL = re.compile(r"_sk_live_[A-Za-z0-9_-]{16}\.[A-Za-z0-9_-]{43}\.[A-Za-z0-9_-]{43}")
_MOST_PIECES = 60
"""Pairs of pieces are compared up to this number; beyond it, only pieces that follow each other."""

Headers = tuple[tuple[str, str], ...]


def redact_custody_part(header: str) -> str:
    """Return the header of a credential with the custody part replaced."""
    key_id, first, rest = header.partition(".")
    auth_secret, second, custody = rest.partition(".")
    return f"{key_id}{first}{auth_secret}{second}{CUSTODY_PLACEHOLDER}" if custody else header


def redact_request(
    target: str, headers: Headers, body: bytes, digests: Collection[bytes]
) -> tuple[str, Headers, bytes]:
    """Return target, headers and body for the log.

    Each part that has a custody secret is replaced as a whole.

    `digests` are the SHA-256 of the custody secrets. All parts are replaced if only several
    together have one.
    """
    texts = [_target_texts(target), *([value] for _, value in headers), _body_texts(body)]
    found = [_holds(each, digests) for each in texts]
    if not any(found) and _holds_in_pieces([text for each in texts for text in each], digests):
        found = [True] * len(texts)
    return (
        f"/{PLACEHOLDER}" if found[0] else target,
        tuple(
            (name, PLACEHOLDER if held else value)
            for (name, value), held in zip(headers, found[1:-1], strict=True)
        ),
        PLACEHOLDER.encode() if found[-1] else body,
    )


def _target_texts(target: str) -> list[str]:
    path, _, query = target.partition("?")
    parts = [*path.split("/"), *re.split("[&=]", query)]
    return [target, *(unquote(part) for part in parts)]


def _body_texts(body: bytes) -> list[str]:
    """Return a JSON body's strings, else the body: as it is, and with percent escapes read."""
    text = body.decode("utf-8", "replace")
    try:
        members = json.loads(text)
        # Apart: a secret may be split over values that follow each other.
        return [
            *_values(members),
            *_names(members),
        ]
    except (ValueError, RecursionError):
        return [text, *(unquote_plus(part) for part in re.split("[&=]", text))]


def _values(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for member in _members(value):
        yield from _values(member)


def _names(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
    for member in _members(value):
        yield from _names(member)


def _members(value: Any) -> Collection[Any]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _holds(texts: Sequence[str], digests: Collection[bytes]) -> bool:
    """Return whether one of the texts has a custody secret, or several of them together."""
    searched = [text for text in texts if len(text) <= LONGEST]
    if any(_CREDENTIAL.search(text) for text in searched):
        return True
    return _has_digest(searched, digests) or _holds_in_pieces(searched, digests)


def _holds_in_pieces(texts: Sequence[str], digests: Collection[bytes]) -> bool:
    pieces = [text for text in texts if _PIECE.fullmatch(text)]
    pairs = permutations(pieces, 2) if len(pieces) <= _MOST_PIECES else ()
    joined = [one + other for one, other in pairs if len(one) + len(other) == _SIZE]
    return _has_digest(["".join(pieces), *joined], digests)


def _has_digest(texts: Iterable[str], digests: Collection[bytes]) -> bool:
    if not digests:
        return False
    runs = (run for text in texts for run in _RUN.findall(text.encode("utf-8", "replace")))
    return any(
        sha256(run[at : at + _SIZE]).digest() in digests
        for run in runs
        for at in range(len(run) - _SIZE + 1)
    )
