"""What is typed on the command line as `text:` though it is a secret: shells and process lists keep it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from sealpipe.errors import UsageError
from sealpipe.reference import FieldSpec, Reference
from sealpipe.wire.field import Field

TEXT_SOURCE: Final = "text"
"""The source whose values stand in the reference itself."""

ALTERNATIVES: Final = "name where it lives (env:NAME, file:PATH, a store), or have it asked for with prompt:"
_SECRET: Final = frozenset({
    "apikey", "credential", "credentials", "key", "keys", "pass", "passcode", "passphrase", "password", "passwd",
    "passwords", "pin", "pwd", "secret", "secrets", "token", "tokens",
})  # fmt: skip
_NONE: Final = frozenset({"fingerprint", "hint", "id", "name", "public", "url", "user", "username"})
"""Words that make a label one of something that is no secret: `Key ID`, `Public key`, `Token URL`."""
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_A-Za-z]+")


def refuse_text(ref: Reference, what: str) -> None:
    """UsageError where a passcode or a key is given as text:. Nothing of it is shown."""
    if ref.name == TEXT_SOURCE:
        raise text_error(what)


def text_error(what: str) -> UsageError:
    """The error for a secret that comes from where only what is no secret does."""
    return UsageError(
        f"{what} is a secret, and text: is for what is none: a shell keeps what is typed", remedy=ALTERNATIVES
    )


def warn_of_text(specs: Sequence[Field | FieldSpec]) -> Iterator[str]:
    """A line for each field that is a text:, and a secret by its label or its type."""
    for spec in specs:
        if not isinstance(spec, FieldSpec) or spec.ref.name != TEXT_SOURCE:
            continue
        if spec.ref.param("type") == "password" or names_secret(spec.label or ""):
            # Without a label of its own the field's label is its value.
            named = "a field of type password" if spec.label is None else f'the field "{spec.label}"'
            said = "looks like a secret, and text: is for what is none: a shell keeps it"
            yield f"warning: {named} {said}; {ALTERNATIVES}"


def names_secret(label: str) -> bool:
    """Whether a label has a word for a secret, and none that says otherwise."""
    words = {word.lower() for word in _WORD.findall(label)}
    return bool(words & _SECRET) and not words & _NONE
