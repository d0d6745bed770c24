"""Secrets that must not be typed as `text:`, which shells and process lists keep."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from sealpipe.errors import UsageError
from sealpipe.reference import FieldSpec, Reference
from sealpipe.wire.fields import Field

TEXT_SOURCE: Final = "text"
"""The source whose values are written in the reference itself."""

ALTERNATIVES: Final = (
    "name where it lives (env:NAME, file:PATH, a store), or have it asked for with prompt:"
)
_SECRET_WORDS: Final = frozenset({
    "apikey", "credential", "credentials", "key", "keys", "pass", "passcode", "passphrase",
    "password", "passwd", "passwords", "pin", "pwd", "secret", "secrets", "token", "tokens",
})  # fmt: skip
_NEGATIONS: Final = frozenset(
    {"fingerprint", "hint", "id", "name", "public", "url", "user", "username"}
)
"""Words that mark a label as not secret: `Key ID`, `Public key`, `Token URL`."""
_WORD_PATTERN: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_A-Za-z]+")


def refuse_text_source(ref: Reference, what: str) -> None:
    """Raise UsageError if a passcode or a key is given as `text:`. The value is not shown."""
    if ref.name == TEXT_SOURCE:
        raise make_text_error(what)


def make_text_error(what: str) -> UsageError:
    """Make the error for a secret whose source is only for values that are not secret."""
    return UsageError(
        f"{what} is a secret: do not use text:, because the shell's history stores it",
        remedy=ALTERNATIVES,
    )


def warn_of_text(specs: Sequence[Field | FieldSpec]) -> Iterator[str]:
    """Return a warning for each `text:` field whose label or type says that it is a secret."""
    for spec in specs:
        if not isinstance(spec, FieldSpec) or spec.ref.name != TEXT_SOURCE:
            continue
        if spec.ref.param("type") == "password" or names_secret(spec.label or ""):
            # Without an explicit label, the field's label is its value.
            named = (
                "a field of type password" if spec.label is None else f'the field "{spec.label}"'
            )
            kind = "looks like a secret: do not use text:, because the shell's history stores it"
            yield f"warning: {named} {kind}; {ALTERNATIVES}"


def names_secret(label: str) -> bool:
    """Return whether a label contains a word for a secret, and no word that negates it."""
    words = {word.lower() for word in _WORD_PATTERN.findall(label)}
    return bool(words & _SECRET_WORDS) and not words & _NEGATIONS
