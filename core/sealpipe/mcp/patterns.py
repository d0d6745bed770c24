"""The patterns of a policy.

Which references, recipients, commands and variables an assistant may name. Pure.

A reference's pattern is parsed by the grammar of references, and matched part by part on the
decoded text: the name literally, the body segment by segment, parameters and selector one by one.
`wildcards` says what `*` stands for.
"""

from __future__ import annotations

import json
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sealpipe.errors import UsageError
from sealpipe.reference import (
    Everything,
    Item,
    Key,
    Pointer,
    Reference,
    Target,
    parse,
    parse_target,
)
from sealpipe.run.refused_names import find_reader
from sealpipe.wildcards import (
    ANY_SEGMENT,
    REST,
    PathWildcard,
    Wildcard,
    find_inner_rest,
    is_segment,
)

MAX_TEXT: Final = 1000
"""Characters of a pattern, and of each text that is compared with one."""

_FREE_PARAMETERS: Final[Mapping[str, tuple[str, ...]]] = {
    "decode": ("base64", "base64url", "hex"),
    "trim": ("0", "1"),
    "optional": ("0", "1"),
    "type": (),
    "mode": ("create",),
}
"""Parameters that no pattern has to spell, with their values (none: any).

They choose no other secret, place or name.

`format` opens another view of a document, `filename` and `lang` end on the recipient's disk and
screen, and other modes overwrite: these are spelled.
"""
_NAME_CHARACTERS: Final = frozenset(string.ascii_letters + string.digits + "_*")


def find_flaw(ref: Reference) -> str | None:
    """Return what no assistant may write in a reference, whatever the patterns are.

    None if there is nothing.
    """
    if len(str(ref)) > MAX_TEXT:
        return f"it has more than {MAX_TEXT} characters"
    if not str(ref).isprintable():
        return "it has an invisible character"
    if "\\" in ref.body:
        return "it has a backslash"
    if "//" in ref.body or {".", ".."} & set(ref.body.split("/")):
        return "its path has a part that is empty, . or .."
    return None


@dataclass(frozen=True)
class ReferencePattern:
    """A pattern of sources or of sinks."""

    text: str
    ref: Reference
    body: PathWildcard
    params: Mapping[str, Wildcard]
    is_sink: bool

    def matches(self, ref: Reference) -> bool:
        """Return whether the pattern covers all that a reference names."""
        is_same = (
            ref.name == self.ref.name
            and find_flaw(ref) is None
            and self.body.matches(ref.body.split("/"))
        )
        return is_same and self._covers_parameters(ref) and self._covers_selector(ref.selector)

    def _covers_parameters(self, ref: Reference) -> bool:
        """Whether the reference has the pattern's parameters, and no others but the free ones."""
        given = dict(ref.params)
        return all(
            name in given and value.matches(given[name]) for name, value in self.params.items()
        ) and all(
            name in self.params or _is_free_parameter(name, value) for name, value in given.items()
        )

    def _covers_selector(self, items: tuple[Item, ...] | None) -> bool:
        own = self.ref.selector
        if own is None:
            return not self.is_sink or all(_has_plain_key(item) for item in items or ())
        if items is None:
            return False
        if Everything() in own:
            return not self.is_sink or all(map(_has_plain_key, items))
        return all(any(self._covers_item(each, item) for each in own) for item in items)

    def _covers_item(self, own: Item, item: Item) -> bool:
        if isinstance(own, Key) and isinstance(item, Key):
            # In a sink, a name without `KEY=` may be a prompt's text, and the key that is written
            # is the prompt's id.
            key = item.label if self.is_sink else item.name
            return key is not None and Wildcard(own.name, is_segment).matches(key)
        if isinstance(own, Pointer) and isinstance(item, Pointer):  # never in a sink
            return PathWildcard(own.tokens).matches(item.tokens)
        return False


def _is_free_parameter(name: str, value: str) -> bool:
    return name in _FREE_PARAMETERS and (
        not _FREE_PARAMETERS[name] or value in _FREE_PARAMETERS[name]
    )


def _has_plain_key(item: Item) -> bool:
    """Whether the key that a sink writes is one name: sinks make paths and variables of keys."""
    label = None if isinstance(item, Everything) else item.label
    return label is None or ANY_SEGMENT.matches(label)


def parse_source(text: str) -> ReferencePattern:
    """Parse the pattern of sources. Raises UsageError."""
    return _parse_reference(text, is_sink=False)


