"""Parses targets, such as `vault:a/{submission}#password=PROMPT`, and selects values. Pure.

A target has the form of a reference. In its selector, the key to write is left of `=`, and a
prompt's id or text is right of it. Submitted text chooses neither: a placeholder in the body is
filled with one plain name. A value that does not match the target is a `MisfitError`, whose text
contains only our names.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Final, NamedTuple, get_args

from sealpipe.errors import PluginError, UnsupportedError, UsageError, quote_input
from sealpipe.parsing import ADD_NAME, NAME_PLACEHOLDER
from sealpipe.plugin import TEXT, TEXT_UNDER_KEYS, Mode, SinkField
from sealpipe.prompts import Prompt
from sealpipe.reference import (
    PARAMETERS,
    TARGET_PARAMETERS,
    Everything,
    Pointer,
    Reference,
    parse,
)
from sealpipe.reference.text import PLAIN_NAME_RULE, Template, parse_template
from sealpipe.secret import Secret, as_secret
from sealpipe.sources.select import decode_text, is_utf8, trim
from sealpipe.wire.fields import Field, revealed

MODES: Final[tuple[Mode, ...]] = get_args(Mode)
_PLAIN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")


class SinkTarget(NamedTuple):
    """One target, checked as far as possible without its sink. `text` is its text as given."""

    ref: Reference
    body: Template
    mode: Mode
    text: str

    @property
    def placeholders(self) -> Collection[str]:
        """The placeholders in its body: `submission`, `request`, `name`."""
        return set(self.body.names)

    def fill(self, values: Mapping[str, str]) -> Reference:
        """Return the reference for the sink.

        Placeholders filled, without selector and the core's own parameters.

        Raises UsageError for a name that programs would obey.
        """
        _check_name(self.body, values.get("name"), self.text)
        sink_params = tuple(pair for pair in self.ref.params if pair[0] not in TARGET_PARAMETERS)
        return Reference(self.ref.name, self.body.fill(values), sink_params)


class KeyMapping(NamedTuple):
    """One value of a target: the key to write, and the label of the field that holds the value.

    `label` None means the only field; `display_name` is its name in messages.
    """

    key: str
    label: str | None
    display_name: str


def parse_targets(
    texts: Iterable[str | Reference],
    mode: Mode = "create",
    placeholders: Collection[str] = (),
    name: str | None = None,
) -> list[SinkTarget]:
    """Parse targets. Raises UsageError.

    `mode` is for targets that name none; `placeholders` are those that their bodies may contain. A
    `name` fills in `{name}` at once, so that the target's text has it, too.
    """
    default = _parse_mode(mode, "the default")
    refs = [parse(text) if isinstance(text, str) else text for text in texts]
    return [
        _parse_target(ref if name is None else _fill_name(ref, name), default, placeholders)
        for ref in refs
    ]


def check_decode(target: SinkTarget, capabilities: Collection[str]) -> None:
    """Raise UsageError if a target decodes values to bytes that its sink cannot hold."""
    encoding = target.ref.param("decode")
    if encoding is not None and (
        rule := _find_text_rule(capabilities, has_key=target.ref.selector is not None)
    ):
        raise UsageError(
            f"{target.text}: {target.ref.name} {rule}, and decode= gives bytes",
            remedy=f"leave decode= out, and read what is stored with ?decode={encoding}",
        )


def check_bytes(ref: Reference, capabilities: Collection[str], fields: Iterable[SinkField]) -> None:
    """Raise UnsupportedError for a value of bytes that a sink cannot hold."""
    for key, value in fields:
        rule = _find_text_rule(capabilities, has_key=key != "")
        if rule and not is_utf8(value.reveal_bytes()):
            what = f"the value for {escape_name(key)}" if key else "the value"
            raise UnsupportedError(
                f"{ref}: {ref.name} {rule}, and {what} is not UTF-8",
                locator=str(ref),
                remedy="add ?encode=base64 to its source, and read it with ?decode=base64",
            )


def _find_text_rule(capabilities: Collection[str], *, has_key: bool) -> str:
    """Return in which case a sink stores only text, if this is one."""
    if TEXT in capabilities:
        return "stores only text"
    return "stores only text under a key" if TEXT_UNDER_KEYS in capabilities and has_key else ""


def _fill_name(ref: Reference, name: str) -> Reference:
    """Return the reference with `{name}` in its body filled in.

    All else in it stays as it is written.
    """
    if NAME_PLACEHOLDER not in ref.body:
        return ref
    template = parse_template(ref.body, "the body of a target")
    _check_name(template, name, str(ref))
    texts = (
        piece.replace("{", "{{").replace("}", "}}")
        if number % 2 == 0
        else name
        if piece == "name"
        else f"{{{piece}}}"
        for number, piece in enumerate(template.pieces)
    )
    return Reference(ref.name, "".join(texts), ref.params, ref.selector)


def _check_name(template: Template, name: str | None, text: str) -> None:
    if name is not None and template.find_misfit({"name": name}) is not None:
        raise UsageError(f"{text}: {{name}} is not one plain name there", remedy=PLAIN_NAME_RULE)


def _parse_target(ref: Reference, mode: Mode, placeholders: Collection[str]) -> SinkTarget:
    text = str(ref)
    for name, _ in ref.params:
        if name in PARAMETERS and name not in TARGET_PARAMETERS:
            known = ", ".join(TARGET_PARAMETERS)
            raise UsageError(
                f"{text}: {name}= does not apply to a target", remedy=f"known are {known}"
            )
    if any(isinstance(item, Pointer) for item in ref.selector or ()):
        raise UsageError(
            f"{text}: a JSON pointer names no prompt",
            remedy="write #KEY=PROMPT, or #* for every one",
        )
    body = parse_template(ref.body, f"the body of {text}")
    for name in body.names:
        if name == "name" and name not in placeholders:
            raise UsageError(f"{text} contains {{name}}, and there is no name", remedy=ADD_NAME)
        if name not in placeholders:
            known = ", ".join(f"{{{placeholder}}}" for placeholder in placeholders) or "none here"
            raise UsageError(
                f"{text}: unknown placeholder {{{name}}}",
                remedy=f"known are {known}; a brace is written {{{{",
            )
    return SinkTarget(ref, body, _parse_mode(ref.param("mode", mode), text), text)


def _parse_mode(name: str | None, location: str) -> Mode:
    for mode in MODES:
        if mode == name:
            return mode
    raise UsageError(
        f"{location}: the mode is not one of {', '.join(MODES)}", remedy="leave it out for create"
    )


class SourceWords(NamedTuple):
    """The words that messages use for the origin of a target's values."""

    container: str
    part: str
    value: str
    repeated: str


