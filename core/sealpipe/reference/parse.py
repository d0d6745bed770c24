"""Text to reference.

A person may have typed a secret where a reference belongs. So no error shows anything of a text that does
not begin with NAME ":", and of any other at most the name.
"""

from __future__ import annotations

import re
from typing import NoReturn

from sealpipe.errors import ReferenceSyntaxError
from sealpipe.reference.model import FieldSpec, Reference, Target
from sealpipe.reference.selector import parse_selector
from sealpipe.reference.text import (
    BODY_ESCAPES,
    NAME,
    PARAMETER_ESCAPES,
    check_characters,
    looks_like_reference,
    read_quoted,
    refuse,
    unescape,
)

_REMEDY = (
    "write where the value lives, such as env:DB_PASSWORD or LABEL=file:deploy.pem; a value itself is never given here"
)
_CHANNEL = "write it as email:somebody@example.com or slack:#ops"
_PARAMETERS = "write ?name=value&name=value; & in a value is written %26, ? in the body %3F"
_SHOWN = 40  # no source has a longer name; a token before a colon may well be one


def parse_field(text: str) -> FieldSpec:
    """`[label=]ref` as a value. Raises ReferenceSyntaxError."""
    if text.startswith('"'):
        label, end = read_quoted(text, 0, "the label")
        if text[end : end + 1] != "=":
            refuse("the quoted label is not followed by =", 'write "LABEL"=env:NAME')
        return FieldSpec(label, parse(text[end + 1 :], "what follows the label"))
    if looks_like_reference(text):
        return FieldSpec(None, parse(text))
    label, equals, ref = text.partition("=")
    if not equals:
        _no_reference(text, "the text")
    if not looks_like_reference(ref):
        _no_reference(ref, "what follows the first =")
    if '"' in label:
        refuse('there is a " in the label', 'put the whole label in quotes: "LABEL"=env:NAME, with \\" for "')
    return FieldSpec(label, parse(ref))


def parse(text: str, part: str = "the text") -> Reference:
    """`name:[//]body[?key=value&...][#selector]` as a value. Raises ReferenceSyntaxError.

    `part` is what an error calls the text.
    """
    name, rest = _split_name(text, part)
    reason = remedy = ""
    try:
        return _parse_rest(name, rest)
    except ReferenceSyntaxError as error:
        reason, remedy = error.message, error.remedy
    raise ReferenceSyntaxError(f"{name}: {reason}" if len(name) <= _SHOWN else reason, remedy=remedy)


def parse_target(text: str) -> Target:
    """A channel and its target. Everything after the colon is the channel's own. Raises ReferenceSyntaxError."""
    if not looks_like_reference(text):
        refuse("the channel is not a reference: it does not start with a name and a colon", _CHANNEL)
    name, _, rest = text.partition(":")
    return Target(name, check_characters(rest, f"what follows {name}:"))


def _split_name(text: str, part: str) -> tuple[str, str]:
    match = NAME.match(text)
    if match is None or text[match.end() : match.end() + 1] != ":":
        _no_reference(text, part)
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


def _no_reference(text: str, part: str) -> NoReturn:
    if not text:
        refuse(f"{part} is empty where a reference is required", _REMEDY)
    if re.match(r"[A-Za-z]:", text):
        refuse(
            f"{part} is not a reference: a single letter before : is not a name (a drive, perhaps?)",
            "a file is written file:PATH",
        )
    refuse(f"{part} is not a reference: it does not start with a name and a colon", _REMEDY)
