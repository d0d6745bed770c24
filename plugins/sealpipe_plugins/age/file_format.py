"""The format of age's files: what a file is, by its beginning. No I/O, no keys.

A file is binary, or armored: the same in base64, between two lines. Its header lists for whom it is
encrypted.
"""

from __future__ import annotations

import base64
import binascii
from typing import Final

from sealpipe.plugin import PLAINTEXT_LIMIT

SIZE_LIMIT: Final = PLAINTEXT_LIMIT * 11 // 8
"""Maximum bytes of a file with a value of the maximum size: armored, it is 1.355 times as long, and
has a header.
"""

_MAGIC: Final = b"age-encryption.org/"
_ARMOR: Final = b"-----BEGIN AGE ENCRYPTED FILE-----"
_PASSPHRASE: Final = b"-> scrypt "
_LINE: Final = 64
"""Characters of an armored line."""


def is_age(content: bytes) -> bool:
    """Return whether this is a file of age, of any version."""
    return content.startswith(_MAGIC) or _is_armored(content)


def has_passphrase(content: bytes) -> bool:
    """Return whether a file is encrypted with a passphrase; then it has no recipients."""
    return _read_start(content).partition(b"\n")[2].startswith(_PASSPHRASE)


def _is_armored(content: bytes) -> bool:
    return content[: 2 * _LINE].lstrip().startswith(_ARMOR)


def _read_start(content: bytes) -> bytes:
    """Return the beginning of the binary form; empty if the armor is damaged there."""
    if not _is_armored(content):
        return content[: 2 * _LINE]
    lines = content[: 8 * _LINE].lstrip().splitlines()
    try:
        return base64.b64decode(lines[1][:_LINE], validate=True)
    except (IndexError, binascii.Error):
        return b""
