"""References as values, and the parameters that they take. What can be made here can be printed and parsed back."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from sealpipe.reference.selector import Everything, Item, print_selector
from sealpipe.reference.text import (
    BODY_ESCAPES,
    NAME,
    PARAMETER_ESCAPES,
    check_characters,
    escape,
    looks_like_reference,
    quote,
    refuse,
)
from sealpipe.wire.fields import TYPES

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
            refuse(f"{part} has an invalid name", "write ?name=value&name=value")
        if key in seen:
            refuse(f"{part} is given twice", "give every parameter once")
        seen.add(key)
        check_characters(value, part)
        if key in _CHOICES and not _CHOICES[key](value):
            refuse(f"{part} has an invalid value", f"{key}= is {PARAMETERS[key]}")
    _check_hints(dict(params))


def _check_hints(params: Mapping[str, str]) -> None:
    kind = params.get("type", "")
    if "lang" in params and kind != "source_code":
        refuse("lang= is a hint for source code only", "add type=source_code")
    if "filename" in params and kind not in ("source_code", "markdown"):
        refuse("filename= goes with source code and Markdown only", "add type=source_code or type=markdown")


@dataclass(frozen=True, slots=True)
class Reference:
    """Where a secret comes from, or where a result goes (DESIGN section 4).

    `name` is a source, a sink or a store of the config; `body` is the rest's text, without the optional `//`;
    `params` are pairs in the order given; `selector` None means the whole document.
    `str()` is the canonical form. Raises ReferenceSyntaxError for what cannot be written as a reference.
    """

    name: str
    body: str = ""
    params: tuple[tuple[str, str], ...] = ()
    selector: tuple[Item, ...] | None = None

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            refuse(
                "the name before : is not valid",
                "a name has at least two characters: a letter, then letters, digits, or . - _",
            )
        check_characters(self.body, "the body")
        check_parameters(self.params)
        if self.selector is not None and not self.selector:
            refuse("the selector is empty", "leave # out for the whole document")

    def __str__(self) -> str:
        # A body that begins with // would lose it on reading.
        slashes = "//" if self.body.startswith("//") else ""
        params = "&".join(f"{key}={escape(value, PARAMETER_ESCAPES)}" for key, value in self.params)
        text = f"{self.name}:{slashes}{escape(self.body, BODY_ESCAPES)}"
        if params:
            text += f"?{params}"
        return text if self.selector is None else f"{text}#{print_selector(self.selector)}"

    def param(self, key: str, default: str | None = None) -> str | None:
        """The value of a parameter, decoded."""
        return dict(self.params).get(key, default)

    def flag(self, key: str) -> bool:
        """Whether a parameter such as trim or optional is 1."""
        return self.param(key) == "1"


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """A field of a share: where its value lives, and its label (None: the one that the reference gives)."""

    label: str | None
    ref: Reference

    def __post_init__(self) -> None:
        if self.label is None:
            return
        check_characters(self.label, "the label")
        if not self.label:
            refuse("the label before = is empty", "give it a text, or leave the = out")
        items = self.ref.selector or ()
        if len(items) > 1 or Everything() in items:
            refuse(
                "there is one label in front of more than one field",
                "give the labels in the selector: #LABEL=KEY,LABEL=KEY",
            )
        if any(not isinstance(item, Everything) and item.label is not None for item in items):
            refuse("there is a label in front and another in the selector", "keep one of them")

    def __str__(self) -> str:
        if self.label is None:
            return str(self.ref)
        bare = not {"=", '"'} & set(self.label) and not looks_like_reference(self.label)
        return f"{self.label if bare else quote(self.label)}={self.ref}"


class Target(NamedTuple):
    """A channel and all that follows its colon, untouched: `slack:#ops`."""

    name: str
    to: str

    def __str__(self) -> str:
        return f"{self.name}:{self.to}"
