"""The parameters that every source understands, and the values that each of them takes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from sealpipe.reference.text import check_characters, refuse
from sealpipe.wire.field import TYPES

PARAMETERS: Final[Mapping[str, str]] = {
    "decode": "how the value is encoded where it lives: base64, base64url or hex",
    "trim": "1: take white space off both ends of the value",
    "optional": "1: no field rather than an error where the value is missing or empty",
    "format": "read the document as json, yaml or dotenv, so that a selector can take from it",
    "type": "the field's type: " + ", ".join(TYPES),
    "lang": "language of a field of type source_code",
    "filename": "name under which a field of type source_code or markdown is offered as a file",
}
"""Name and help. What else a reference may have, its source declares."""

TARGET_PARAMETERS: Final[Mapping[str, str]] = {
    "mode": "create, replace or merge: what may be there already",
    "optional": "1: store nothing rather than refuse where the answer is missing or empty",
    "trim": "1: take white space off both ends of the answer",
    "decode": "how the answer is encoded: base64, base64url or hex",
}
"""What every target understands (a sink's). What else one may have, its sink declares."""

_CHOICES: Final[Mapping[str, Callable[[str], bool]]] = {
    "decode": {"base64", "base64url", "hex"}.__contains__,
    "trim": {"0", "1"}.__contains__,
    "optional": {"0", "1"}.__contains__,
    "format": {"json", "yaml", "dotenv"}.__contains__,
    "type": TYPES.__contains__,
    "lang": bool,
    # It becomes a file on the recipient's disk: a name, never a path.
    "filename": lambda value: bool(value.strip(". ")) and not {"/", "\\"} & set(value),
}
_KEY: Final = re.compile(r"[A-Za-z][A-Za-z0-9._-]*")


def check_parameters(params: tuple[tuple[str, str], ...]) -> None:
    """Raises ReferenceSyntaxError for a repeated parameter, or a core one with a value that it does not take.

    A name is told only where it is one of ours: anything else may be part of a secret.
    """
    seen = set()
    for number, (key, value) in enumerate(params, 1):
        part = f"parameter {key}" if key in PARAMETERS else f"parameter {number}"
        if not _KEY.fullmatch(key):
            refuse(f"{part} has no name that a parameter can have", "write ?name=value&name=value")
        if key in seen:
            refuse(f"{part} is given twice", "give every parameter once")
        seen.add(key)
        check_characters(value, part)
        if key in _CHOICES and not _CHOICES[key](value):
            refuse(f"{part} has a value that it does not take", f"{key}= is {PARAMETERS[key]}")
    _check_hints(dict(params))


def _check_hints(params: Mapping[str, str]) -> None:
    kind = params.get("type", "")
    if "lang" in params and kind != "source_code":
        refuse("lang= is a hint for source code only", "add type=source_code")
    if "filename" in params and kind not in ("source_code", "markdown"):
        refuse("filename= goes with source code and Markdown only", "add type=source_code or type=markdown")
