"""Keeps a credential's secrets out of all that is sent, and redacts them in what comes back.

What is promised is what is searched, in data of any size: **the custody secret and the auth secret,
the first or the last 24 characters of one alone, and base64 and hex of the bytes that one encodes,
each spelled in any way of `sealpipe.spellings` or in quoted-printable; those bytes as they are;
and, in at most 64 KiB, a secret in capitals or small letters, as host names are written.** Not
searched is ciphertext that we made ourselves: only the holder of its key can read it. A value that
is sealed is searched in the same way up to 1,024 characters; the first 512 KiB of a longer one for
the custody secret as it is, or the auth secret of a key that has no custody secret. Specification:
Authentication, "the custody secret never leaves the client".
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from sealpipe.api.operation import Credential
from sealpipe.errors import UsageError
from sealpipe.secret import Secret
from sealpipe.spellings import Finder, Span, merge_spans
from sealpipe.spellings.needles import Needle, list_encoded
from sealpipe.spellings.reading import Pattern
from sealpipe.wire.encoding import decode_base64url

REDACTED: Final = b"[withheld]"
"""What replaces a secret that was found."""

FOLDABLE: Final = 64 * 1024
"""Maximum bytes of data that is also searched for secrets in small letters."""
_SMALL: Final = 1024
"""Maximum characters of a value to be sealed that is searched like all that is sent."""
_LARGE: Final = 512 * 1024
"""Characters of a longer value that are searched for the last secret of a credential as it is."""
_END: Final = 24
"""Characters of a secret that are searched for alone, from either end."""
_TO_STANDARD: Final = bytes.maketrans(b"-_", b"+/")
_RUN: Final = Pattern(rb"[A-Za-z0-9_-]*")
_ENCODED: Final = Pattern(rb"[A-Za-z0-9+/_-]{1024}")
_HEX: Final = Pattern(rb"[0-9A-Fa-f]{1024}")
"""How a value begins that may be one line of base64 or hex."""
_BEGUN: Final = 12
"""Characters that identify a truncated secret."""
_QUOTED: Final = Pattern(rb"=(?:([0-9A-F]{2})|\r?\n[ \t]*)")
"""Matches what quoted-printable writes, as in email."""


class CustodyGate:
    """The check of everything that is sent: no custody secret in any spelling.

    The auth secret only in its header.
    """

    def __init__(self, *credentials: Credential | None) -> None:
        known = [each for each in credentials if each is not None]
        secrets = [_list_secrets(each) for each in known]
        revealed = [secret for each in secrets for secret in each]
        self._decoded = [decode_base64url(secret.decode()) for secret in revealed]
        self._finder = Finder()
        for secret in revealed:
            self._finder.add(_list_needles(secret))
        self._last = [each[-1][:-1] for each in secrets]
        self._folded = [end.lower() for secret in revealed for end in _list_ends(secret)]
        self._begun = [secret[:_BEGUN] for secret in revealed] + [
            b"%s." % each.key_id.encode() for each in known
        ]
        tags = [f"{each.tag}_sk_live_".encode() for each in known]
        self._leads = [*(b"Bearer " + tag for tag in tags), *tags]

    def holds(self, data: bytes | bytearray) -> bool:
        """Return whether the bytes contain one of our secrets."""
        if len(data) < _END:
            return False
        if self._finder.may_hold(data) and (self._finder.holds(data) or self._holds_folded(data)):
            return True
        if not data.isascii() and self._holds_decoded(data):
            return True
        if b"=" not in data or _QUOTED.compiled.search(data) is None:
            return False
        unquoted = _QUOTED.compiled.sub(_unquote, data)
        return self._finder.holds(unquoted) or self._holds_decoded(unquoted)

    def _holds_folded(self, data: bytes | bytearray) -> bool:
        return len(data) <= FOLDABLE and any(end in data.lower() for end in self._folded)

    def _holds_decoded(self, data: bytes | bytearray) -> bool:
        return any(decoded in data for decoded in self._decoded)

    def owns(self, value: str | Secret) -> bool:
        """Return whether a value to be sealed contains one of our secrets.

        A large one is not copied.
        """
        try:
            content = value if isinstance(value, str) else value.reveal_bytes()
        except UnicodeError:
            return False  # it cannot be sealed
        if len(content) <= _SMALL:
            return self.holds(
                content if isinstance(content, bytes) else content.encode(errors="surrogatepass")
            )
        found = (
            any(content.find(each, 0, _LARGE) >= 0 for each in self._last)
            if isinstance(content, bytes)
            else any(content.find(each.decode(), 0, _LARGE) >= 0 for each in self._last)
        )
        return found or any(
            each in meaning for meaning in _decode_head(content) for each in self._last
        )

    def check(self, what: str, *parts: bytes | bytearray) -> None:
        """Check that no part of `what` contains a secret of ours. UsageError shows none of it."""
        if self.holds(parts[0] if len(parts) == 1 else b"\n".join(parts)):
            raise credential_leak_error(what)

    def find(self, data: bytes) -> list[Span]:
        """Return the spans of the secrets in the bytes, sorted and disjoint.

        Also of truncated ones as they are.
        """
        decoded = (
            found.span() for each in self._decoded for found in re.finditer(re.escape(each), data)
        )
        cut = (
            span
            for needle in self._begun
            if needle in data
            for span in self._find_cut(data, needle)
        )
        return merge_spans([*self._finder.find(data), *decoded, *cut])

    def may_hold(self, data: bytes) -> bool:
        """Return whether `find` could find something.

        A quick look at data that mostly holds nothing.
        """
        for needle in self._begun:
            if needle in data:
                return True
        return self.holds(data)

    def _find_cut(self, data: bytes, needle: bytes) -> Iterator[Span]:
        for found in re.finditer(re.escape(needle), data):
            end = _find_run_end(data, found.end(), parts=2 if needle.endswith(b".") else 1)
            if end > found.end():
                lead = next(
                    (lead for lead in self._leads if data.endswith(lead, 0, found.start())), b""
                )
                yield found.start() - len(lead), end


def credential_leak_error(what: str) -> UsageError:
    """Make the error for data that must not be sent.

    It names what contains a secret, and shows none of it.
    """
    return UsageError(
        f"{what} holds the credential: nothing was sent",
        remedy="check where the title, the prompts, the passcode and the arguments come from: "
        "the custody secret decrypts everything encrypted to the key, and never leaves "
        "this machine",
    )


def _list_secrets(credential: Credential) -> list[bytes]:
    """Return the auth secret of a credential, and its custody secret if it has one."""
    secrets = (credential.auth_secret, credential.custody_secret)
    return [secret.reveal_bytes() for secret in secrets if secret is not None]


def _list_needles(secret: bytes) -> Iterator[Needle]:
    """Yield a secret, each end of it, and the bytes that its text encodes, in base64 and hex.

    The ends, because a truncated or split secret still contains one of them.
    """
    for end in _list_ends(secret):
        yield from (Needle(text, wraps=True) for text in {end, end.translate(_TO_STANDARD)})
        yield from (Needle(end.decode().encode(wide)) for wide in ("utf-16-le", "utf-16-be"))
        yield from list_encoded(end)
    yield Needle(secret, wraps=True)
    yield from list_encoded(secret)
    yield from list_encoded(decode_base64url(secret.decode()))


def _list_ends(secret: bytes) -> tuple[bytes, bytes]:
    """Return a secret's first and last characters, but for the very last (not all bits count)."""
    return secret[:_END], secret[-_END - 1 : -1]


