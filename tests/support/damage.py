"""Damage that is certain: what comes back differs from what was given, whatever that was."""

from __future__ import annotations


def flipped(data: bytes, index: int = -1, bits: int = 1) -> bytes:
    """Those bytes with one of them changed: `bits` of it are the other way round."""
    changed = bytearray(data)
    changed[index] ^= bits
    return bytes(changed)


def exchanged(text: str, index: int = -1) -> str:
    """A text of base64 or base64url with one digit exchanged.

    The last one stays a digit that may end it.
    """
    digits = list(text)
    digits[index] = "A" if digits[index] != "A" else "Q"
    return "".join(digits)
