"""References as values. Whatever can be made here can be printed, and reads back as the same value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from sealpipe.reference.params import check_parameters
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
            refuse("the name before : is none", "a name has two letters at least, then digits . - _ too")
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
                "there is one label in front and more than one field behind",
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