REQUEST: Final = SourceWords("request", "prompt", "its value for", "it fills in")
SHARE: Final = SourceWords("share", "field", "the field", "the share has the field")
COPY: Final = SourceWords("copy", "field", "the field", "the copy has the field")


def map_keys(
    target: SinkTarget, prompts: Sequence[Prompt] | None, source: SourceWords = REQUEST
) -> list[KeyMapping]:
    """Map a target's keys to prompts.

    With `prompts` None, the prompts are unknown. Raises UsageError.
    """
    selector = target.ref.selector
    if selector is None:
        if prompts is not None and len(prompts) > 1:
            ids = ", ".join(escape_name(each.id) for each in prompts)
            raise UsageError(
                f"{target.text} accepts one value, but the {source.container} has {len(prompts)}",
                remedy=(
                    f"select one: #KEY={source.part.upper()}, or #* for every one; there are {ids}"
                ),
            )
        name = escape_name(prompts[0].id) if prompts else "the submitted value"
        return [KeyMapping("", None if prompts is None else prompts[0].text, name)]
    mappings: list[KeyMapping] = []
    for item in selector:
        if isinstance(item, Everything):
            if prompts is None:
                raise UsageError(
                    f"{target.text}: * needs the prompts, which a short code does not contain",
                    remedy=(
                        "collect by the receipt of the request, or name the prompts: #KEY=PROMPT"
                    ),
                )
            mappings += [KeyMapping(each.id, each.text, escape_name(each.id)) for each in prompts]
        elif not isinstance(item, Pointer):
            prompt = _find_prompt(item.name, prompts, target, source)
            mappings.append(
                KeyMapping(item.label or prompt.id, prompt.text, escape_name(item.name))
            )
    keys = [each.key for each in mappings]
    for key in keys:
        if keys.count(key) > 1:
            raise UsageError(
                f"{target.text} writes the key {quote_input(key)} twice",
                remedy="give each its own: #KEY=PROMPT",
            )
    return mappings


