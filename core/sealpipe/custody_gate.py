"""Keeps the secrets of a credential out of everything that is sent, and takes them out of what comes back.

They are searched as `sealpipe.spellings` promises it for any value, in data of any size; each half of one alone, and
the bytes that the secret's text encodes; also in quoted-printable and, in at most 64 KiB, in small letters, as host
names are written. Not searched is ciphertext that we made ourselves: only the holder of its key can read it.
Specification: Authentication, "the custody secret never leaves the client".
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sealpipe.api import Credential
from sealpipe.errors import UsageError
from sealpipe.spellings import Finder, Span, merge_spans
from sealpipe.spellings.needles import Needle, list_encoded
from sealpipe.spellings.reading import Pattern
from sealpipe.wire.encoding import decode_base64url

REDACTED = b"[withheld]"
"""What replaces a secret that was found."""

_FOLDABLE = 64 * 1024
"""Maximum bytes of data that is also searched for secrets in small letters."""
_TO_STANDARD = bytes.maketrans(b"-_", b"+/")
_RUN = Pattern(rb"[A-Za-z0-9_-]*")
_BEGUN = 12
"""Characters that identify a truncated secret."""
_QUOTED = Pattern(rb"=(?:([0-9A-F]{2})|\r?\n[ \t]*)")
"""Matches what quoted-printable writes, as in email."""


class CustodyGate:
    """The check of everything that is sent: no custody secret in any spelling; the auth secret only in its header."""

    def __init__(self, *credentials: Credential | None) -> None:
        known = [each for each in credentials if each is not None]
        secrets = [secret for each in known for secret in (each.auth_secret, each.custody_secret) if secret is not None]
        revealed = [secret.reveal_bytes() for secret in secrets]
        self._logins = {each.header().reveal().encode() for each in known}
        self._decoded = [decode_base64url(secret.decode()) for secret in revealed]
        self._finder = Finder()
        for secret in revealed:
            self._finder.add(_list_needles(secret))
        self._folded = [half.lower() for secret in revealed for half in _split(secret)]
        self._begun = [secret[:_BEGUN] for secret in revealed] + [b"%s." % each.key_id.encode() for each in known]
        tags = [f"{each.tag}_sk_live_".encode() for each in known]
        self._leads = [*(b"Bearer " + tag for tag in tags), *tags]

    def holds(self, data: bytes | bytearray, *, login: bool = False) -> bool:
        """Return whether the bytes contain one of our secrets. With `login`, they may be our auth header."""
        if login and data in self._logins:
            return False
        if self._finder.holds(data):
            return True
        if not data.isascii() and any(decoded in data for decoded in self._decoded):
            return True
        if len(data) <= _FOLDABLE:
            folded = data.lower()
            if any(half in folded for half in self._folded):
                return True
        return (
            b"=" in data
            and _QUOTED.compiled.search(data) is not None
            and self._finder.holds(_QUOTED.compiled.sub(_unquote, data))
        )

    def check(self, what: str, *parts: bytes | bytearray) -> None:
        """Check that no part of `what` contains a secret of ours. UsageError shows none of it."""
        if self.holds(parts[0] if len(parts) == 1 else b"\n".join(parts)):
            raise credential_leak_error(what)

    def find(self, data: bytes) -> list[Span]:
        """Return the spans of the secrets in the bytes, sorted and disjoint; also of truncated ones as they are."""
        decoded = (found.span() for each in self._decoded for found in re.finditer(re.escape(each), data))
        cut = (span for needle in self._begun if needle in data for span in self._find_cut(data, needle))
        return merge_spans([*self._finder.find(data), *decoded, *cut])

    def may_hold(self, data: bytes) -> bool:
        """Return whether `find` could find something: a quick look at data that mostly holds nothing."""
        return self.holds(data) or any(needle in data for needle in self._begun)

    def _find_cut(self, data: bytes, needle: bytes) -> Iterator[Span]:
        for found in re.finditer(re.escape(needle), data):
            end = _find_run_end(data, found.end(), parts=2 if needle.endswith(b".") else 1)
            if end > found.end():
                lead = next((lead for lead in self._leads if data.endswith(lead, 0, found.start())), b"")
                yield found.start() - len(lead), end


def credential_leak_error(what: str) -> UsageError:
    """Make the error for data that must not be sent: it names what contains a secret, and shows none of it."""
    return UsageError(
        f"{what} holds the credential: nothing was sent",
        remedy="check where the title, the prompts, the passcode and the arguments come from: "
        "the custody secret decrypts everything encrypted to the key, and never leaves this machine",
    )


def _list_needles(secret: bytes) -> Iterator[Needle]:
    """Yield a secret, each half of it, and the bytes that its text encodes, encoded or not.

    The halves, because a truncated or split secret still contains one of them.
    """
    for half in _split(secret):
        yield from (Needle(text, wraps=True) for text in {half, half.translate(_TO_STANDARD)})
        yield from (Needle(half.decode().encode(wide)) for wide in ("utf-16-le", "utf-16-be"))
        yield from list_encoded(half)
    yield Needle(secret, wraps=True)
    yield from list_encoded(secret)
    yield from list_encoded(decode_base64url(secret.decode()))


def _split(secret: bytes) -> tuple[bytes, bytes]:
    """Return the halves of a secret without its last character."""
    half = (len(secret) - 1) // 2
    return secret[:half], secret[half:-1]


def _unquote(found: re.Match[bytes]) -> bytes:
    return bytes([int(found[1], 16)]) if found[1] else b""


def _find_run_end(data: bytes, at: int, parts: int) -> int:
    """Return the end of a run of base64url at `at`; with two `parts`, of a second run after a dot."""
    end = at
    for part in range(parts):
        begin = end + 1 if part and data[end : end + 1] == b"." else end
        match = _RUN.match(data, begin)
        end = match.end() if match is not None and match.end() > begin else end
    return end
