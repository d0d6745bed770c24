"""A short code as a word that no shell and no expression reads: percent-encoded, and read again.

A code is opaque (specification: core rule 5): it may hold `$(id)`, a blank or `#`. What leaves as the output of a CI
step is its encoded form: every byte of its UTF-8 but `A-Za-z0-9._~-` is `%XX`, `%` itself `%25`. Every code has exactly
one, and no two codes share one; most codes are their own.
"""

from __future__ import annotations

from urllib.parse import quote, unquote_to_bytes


def encoded(short_code: str) -> str:
    """The encoded form: only `A-Za-z0-9._~-` and `%XX`."""
    return quote(short_code, safe="")


def decoded(word: str) -> str | None:
    """The other code that a word is the encoded form of; None where it can be nothing but a code as it is.

    The word may be a code as it is all the same: a code may look like the encoded form of another.
    """
    if "%" not in word:
        return None
    try:
        code = unquote_to_bytes(word).decode()
        return code if encoded(code) == word else None
    except (UnicodeDecodeError, UnicodeEncodeError):
        return None


def names(word: str, short_code: str) -> bool:
    """Whether a word, in either form, is that code."""
    return short_code in (word, decoded(word))
