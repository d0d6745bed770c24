"""Find the secrets of a credential in bytes that are sent or received, in any of the usual encodings.

Plain, base64 (at every alignment) and base64url, hex, percent-encoded, escaped for JSON or HTML, as UTF-16, and with
line breaks in between. Specification: Authentication, "the custody secret never leaves the client".
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING

from sealpipe.errors import UsageError
from sealpipe.wire.encoding import decode_base64url

if TYPE_CHECKING:
    from sealpipe.api import Credential
    from sealpipe.secret import Secret

LARGE = 1024 * 1024
"""Size in bytes above which only the usual forms of a custody secret are searched: each costs 0.3 ms per MiB."""

_ROUNDS = 4
_REACH = 128
"""Maximum bytes of any form of a secret before its first escape; with escapes, it has at most 32 times as many."""
REDACTED = b"[withheld]"
"""What replaces a secret that was found."""

OVERLAP = 32 * _REACH
"""Bytes of the previous piece that are searched again with the next one, for secrets across the boundary."""
_TO_STANDARD, _TO_SAFE = bytes.maketrans(b"-_", b"+/"), bytes.maketrans(b"+/", b"-_")
_FOLDABLE = 64 * 1024
"""Maximum bytes of data that is also searched for secrets in lower case: host names and domains are written so."""
_RUN = re.compile(rb"[A-Za-z0-9_-]*")
_BEGUN = 12
"""Characters that identify a truncated secret."""

_ESCAPE = re.compile(
    rb"%([0-9A-Fa-f]{2})"
    rb"|(?<!\\)\\++(?:(?:u00|x)([0-9A-Fa-f]{2})|[rn]|(?=/))"  # JSON inside JSON doubles the backslashes
    rb"|&\#[xX]0{0,6}([0-9A-Fa-f]{2});?|&\#0{0,6}([0-9]{2,3});?"
    rb"|\r?\n[ \t]*|\x00"
)
_QUOTED = re.compile(rb"=([0-9A-F]{2})|=?\r?\n[ \t]*")  # quoted-printable, as in email
_ESCAPES = (_ESCAPE, _QUOTED)
_SIGNS, _SIGNS_OF_LARGE = (b"%", b"\\", b"&#", b"\n", b"\x00", b"="), (b"%", b"\\u00")


_Token = tuple[int, int, int, int]
"""An escape: the index of its meaning in the view, its start and end in the data that the view was made from, and the
number of bytes that it means."""


class _View:
    """Bytes with their escapes resolved, and a map back to the original positions."""

    def __init__(self, data: bytes | bytearray, tokens: Sequence[_Token] = (), parent: _View | None = None) -> None:
        self.data = data
        self._tokens = tokens
        self._parent = parent

    def origin(self, start: int, end: int) -> tuple[int, int]:
        """Return the span of the original bytes for a span of the view."""
        if self._parent is None:
            return start, end
        return self._parent.origin(self._to_line_and_offset(start)[0], self._to_line_and_offset(end - 1)[1])

    def _to_line_and_offset(self, index: int) -> tuple[int, int]:
        number = bisect_right(self._tokens, index, key=itemgetter(0)) - 1
        if number < 0:
            return index, index + 1
        at, start, end, size = self._tokens[number]
        if size and index == at:
            return start, end
        place = end + index - at - size
        return place, place + 1


class SecretFinder:
    """Finds secrets in bytes: the `usual` ones in data of any size, `others` in at most 1 MiB."""

    def __init__(
        self, usual: Iterable[Secret], others: Iterable[Secret] = (), names: Iterable[Credential] = ()
    ) -> None:
        secrets = [secret.reveal_bytes() for secret in usual]
        rest = [secret.reveal_bytes() for secret in others]
        self._usual_forms = tuple(dict.fromkeys(form for secret in secrets for form in _list_usual_forms(secret)))
        more = [form for secret in rest for form in _list_usual_forms(secret)]
        more += [form for secret in secrets + rest for form in _list_decoded_forms(secret)]
        self._all = tuple(dict.fromkeys([*self._usual_forms, *more]))
        named = tuple(names)
        self._folded = tuple(half.lower() for secret in secrets + rest for half in _split(secret))
        self._begun = (
            *(secret[:_BEGUN] for secret in secrets + rest),
            *(b"%s." % each.key_id.encode() for each in named),
        )
        tags = [f"{each.tag}_sk_live_".encode() for each in named]
        self._leads = (*(b"Bearer " + tag for tag in tags), *tags)

    def within(self, data: bytes | bytearray) -> bool:
        """Return whether the bytes contain one of the secrets."""
        needles = self._usual_forms if len(data) > LARGE else self._all
        if any(_check_round_by_round(data, needles)):
            return True
        folded = data.lower() if len(data) <= _FOLDABLE else b""
        return any(needle in folded for needle in self._folded)

    def spans(self, data: bytes | bytearray) -> list[tuple[int, int]]:
        """Return the spans of the secrets in the bytes, sorted and disjoint; also of truncated ones without escapes.

        In more than 1 MiB, finds only secrets without escapes: remove these, then check the rest with `within`.
        """
        needles = self._usual_forms if len(data) > LARGE else self._all
        views = [_View(data)]
        if len(data) <= LARGE and any(islice(_check_round_by_round(data, needles + self._begun), 1, None)):
            views += (view for escape in _ESCAPES for view in _resolve_with_map(_View(data), escape))
        spans: list[tuple[int, int]] = []
        for view in views:
            for needle in needles:
                spans += (view.origin(at, at + len(needle)) for at in find_positions(view.data, needle))
            spans += (view.origin(*span) for needle in self._begun for span in self._cut_short(view.data, needle))
        return merge_spans(spans)

    def _cut_short(self, data: bytes | bytearray, needle: bytes) -> Iterator[tuple[int, int]]:
        for at in find_positions(data, needle):
            known = at + len(needle)
            end = _find_run_end(data, known, parts=2 if needle.endswith(b".") else 1)
            if end > known:
                lead = next((lead for lead in self._leads if data.endswith(lead, 0, at)), b"")
                yield at - len(lead), end


class CustodyGate:
    """The check of everything that is sent: no custody secret in any encoding; the auth secret only in its header."""

    def __init__(self, *credentials: Credential | None) -> None:
        known = [each for each in credentials if each is not None]
        custody = [each.custody_secret for each in known if each.custody_secret is not None]
        self._custody = SecretFinder(custody)
        self._all = SecretFinder(custody, [each.auth_secret for each in known])

    def holds(self, data: bytes | bytearray, *, login: bool = False) -> bool:
        """Return whether the bytes contain one of our secrets. With `login`, they are the auth header."""
        return (self._custody if login else self._all).within(data)

    def check(self, what: str, *parts: bytes | bytearray) -> None:
        """Check that no part of `what` contains a secret of ours. UsageError shows none of it."""
        if any(map(self.holds, parts)):
            raise credential_leak_error(what)


def credential_leak_error(what: str) -> UsageError:
    """Make the error for data that must not be sent: it names what contains a secret, and shows none of it."""
    return UsageError(
        f"{what} holds the credential: nothing was sent",
        remedy="check where the title, the prompts, the passcode and the arguments come from: "
        "the custody secret decrypts everything encrypted to the key, and never leaves this machine",
    )


def _list_usual_forms(secret: bytes) -> list[bytes]:
    """Return the forms of a secret in bytes that do not escape it, without its last character.

    Includes its halves, because a truncated or split secret still contains one of them.
    """
    return [
        *_split(secret),
        secret[:-1].translate(_TO_STANDARD),
        *list_base64_forms(secret),
        secret.hex().encode(),
        secret.hex().upper().encode(),
    ]


def _split(secret: bytes) -> tuple[bytes, bytes]:
    """Return the halves of a secret without its last character."""
    half = (len(secret) - 1) // 2
    return secret[:half], secret[half:-1]


def _list_decoded_forms(secret: bytes) -> list[bytes]:
    """Return the forms of the bytes that the secret's base64url text encodes."""
    raw = decode_base64url(secret.decode())
    forms = list_base64_forms(raw)
    safe = [form.translate(_TO_SAFE) for form in forms]
    return [raw, raw.hex().encode(), raw.hex().upper().encode(), *forms, *safe]