def _find_prompt(
    name: str, prompts: Sequence[Prompt] | None, target: SinkTarget, source: SourceWords
) -> Prompt:
    if prompts is None:
        return Prompt(name, name)
    for prompt in prompts:
        if name == prompt.id:
            return prompt
    for prompt in prompts:
        if name == prompt.text:
            return prompt
    raise UsageError(
        f"{target.text}: the {source.container} has no {source.part} {quote_input(name)}",
        remedy=f"its {source.part}s are {', '.join(_describe_prompt(each) for each in prompts)}; "
        f"to store one under another name: #KEY={source.part.upper()}",
    )


def _describe_prompt(prompt: Prompt) -> str:
    name = escape_name(prompt.id)
    return name if prompt.text == prompt.id else f"{name} ({escape_name(prompt.text, 40)})"


class MisfitError(Exception):
    """The submission does not match a target.

    The text gives the reason, and shows nothing of the submission.
    """


def select_values(
    target: SinkTarget,
    mappings: Sequence[KeyMapping],
    fields: Sequence[Field],
    source: SourceWords = REQUEST,
) -> list[SinkField]:
    """Select a target's values; optional ones that are missing or empty are left out.

    Raises MisfitError.
    """
    selected: list[SinkField] = []
    for mapping in mappings:
        value = _select_value(target, mapping, fields, source)
        if value is not None:
            selected.append(SinkField(mapping.key, value))
    return selected


def _select_value(
    target: SinkTarget, mapping: KeyMapping, fields: Sequence[Field], source: SourceWords
) -> Secret | None:
    values = _find_values(mapping, fields)
    optional = target.ref.flag("optional")
    if not values and not optional:
        raise MisfitError(f"it has no value for {mapping.display_name}")
    if len(values) > 1:
        raise MisfitError(
            f"{source.repeated} {mapping.display_name} several times, with different values"
        )
    value: str | bytes = values[0] if values else ""
    encoding = target.ref.param("decode")
    misfit = ""
    try:
        if encoding and value:
            value = decode_text(value, encoding, mapping.display_name)
        if target.ref.flag("trim"):
            value = trim(value)
    except PluginError:
        misfit = f"{source.value} {mapping.display_name} is not {encoding}"
    if misfit:
        raise MisfitError(misfit)
    if value:
        return Secret(value)
    if optional:
        return None
    raise MisfitError(f"{source.value} {mapping.display_name} is empty")


def _find_values(mapping: KeyMapping, fields: Sequence[Field]) -> list[str | bytes]:
    """Return the possible values for a mapping; equal values count once."""
    if mapping.label is None:
        if len(fields) != 1:
            raise MisfitError(f"it has {len(fields)} fields, but the target accepts one")
        matching = list(fields)
    else:
        matching = [field for field in fields if field.key == mapping.label]
    return list(dict.fromkeys(map(_reveal, matching)))


def _reveal(field: Field) -> str | bytes:
    """Return a field's value: bytes if a copy has brought what is not UTF-8."""
    try:
        return revealed(field)
    except UnicodeDecodeError:
        return as_secret(field.value).reveal_bytes()


def escape_name(name: str, limit: int = 60) -> str:
    """Escape and shorten a name for a message: others may have chosen it."""
    return "".join(
        character if character.isprintable() else repr(character)[1:-1]
        for character in name[:limit]
    )


def make_plain_name(code: str | None, ciphertext: str = "") -> str:
    """Return a plain name for a foreign code, the same on every machine.

    At most 80 of A-Z a-z 0-9 . _ -.

    With `ciphertext`, two submissions with one code get different names. A code that is not plain
    is replaced by its digest.
    """
    digest = sha256(f"{code}\n{ciphertext}".encode("utf-8", "surrogatepass")).hexdigest()
    if code is None or not _PLAIN.fullmatch(code):
        return f"x.{digest[:32]}"
    return f"{code}.{digest[:12]}" if ciphertext else code
