"""Read and check passcodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from sealpipe.errors import UsageError
from sealpipe.reference import Reference
from sealpipe.secret import Secret
from sealpipe.sources.resolve import Cache, resolve_secret
from sealpipe.sources.text_secrets import refuse_text_source

if TYPE_CHECKING:
    from sealpipe.registry import Registry

_GENERATOR: Final = "gen"
"""The source that generates secrets."""


def parse_passcode(passcode: str | Secret | Reference, remedy: str) -> Secret | Reference:
    """Check a passcode, or the reference to one, as far as possible without reading a source.

    Raises UsageError.

    `remedy` says what to do if a generated passcode would have no recipient; it is empty if there
    is one.
    """
    if isinstance(passcode, Reference):
        refuse_text_source(passcode, "a passcode")
        if remedy and passcode.name == _GENERATOR:
            raise UsageError("the generated passcode has no recipient", remedy=remedy)
        return passcode
    return check_passcode(passcode if isinstance(passcode, Secret) else Secret(passcode))


def make_generator_reference(passcode: object) -> Reference:
    """Return the reference to a new passcode. UsageError if `passcode` is given as well."""
    if passcode is not None:
        raise UsageError(
            "--passcode-from and --passcode-generate exclude each other",
            remedy="use only one of them",
        )
    return Reference(_GENERATOR, "passphrase")  # by name: the registry knows the source


def resolve_passcode(
    passcode: Secret | Reference, registry: Callable[[], Registry], cache: Cache
) -> Secret:
    """Read a passcode if it is a reference, and check it. Raises UsageError, PluginError."""
    if isinstance(passcode, Secret):
        return passcode
    value = resolve_secret(passcode, "a passcode", registry, cache)
    if value is None:
        # without it, the requested protection would be missing
        raise UsageError(
            "the passcode is missing", remedy="remove ?optional=1 from its reference, and set it"
        )
    return check_passcode(value)


def check_passcode(passcode: Secret) -> Secret:
    """Return a passcode that a person can type: not empty, one line, all printable.

    Raises UsageError.
    """
    text = passcode.reveal()
    if not text:
        raise UsageError("the passcode is empty", remedy="leave it out, or give one")
    if text.endswith(("\n", "\r")):
        raise UsageError(
            "the passcode ends with a line break, which nobody can type",
            remedy="add ?trim=1 to its reference, or write the file without a final newline",
        )
    if not text.isprintable():
        raise UsageError(
            "the passcode contains a character that nobody can type",
            remedy="use printable characters",
        )
    return passcode