def parse_sink(text: str) -> ReferencePattern:
    """Parse the pattern of sinks; its selector names the keys to write. Raises UsageError."""
    return _parse_reference(text, is_sink=True)


def _parse_reference(text: str, *, is_sink: bool) -> ReferencePattern:
    ref = parse(text, "the pattern")
    flaw = find_flaw(ref)
    if flaw is not None:
        raise UsageError(
            f"the pattern can match nothing: {flaw}",
            remedy="write it as vault:secret/app/*#password",
        )
    items = ref.selector or ()
    if any(not isinstance(item, Everything) and item.label is not None for item in items):
        raise UsageError("the pattern has a label", remedy="name keys only: #password")
    if is_sink and any(isinstance(item, Pointer) for item in items):
        raise UsageError(
            "the pattern of a sink has a JSON pointer", remedy="name the keys to write: #password"
        )
    selector = text.partition("#")[2]
    if '"' in selector or "%2a" in selector.lower():
        raise UsageError(
            "the pattern has a quoted or escaped name in its selector",
            remedy="write keys plainly; * is a wildcard",
        )
    for item in items:
        if isinstance(item, Pointer):
            PathWildcard(item.tokens)
        elif isinstance(item, Key) and REST in item.name:
            raise UsageError(
                "the pattern has ** in a key",
                remedy="write *, or leave the selector out for every key",
            )
    params = {name: Wildcard(value) for name, value in ref.params}
    return ReferencePattern(text, ref, PathWildcard(ref.body.split("/")), params, is_sink)


@dataclass(frozen=True)
class RecipientPattern:
    """A pattern of recipients.

    The channel literally, and the text after its colon, in which `*` crosses no `@`.
    """

    text: str
    target: Target

    def matches(self, target: Target) -> bool:
        """Return whether the pattern covers a recipient."""
        return target.name == self.target.name and Wildcard(self.target.to).matches(target.to)


def parse_recipient(text: str) -> RecipientPattern:
    """Parse the pattern of recipients. Raises UsageError.

    No pattern has a brace, and `*` stands for none: what a placeholder would be filled with is not
    known here.
    """
    target = parse_target(text)
    if {"{", "}"} & set(target.to) or REST in target.to or not text.isprintable():
        raise UsageError(
            "the pattern has a brace, ** or an invisible character",
            remedy="write it as email:*@example.com",
        )
    return RecipientPattern(text, target)


@dataclass(frozen=True)
class CommandPattern:
    """A pattern of commands.

    The program literally, one pattern for each argument, and `**` at the end for any more.
    """

    words: tuple[str, ...]

    @property
    def text(self) -> str:
        """The pattern as the policy has it."""
        return json.dumps(self.words, ensure_ascii=False)

    def matches(self, command: Sequence[str]) -> bool:
        """Return whether the pattern covers a command."""
        has_rest = self.words[-1] == REST
        own = self.words[:-1] if has_rest else self.words
        if (
            len(command) < len(own)
            or (len(command) > len(own) and not has_rest)
            or any("\0" in word for word in command)
        ):
            return False
        return all(
            Wildcard(pattern).matches(word) for pattern, word in zip(own, command, strict=False)
        )


def parse_command(words: Sequence[str]) -> CommandPattern:
    """Parse the pattern of commands. Raises UsageError."""
    if not words or not words[0] or "*" in words[0]:
        raise UsageError(
            "the pattern has no program, or a wildcard in it",
            remedy='write ["pg_dump", "--host=db", "*"]',
        )
    if "/" in words[0] and not words[0].startswith("/"):
        raise UsageError(
            "the program is a path from the working directory, where assistants write",
            remedy="write its name alone, or its whole path",
        )
    if find_inner_rest(words):
        raise UsageError(
            "** is not the whole last argument", remedy='write it last: ["pg_dump", "**"]'
        )
    return CommandPattern(tuple(words))


@dataclass(frozen=True)
class VariablePattern:
    """A pattern of variables of a command."""

    text: str

    def matches(self, name: str) -> bool:
        """Return whether the pattern covers a variable."""
        return Wildcard(self.text).matches(name) and find_reader(name) is None


def parse_variable(text: str) -> VariablePattern:
    """Parse the pattern of variables. Raises UsageError."""
    if not text or not set(text) <= _NAME_CHARACTERS:
        raise UsageError(
            "the pattern is no name of a variable", remedy="write it as PGPASSWORD or DB_*"
        )
    if reader := find_reader(text):
        raise UsageError(
            f"{text} may not come from a store: {reader} would obey it",
            remedy="choose another name",
        )
    return VariablePattern(text)