def _decode_head(content: str | bytes) -> list[bytes]:
    """Return what the beginning of a long value encodes, if it is one line of base64 or hex."""
    if _ENCODED.match(_to_ascii(content[:_SMALL]), 0) is None:
        return []
    head = _to_ascii(content[:_LARGE]).rstrip(b"=\r\n")
    meanings = []
    with suppress(binascii.Error):  # a last character alone is no byte; padding may be left out
        whole = head[:-1] if len(head) % 4 == 1 else head
        meanings.append(binascii.a2b_base64(whole.translate(_TO_STANDARD) + b"=" * 2))
    if _HEX.match(head, 0) is not None:
        with suppress(binascii.Error):
            meanings.append(binascii.unhexlify(head[: len(head) // 2 * 2]))
    return meanings


def _to_ascii(text: str | bytes) -> bytes:
    return text.encode("ascii", "replace") if isinstance(text, str) else text


def _unquote(found: re.Match[bytes]) -> bytes:
    return bytes([int(found[1], 16)]) if found[1] else b""


def _find_run_end(data: bytes, at: int, parts: int) -> int:
    """Return the end of a run of base64url at `at`.

    With two `parts`, of a second run after a dot.
    """
    end = at
    for part in range(parts):
        begin = end + 1 if part and data[end : end + 1] == b"." else end
        match = _RUN.match(data, begin)
        end = match.end() if match is not None and match.end() > begin else end
    return end
