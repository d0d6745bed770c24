"""Read and check passcodes and other secrets that must not be typed as `text:`, which shells and process lists keep."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from sealpipe.errors import UsageError
from sealpipe.flows import Flow
from sealpipe.reference import FieldSpec, Reference
from sealpipe.secret import Secret
from sealpipe.wire.fields import Field

if TYPE_CHECKING:
    from sealpipe.flows.resolve import Cache
    from sealpipe.registry import Registry

TEXT_SOURCE: Final = "text"
"""The source whose values are written in the reference itself."""

_GENERATOR: Final = "gen"
"""The source that generates secrets."""
ALTERNATIVES: Final = "name where it lives (env:NAME, file:PATH, a store), or have it asked for with prompt:"
_SECRET_WORDS: Final = frozenset({
    "apikey", "credential", "credentials", "key", "keys", "pass", "passcode", "passphrase", "password", "passwd",
    "passwords", "pin", "pwd", "secret", "secrets", "token", "tokens",
})  # fmt: skip
_NEGATIONS: Final = frozenset({"fingerprint", "hint", "id", "name", "public", "url", "user", "username"})
"""Words that mark a label as not secret: `Key ID`, `Public key`, `Token URL`."""
_WORD_PATTERN: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_A-Za-z]+")


def refuse_text(ref: Reference, what: str) -> None:
    """Raise UsageError if a passcode or a key is given as `text:`. The value is not shown."""
    if ref.name == TEXT_SOURCE:
        raise make_text_error(what)


def make_text_error(what: str) -> UsageError:
    """Make the error for a secret whose source is only for values that are not secret."""
    return UsageError(
        f"{what} is a secret: do not use text:, because the shell's history stores it", remedy=ALTERNATIVES
    )


def warn_of_text(specs: Sequence[Field | FieldSpec]) -> Iterator[str]:
    """Return a warning for each `text:` field whose label or type says that it is a secret."""
    for spec in specs:
        if not isinstance(spec, FieldSpec) or spec.ref.name != TEXT_SOURCE:
            continue
        if spec.ref.param("type") == "password" or names_secret(spec.label or ""):
            # Without an explicit label, the field's label is its value.
            named = "a field of type password" if spec.label is None else f'the field "{spec.label}"'
            kind = "looks like a secret: do not use text:, because the shell's history stores it"
            yield f"warning: {named} {kind}; {ALTERNATIVES}"


def names_secret(label: str) -> bool:
    """Return whether a label contains a word for a secret, and no word that negates it."""
    words = {word.lower() for word in _WORD_PATTERN.findall(label)}
    return bool(words & _SECRET_WORDS) and not words & _NEGATIONS


def parse_passcode(passcode: str | Secret | Reference, remedy: str) -> Secret | Reference:
    """Check a passcode, or the reference to one, as far as possible without reading a source. Raises UsageError.

    `remedy` says what to do if a generated passcode would have no recipient; it is empty if there is one.
    """
    if isinstance(passcode, Reference):
        refuse_text(passcode, "a passcode")
        if remedy and passcode.name == _GENERATOR:
            raise UsageError("the generated passcode has no recipient", remedy=remedy)
        return passcode
    return check_passcode(passcode if isinstance(passcode, Secret) else Secret(passcode))


def make_generator_reference(passcode: object) -> Reference:
    """Return the reference to a new passcode. UsageError if `passcode` is given as well."""
    if passcode is not None:
        raise UsageError("--passcode-from and --passcode-generate exclude each other", remedy="use only one of them")
    return Reference(_GENERATOR, "passphrase")  # by name: the registry knows the source


def resolve_passcode(passcode: Secret | Reference, registry: Callable[[], Registry], cache: Cache) -> Flow[Secret]:
    """Read a passcode if it is a reference, and check it. Raises UsageError, PluginError."""
    if isinstance(passcode, Secret):
        return passcode
    from sealpipe.flows.resolve import resolve_secret  # that module imports this one

    value = yield from resolve_secret(passcode, "a passcode", registry, cache)
    if value is None:
        # without it, the requested protection would be missing
        raise UsageError("the passcode is missing", remedy="remove ?optional=1 from its reference, and set it")
    return check_passcode(value)


def check_passcode(passcode: Secret) -> Secret:
    """Return a passcode that a person can type: not empty, one line, all printable. Raises UsageError."""
    text = passcode.reveal()
    if not text:
        raise UsageError("the passcode is empty", remedy="leave it out, or give one")
    if text.endswith(("\n", "\r")):
        raise UsageError(
            "the passcode ends with a line break, which nobody can type",
            remedy="add ?trim=1 to its reference, or write the file without a final newline",
        )
    if not text.isprintable():
        raise UsageError("the passcode contains a character that nobody can type", remedy="use printable characters")
    return passcode