def list_base64_forms(data: bytes) -> list[bytes]:
    """Return the base64 characters that depend only on the data, for each of its three alignments."""
    from binascii import b2a_base64

    whole = [b2a_base64(bytes(before) + data, newline=False) for before in range(3)]
    return [text[-(-before * 8 // 6) : (before + len(data)) * 8 // 6] for before, text in enumerate(whole)]


def _check_round_by_round(data: bytes | bytearray, needles: Sequence[bytes]) -> Iterator[bool]:
    """Yield whether the bytes contain a secret; then, after each round of resolving escapes, whether they do now."""
    yield any(needle in data for needle in needles)
    small = len(data) <= LARGE
    signs = [sign for sign in (_SIGNS if small else _SIGNS_OF_LARGE) if sign in data]
    if not signs:
        return
    # Data without an escape nearby needs no second check: usually this is most of a large body.
    begin, end = max(0, min(map(data.find, signs)) - _REACH), max(map(data.rfind, signs)) + _REACH
    for start in range(begin, min(end, len(data)), LARGE):  # in pieces, so that memory never holds two copies
        piece = bytes(data[start : min(end, start + LARGE + OVERLAP)])
        for escape in _ESCAPES if small else _ESCAPES[:1]:
            yield from (any(needle in view for needle in needles) for view in _resolve_escapes(piece, escape))


def _resolve_escapes(data: bytes, escape: re.Pattern[bytes]) -> Iterator[bytes]:
    for _ in range(_ROUNDS):
        before, data = data, escape.sub(_decode_escape, data)
        if data == before:
            return
        yield data


def _resolve_with_map(view: _View, escape: re.Pattern[bytes]) -> Iterator[_View]:
    """Resolve escapes as `_resolve_escapes` does, with a map back to the original positions."""
    for _ in range(_ROUNDS):
        parts: list[bytes | bytearray] = []
        tokens: list[_Token] = []
        done = size = 0
        for match in escape.finditer(view.data):
            byte, (start, end) = _decode_escape(match), match.span()
            parts += (view.data[done:start], byte)
            size += start - done
            tokens.append((size, start, end, len(byte)))
            size += len(byte)
            done = end
        if not tokens:
            return
        view = _View(b"".join([*parts, view.data[done:]]), tokens, view)
        yield view


def _decode_escape(match: re.Match[bytes]) -> bytes:
    """Return the byte that an escape represents; none for a line break or NUL between characters."""
    if match.lastindex is None:
        return b""
    digits = match[match.lastindex]
    code = int(digits, 10 if match.lastindex == 4 else 16)
    return bytes([code]) if code < 256 else b""


def find_positions(data: bytes | bytearray, needle: bytes) -> Iterator[int]:
    """Yield where the needle is, overlaps included."""
    at = data.find(needle)
    while at >= 0:
        yield at
        at = data.find(needle, at + 1)


def _find_run_end(data: bytes | bytearray, at: int, parts: int) -> int:
    """Return the end of a run of base64url at `at`; with two `parts`, of a second run after a dot."""
    end = at
    for part in range(parts):
        begin = end + 1 if part and data[end : end + 1] == b"." else end
        match = _RUN.match(data, begin)
        end = match.end() if match is not None and match.end() > begin else end
    return end


def merge_spans(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return spans in order; those that overlap or touch as one."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged
