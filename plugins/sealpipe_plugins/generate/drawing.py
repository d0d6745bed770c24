"""Draw random values and count exactly how many are possible.

All randomness comes from the operating system.

All values of a kind are equally likely, so the entropy is the logarithm of their number. It is
computed in integers and rounded down, so it is never overstated.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
import string
import uuid
from collections.abc import Sequence
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Final

WORD_COUNT: Final = 7776
"""Words in the list: five throws of a die."""


@cache
def read_words() -> tuple[str, ...]:
    """Return EFF's large word list; origin and licence are in eff_large_wordlist.md.

    Raises OSError, ValueError.
    """
    text = Path(__file__).with_name("eff_large_wordlist.txt").read_text(encoding="ascii")
    words = tuple(line.partition("\t")[2] for line in text.splitlines())
    if len(set(words)) != WORD_COUNT or not all(words):
        raise ValueError("the word list is incomplete")
    return words


PLAIN: Final = (string.ascii_lowercase, string.ascii_uppercase, string.digits)
"""The kinds of characters of a password without symbols: 62 characters."""

WITH_SYMBOLS: Final = (*PLAIN, "+-.:=_")
"""The same and six symbols: 68.

Shells, dotenv files, a URL's userinfo and GitLab need no escapes for them.
"""

ALL_SYMBOLS: Final = (*PLAIN, string.punctuation)
"""The same and all 32 symbols of ASCII: 94, every printable character except the space."""

PUBLIC_PARTS: Final = ("public", "fingerprint")
"""The public parts of a key pair."""

UUID_BITS: Final = 122
"""The random bits of a version 4 UUID (RFC 9562, section 5.4); the other six are fixed."""


def draw_password(length: int, kinds: Sequence[str]) -> str:
    """Return `length` characters with at least one of every kind, as many systems require.

    A password without one of the kinds is drawn again as a whole, so all remain equally likely.
    """
    alphabet = "".join(kinds)
    while True:
        password = "".join(secrets.choice(alphabet) for _ in range(length))
        if all(not set(kind).isdisjoint(password) for kind in kinds):
            return password


def count_passwords(length: int, kinds: Sequence[str]) -> int:
    """Return how many passwords are possible, by inclusion and exclusion of missing kinds."""
    sizes = [len(kind) for kind in kinds]
    return sum(
        (-1) ** missing * (sum(sizes) - sum(left_out)) ** length
        for missing in range(len(sizes) + 1)
        for left_out in combinations(sizes, missing)
    )


def draw_passphrase(count: int, separator: str, word_list: Sequence[str]) -> str:
    """Return words drawn independently.

    No word is a prefix of another, so every separator is unambiguous.
    """
    return separator.join(secrets.choice(word_list) for _ in range(count))


def draw_pin(length: int) -> str:
    """Return decimal digits."""
    return "".join(secrets.choice(string.digits) for _ in range(length))


def draw_hex(size: int) -> str:
    """Return `size` bytes in hex."""
    return secrets.token_hex(size)


def draw_uuid() -> str:
    """Return a version 4 UUID."""
    return str(uuid.uuid4())


def entropy_bits(choices: int) -> int:
    """Return the entropy of one of `choices` equally likely values, rounded down to whole bits."""
    return max(choices.bit_length() - 1, 0)


def draw_ssh_key_pair(comment: str = "") -> dict[str, str]:
    """Make an ed25519 key pair for SSH; the comment goes into its public line.

    `private` is OpenSSH's format without a passphrase, `public` a line for authorized_keys,
    `fingerprint` SHA256:...
    """
    # imported only when a key is needed
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
        PublicFormat,
    )

    key = Ed25519PrivateKey.generate()
    line = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode("ascii")
    digest = hashlib.sha256(base64.b64decode(line.split()[1])).digest()
    return {
        "private": key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()).decode(
            "ascii"
        ),
        "public": f"{line} {comment}".rstrip(),
        "fingerprint": "SHA256:" + base64.b64encode(digest).decode("ascii").rstrip("="),
    }
