"""The secrets of a credential in bytes on their way out or back: found however they are written there.

Plain, base64 (at every alignment) and base64url, hex, percent-encoded, escaped by JSON or HTML, as UTF-16, and with
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
    from sealpipe.credential import Credential
    from sealpipe.secret import Secret

LARGE = 1024 * 1024
"""Bytes above which only the usual forms of a custody secret are searched for: each costs 0.3 ms a MiB."""

_ROUNDS = 4
_REACH = 128
"""Bytes that a secret has at most before its first escape, in any of its forms; with escapes, 32 times as many."""
REDACTED = b"[withheld]"
"""What stands in the place of a secret that was found."""

OVERLAP = 32 * _REACH
"""Bytes of what has left that are looked at again with what follows, so that none hides where two pieces meet."""
_TO_STANDARD, _TO_SAFE = bytes.maketrans(b"-_", b"+/"), bytes.maketrans(b"+/", b"-_")
_RUN = re.compile(rb"[A-Za-z0-9_-]*")
_BEGUN = 12
"""Characters that a secret which was cut short is known by."""

_ESCAPE = re.compile(
    rb"%([0-9A-Fa-f]{2})"
    rb"|(?<!\\)\\++(?:(?:u00|x)([0-9A-Fa-f]{2})|[rn]|(?=/))"  # JSON in JSON doubles the backslashes
    rb"|&\#[xX]0{0,6}([0-9A-Fa-f]{2});?|&\#0{0,6}([0-9]{2,3});?"
    rb"|\r?\n[ \t]*|\x00"
)
_QUOTED = re.compile(rb"=([0-9A-F]{2})|=?\r?\n[ \t]*")  # a mail's quoted-printable
_ESCAPES = (_ESCAPE, _QUOTED)
_SIGNS, _SIGNS_OF_LARGE = (b"%", b"\\", b"&#", b"\n", b"\x00", b"="), (b"%", b"\\u00")


_Token = tuple[int, int, int, int]
"""An escape: where what it stands for is in the view, where it begins and ends in what the view was made of, and how
many bytes it stands for."""


class _View:
    """Bytes with their escapes resolved, and the way back to where each byte came from."""

    def __init__(self, data: bytes | bytearray, tokens: Sequence[_Token] = (), parent: _View | None = None) -> None:
        self.data = data
        self._tokens = tokens
        self._parent = parent

    def origin(self, start: int, end: int) -> tuple[int, int]:
        """Where a span of the view stands in the bytes that all of it began with."""
        if self._parent is None:
            return start, end
        return self._parent.origin(self._place(start)[0], self._place(end - 1)[1])

    def _place(self, index: int) -> tuple[int, int]:
        number = bisect_right(self._tokens, index, key=itemgetter(0)) - 1
        if number < 0:
            return index, index + 1
        at, start, end, size = self._tokens[number]
        if size and index == at:
            return start, end
        place = end + index - at - size
        return place, place + 1


class SecretFinder:
    """Secrets to be found. `usual` ones in bytes of any number, `others` in up to a MiB."""

    def __init__(
        self, usual: Iterable[Secret], others: Iterable[Secret] = (), names: Iterable[Credential] = ()
    ) -> None:
        secrets = [secret.reveal_bytes() for secret in usual]
        rest = [secret.reveal_bytes() for secret in others]
        self._usual = tuple(dict.fromkeys(form for secret in secrets for form in _usual(secret)))
        more = [form for secret in rest for form in _usual(secret)]
        more += [form for secret in secrets + rest for form in _unusual(secret)]
        self._all = tuple(dict.fromkeys([*self._usual, *more]))
        named = tuple(names)
        self._begun = (
            *(secret[:_BEGUN] for secret in secrets + rest),
            *(b"%s." % each.key_id.encode() for each in named),
        )
        tags = [f"{each.tag}_sk_live_".encode() for each in named]
        self._leads = (*(b"Bearer " + tag for tag in tags), *tags)

    def within(self, data: bytes | bytearray) -> bool:
        """Whether one of them is in the bytes."""
        needles = self._usual if len(data) > LARGE else self._all
        return any(_holds(data, needles))

    def spans(self, data: bytes | bytearray) -> list[tuple[int, int]]:
        """Where they are in the bytes, in order and apart; one that was cut short where it begins plainly.

        Of more than a MiB only what stands there without an escape: look with `within` once that is cut out.
        """
        needles = self._usual if len(data) > LARGE else self._all
        views = [_View(data)]
        if len(data) <= LARGE and any(islice(_holds(data, needles + self._begun), 1, None)):
            views += (view for escape in _ESCAPES for view in _mapped(_View(data), escape))
        found: list[tuple[int, int]] = []
        for view in views:
            for needle in needles:
                found += (view.origin(at, at + len(needle)) for at in _places(view.data, needle))
            found += (view.origin(*span) for needle in self._begun for span in self._cut_short(view.data, needle))
        return _merged(found)

    def _cut_short(self, data: bytes | bytearray, needle: bytes) -> Iterator[tuple[int, int]]:
        for at in _places(data, needle):
            known = at + len(needle)
            end = _run_end(data, known, parts=2 if needle.endswith(b".") else 1)
            if end > known:
                lead = next((lead for lead in self._leads if data.endswith(lead, 0, at)), b"")
                yield at - len(lead), end


class CustodyGate:
    """The one check of what leaves: no custody secret, whatever it is written in; no auth secret but in its header."""

    def __init__(self, *credentials: Credential | None) -> None:
        known = [each for each in credentials if each is not None]
        custody = [each.custody_secret for each in known if each.custody_secret is not None]
        self._custody = SecretFinder(custody)
        self._all = SecretFinder(custody, [each.auth_secret for each in known])

    def holds(self, data: bytes | bytearray, *, login: bool = False) -> bool:
        """Whether the bytes hold a secret of ours. `login`: they are the header that carries the auth secret."""
        return (self._custody if login else self._all).within(data)

    def check(self, what: str, *parts: bytes | bytearray) -> None:
        """UsageError where one of the parts of `what` holds a secret of ours. None of it is shown."""
        if any(map(self.holds, parts)):
            raise credential_leak_error(what)


def credential_leak_error(what: str) -> UsageError:
    """The error for what must not leave: it names the part that holds a secret of ours, and shows nothing."""
    return UsageError(
        f"{what} holds the credential: nothing was sent",
        remedy="check where the title, the prompts, the passcode and the arguments come from: "
        "the custody secret decrypts everything encrypted to the key, and never leaves this machine",
    )


def _usual(secret: bytes) -> list[bytes]:
    """What a secret looks like in bytes that do not escape it. Its last character is known by the others.

    By its halves: one of them is there, too, where it was cut short, or is in two pieces.
    """
    plain = secret[:-1]
    half = len(plain) // 2
    return [
        plain[:half],
        plain[half:],
        plain.translate(_TO_STANDARD),
        *_base64(secret),
        secret.hex().encode(),
        secret.hex().upper().encode(),
    ]


def _unusual(secret: bytes) -> list[bytes]:
    """The same of the bytes that its text stands for."""
    raw = decode_base64url(secret.decode())
    forms = _base64(raw)
    safe = [form.translate(_TO_SAFE) for form in forms]
    return [raw, raw.hex().encode(), raw.hex().upper().encode(), *forms, *safe]


def _base64(data: bytes) -> list[bytes]:
    """The characters of base64 that depend on nothing else, at each of the three places that data may begin at."""
    from binascii import b2a_base64

    whole = [b2a_base64(bytes(before) + data, newline=False) for before in range(3)]
    return [text[-(-before * 8 // 6) : (before + len(data)) * 8 // 6] for before, text in enumerate(whole)]


def _holds(data: bytes | bytearray, needles: Sequence[bytes]) -> Iterator[bool]:
    """Whether one is in the bytes as they are; then, in them with what is escaped resolved, again and again."""
    yield any(needle in data for needle in needles)
    small = len(data) <= LARGE
    signs = [sign for sign in (_SIGNS if small else _SIGNS_OF_LARGE) if sign in data]
    if not signs:
        return
    # What has no escape near it was looked at: of a large body with an escape in its title, that is most of it.
    begin, end = max(0, min(map(data.find, signs)) - _REACH), max(map(data.rfind, signs)) + _REACH
    for start in range(begin, min(end, len(data)), LARGE):  # in pieces, or all of it would be there twice
        piece = bytes(data[start : min(end, start + LARGE + OVERLAP)])
        for escape in _ESCAPES if small else _ESCAPES[:1]:
            yield from (any(needle in view for needle in needles) for view in _resolved(piece, escape))


def _resolved(data: bytes, escape: re.Pattern[bytes]) -> Iterator[bytes]:
    for _ in range(_ROUNDS):
        before, data = data, escape.sub(_meant, data)
        if data == before:
            return
        yield data


def _mapped(view: _View, escape: re.Pattern[bytes]) -> Iterator[_View]:
    """As `_resolved`, with the way back."""
    for _ in range(_ROUNDS):
        parts: list[bytes | bytearray] = []
        tokens: list[_Token] = []
        done = size = 0
        for match in escape.finditer(view.data):
            byte, (start, end) = _meant(match), match.span()
            parts += (view.data[done:start], byte)
            size += start - done
            tokens.append((size, start, end, len(byte)))
            size += len(byte)
            done = end
        if not tokens:
            return
        view = _View(b"".join([*parts, view.data[done:]]), tokens, view)
        yield view


def _meant(match: re.Match[bytes]) -> bytes:
    """The byte that an escape stands for; none for what stands between characters."""
    if match.lastindex is None:
        return b""
    digits = match[match.lastindex]
    code = int(digits, 10 if match.lastindex == 4 else 16)
    return bytes([code]) if code < 256 else b""


def _places(data: bytes | bytearray, needle: bytes) -> Iterator[int]:
    at = data.find(needle)
    while at >= 0:
        yield at
        at = data.find(needle, at + 1)


def _run_end(data: bytes | bytearray, at: int, parts: int) -> int:
    """Where a run of base64url ends that begins at `at`; of two parts with a dot between them, the second's end."""
    end = at
    for part in range(parts):
        begin = end + 1 if part and data[end : end + 1] == b"." else end
        match = _RUN.match(data, begin)
        end = match.end() if match is not None and match.end() > begin else end
    return end


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged
