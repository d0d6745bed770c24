"""The grammar of references: where a secret is read and, in the same form, where it is written.

    field-spec = [ label [ ":" type ] "=" ] ref
    ref        = name ":" [ "//" ] body [ "?" parameter *( "&" parameter ) ] [ "#" selector ]
    parameter  = key "=" value
    selector   = item *( "," item );   item = "*" / [ label "=" ] ( JSON pointer / key )

`str()` of every value here is its canonical text, which parses to the same value again.

People may type a secret in place of a reference. So an error shows nothing of a text that does not
begin with NAME ":", and at most the name of any other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, NoReturn

from sealpipe.errors import ReferenceSyntaxError
from sealpipe.parsing import redact_address
from sealpipe.reference.text import (
    BODY_ESCAPES,
    NAME,
    PARAMETER_ESCAPES,
    Everything,
    Item,
    Key,
    Pointer,
    check_characters,
    escape,
    has_typed_label,
    looks_like_reference,
    parse_selector,
    print_selector,
    quote,
    read_quoted,
    refuse,
    unescape,
)
from sealpipe.wire.fields import TYPES

__all__ = [
    "ENCODINGS",
    "PARAMETERS",
    "TARGET_PARAMETERS",
    "Everything",
    "FieldSpec",
    "Item",
    "Key",
    "Pointer",
    "Reference",
    "Target",
    "parse",
    "parse_field",
    "parse_sink",
    "parse_target",
]

PARAMETERS: Final[Mapping[str, str]] = {
    "decode": "encoding of the value at the source: base64, base64url or hex",
    "encode": "encoding of what is handed on, whatever its bytes: base64, base64url or hex",
    "trim": "1: remove white space from both ends of the value",
    "optional": "1: skip the field if the value is missing or empty",
    "format": "read the document as json, yaml or dotenv, so that a selector can take from it",
    "type": "the field's type: " + ", ".join(TYPES),
    "lang": "language of a field of type source_code",
    "filename": "name under which a field of type source_code or markdown is offered as a file",
}
"""Names and help. Other parameters of a reference are declared by its source."""

TARGET_PARAMETERS: Final[Mapping[str, str]] = {
    "mode": "create, replace or merge: what to do if the target exists",
    "optional": "1: skip a value that is missing or empty",
    "trim": "1: remove white space from both ends of the value",
    "decode": "encoding of the value: base64, base64url or hex",
}
"""Names and help of every target's parameters. Others are declared by its sink."""

ENCODINGS: Final = ("base64", "base64url", "hex")

_CHOICES: Final[Mapping[str, Callable[[str], bool]]] = {
    "decode": ENCODINGS.__contains__,
    "encode": ENCODINGS.__contains__,
    "trim": {"0", "1"}.__contains__,
    "optional": {"0", "1"}.__contains__,
    "format": {"json", "yaml", "dotenv"}.__contains__,
    "type": TYPES.__contains__,
    "lang": bool,
    # It names a file on the recipient's disk, so it must not be a path.
    "filename": lambda value: bool(value.strip(". ")) and not {"/", "\\"} & set(value),
}
_KEY: Final = re.compile(r"[A-Za-z][A-Za-z0-9._-]*")


def check_parameters(params: tuple[tuple[str, str], ...]) -> None:
    """Raise ReferenceSyntaxError for a repeated parameter, or an invalid value of a core parameter.

    An error names a parameter only if it is one of ours: any other name may be part of a secret.
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
        refuse(
            "filename= is only for source code and Markdown",
            "add type=source_code or type=markdown",
        )


@dataclass(frozen=True, slots=True)
class Reference:
    """Where a secret is read, or where it is written.

    `name` is a source, a sink or a store of the config; `body` is the decoded text before `?` and
    `#`, without a leading `//`; `params` are pairs in the order given; `selector` None means the
    whole document. `str()` is the canonical form. Raises ReferenceSyntaxError for values that no
    reference can express.
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
            refuse("the selector is empty", "omit the # for the whole document")

    def __str__(self) -> str:
        # Parsing removes a leading //, so a body that begins with // needs another.
        slashes = "//" if self.body.startswith("//") else ""
        params = "&".join(f"{key}={escape(value, PARAMETER_ESCAPES)}" for key, value in self.params)
        text = f"{self.name}:{slashes}{escape(self.body, BODY_ESCAPES)}"
        if params:
            text += f"?{params}"
        return text if self.selector is None else f"{text}#{print_selector(self.selector)}"

    def param(self, key: str, default: str | None = None) -> str | None:
        """Return the value of a parameter, decoded."""
        return dict(self.params).get(key, default)

    def flag(self, key: str) -> bool:
        """Return whether a parameter such as trim or optional is 1."""
        return self.param(key) == "1"


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """A field of a share: its reference, and its label (None: the reference's own)."""

    label: str | None
    ref: Reference

    def __post_init__(self) -> None:
        if self.label is None:
            return
        check_characters(self.label, "the label")
        if not self.label:
            refuse("the label before = is empty", "give a label, or omit the =")
        items = self.ref.selector or ()
        if len(items) > 1 or Everything() in items:
            refuse(
                "one label is given for several fields",
                "give the labels in the selector: #LABEL=KEY,LABEL=KEY",
            )
        if any(not isinstance(item, Everything) and item.label is not None for item in items):
            refuse(
                "there are two labels, one before the reference and one in the selector",
                "keep one of them",
            )

    def __str__(self) -> str:
        if self.label is None:
            text = str(self.ref)
            return text.replace(":", "://", 1) if has_typed_label(text) else text
        is_plain = set('=:"').isdisjoint(self.label)
        return f"{self.label if is_plain else quote(self.label)}={self.ref}"


class Target(NamedTuple):
    """A channel, and all text after its colon, unchanged: `slack:#ops`.

    As text and in its repr it is redacted.
    """

    name: str
    to: str

    def __str__(self) -> str:
        return redact_address(f"{self.name}:{self.to}")

    def __repr__(self) -> str:
        return f"Target({self})"


_REMEDY = (
    "write where the value lives, such as env:DB_PASSWORD or LABEL=file:deploy.pem. "
    "A value itself is never given here: "
    "if this was one, delete it from your shell's history"
)
_CHANNEL = "write it as email:somebody@example.com or slack:#ops"
_PARAMETERS = "write ?name=value&name=value; & in a value is written %26, ? in the body %3F"
_SHOWN = 40  # no source has a longer name, but a token may precede a colon


def parse_field(text: str) -> FieldSpec:
    """Parse `[label[:type]=]ref`.

    The type becomes the reference's parameter. Raises ReferenceSyntaxError.
    """
    if text.startswith('"'):
        label, end = read_quoted(text, 0, "the label")
        if text[end : end + 1] != "=":
            refuse("the quoted label is not followed by =", 'write "LABEL"=env:NAME')
        return FieldSpec(label, parse(text[end + 1 :], "what follows the label"))
    if looks_like_reference(text) and not has_typed_label(text):
        return FieldSpec(None, parse(text))
    label, equals, ref = text.partition("=")
    if not equals:
        _no_reference(text, "the text")
    if not looks_like_reference(ref):
        if looks_like_reference(ref.rpartition("=")[2]):
            refuse("there is a = in the label", 'put the whole label in quotes: "LABEL"=env:NAME')
        _no_reference(ref, "what follows the first =")
    if '"' in label:
        refuse(
            'there is a " in the label',
            'put the whole label in quotes: "LABEL"=env:NAME, with \\" for "',
        )
    return FieldSpec(*_split_type(label, ref)) if ":" in label else FieldSpec(label, parse(ref))


def _split_type(label: str, ref: str) -> tuple[str, Reference]:
    from sealpipe.prompts import split_type  # few labels contain a colon

    label, kind = split_type(label)
    if kind is None:
        return label, parse(ref)
    if kind not in TYPES:
        remedy = (
            f"known types: {', '.join(TYPES)}; a label that has a colon goes in quotes: "
            '"LABEL"=env:NAME'
        )
        refuse("what follows the last : of the label is not a field type", remedy)
    ref, hash_sign, selector = ref.partition("#")
    return label, parse(f"{ref}{'&' if '?' in ref else '?'}type={kind}{hash_sign}{selector}")


def parse_sink(text: str) -> Reference:
    """Parse a reference to where a result goes. Raises ReferenceSyntaxError."""
    return parse(
        text, remedy="write where to store it, such as file:token.txt#KEY or vault:secret/app#KEY"
    )


def parse(text: str, part: str = "the text", remedy: str = "") -> Reference:
    """Parse `name:[//]body[?key=value&...][#selector]`.

    Raises ReferenceSyntaxError, which calls the text `part`.
    """
    name, rest = _split_name(text, part, remedy or _REMEDY)
    reason = remedy = ""
    try:
        return _parse_rest(name, rest)
    except ReferenceSyntaxError as error:
        reason, remedy = error.message, error.remedy
    raise ReferenceSyntaxError(
        f"{name}: {reason}" if len(name) <= _SHOWN else reason, remedy=remedy
    )


def parse_target(text: str) -> Target:
    """Parse a channel and its target, the text after the colon. Raises ReferenceSyntaxError."""
    if not looks_like_reference(text):
        refuse(
            "the channel is not a reference: it does not start with a name and a colon", _CHANNEL
        )
    name, _, rest = text.partition(":")
    return Target(name, check_characters(rest, f"what follows {name}:"))


def _split_name(text: str, part: str, remedy: str) -> tuple[str, str]:
    match = NAME.match(text)
    if match is None or text[match.end() : match.end() + 1] != ":":
        _no_reference(text, part, remedy)
    return match[0], text[match.end() + 1 :]


def _parse_rest(name: str, rest: str) -> Reference:
    rest, hash_sign, selector = rest.removeprefix("//").partition("#")
    body, question_mark, params = rest.partition("?")
    return Reference(
        name,
        unescape(check_characters(body, "the body"), BODY_ESCAPES, "the body"),
        tuple(_parse_parameters(params)) if question_mark else (),
        parse_selector(selector) if hash_sign else None,
    )


def _parse_parameters(text: str) -> list[tuple[str, str]]:
    pairs = []
    for number, piece in enumerate(text.split("&"), 1):
        part = f"parameter {number}"
        key, equals, value = piece.partition("=")
        if not equals:
            refuse(f"{part} has no =", _PARAMETERS)
        if "?" in piece:
            refuse(f"there is a ? in {part}", "join parameters by &; write ? in a value as %3F")
        check_characters(value, part)
        pairs.append((key, unescape(value, PARAMETER_ESCAPES, part)))
    return pairs


def _no_reference(text: str, part: str, remedy: str = _REMEDY) -> NoReturn:
    if not text:
        refuse(f"{part} is empty where a reference is required", remedy)
    if re.match(r"[A-Za-z]:", text):
        refuse(
            (
                f"{part} is not a reference: a single letter before : is not a name (a drive, "
                "perhaps?)"
            ),
            "a file is written file:PATH",
        )
    refuse(f"{part} is not a reference: it does not start with a name and a colon", remedy)
