"""Variables of a command.

Their names and references, files of them, and the environment of the command.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from sealpipe.errors import Note, ReferenceSyntaxError, UsageError
from sealpipe.plugin.context import drop_own_variables
from sealpipe.reference import Everything, Reference, parse
from sealpipe.run.refused_names import CREDENTIAL_FILES, find_reader

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_EVERY: Final = "*"
_NO_NAME_CHARACTER: Final = re.compile(r"[^A-Z0-9]")
_EACH: Final = (
    "write a name of letters, digits and _, and where its value lives: "
    "DB_PASSWORD=vault:app#password"
)
_IN_A_FILE: Final = "give the command a file: --file NAME=REF"
_MAX_FILE_SIZE: Final = 1024 * 1024
_MAX_VARIABLE: Final = 128 * 1024
"""Most bytes of NAME=VALUE on Linux, with the NUL at its end."""
_COMMENTED_OUT: Final = re.compile(r"(export\s+)?[A-Za-z_]\w*\s*=")


class Variable(NamedTuple):
    """A variable of a command, and where its value comes from.

    `is_file` says that it names a file which holds the value; `comment` is what stands right above
    it in a file of variables. A name `PREFIX_*` stands for one variable a value of the reference.
    """

    name: str
    ref: Reference
    is_file: bool = False
    comment: str = ""

    @property
    def is_pattern(self) -> bool:
        """Return whether it stands for one variable a value."""
        return self.name.endswith(_EVERY)

    def name_value(self, label: str) -> Variable:
        """Return the variable of one value of a pattern: its label in upper case, with `_` for what
        no name has.
        """
        rest = _NO_NAME_CHARACTER.sub("_", label.upper())
        return self._replace(name=self.name.removesuffix(_EVERY) + rest)


def parse_variable(text: str) -> Variable:
    """Parse NAME=REF. Raises UsageError, which shows nothing but a valid name."""
    name, reference = _parse(text)
    if not _NAME.fullmatch(name):
        raise UsageError("the value is not NAME=REF", remedy=_EACH)
    check_single(reference, name)
    return Variable(name, reference)


def _parse(text: str) -> tuple[str, Reference]:
    name, equals, ref = text.partition("=")
    if equals and name == _EVERY:
        raise UsageError(
            "* has no prefix, so who writes to the store would choose any name",
            remedy="write a prefix that no program obeys: 'APP_*=REF#*'",
        )
    if not equals or not _NAME.fullmatch(name.removesuffix(_EVERY)):
        raise UsageError("the value is not NAME=REF", remedy=_EACH)
    check_name(name)
    return name, parse(ref, "what follows the first =")


def check_name(name: str) -> None:
    """Raise UsageError for a name that no secret may have."""
    if reader := find_reader(name):
        raise UsageError(
            f"{name} may not come from a store: {reader} would obey it",
            remedy="choose another name, or set it before sealpipe run",
        )


def check_single(ref: Reference, what: str) -> None:
    """Raise ReferenceSyntaxError if a reference selects more than one value."""
    items = ref.selector or ()
    if len(items) > 1 or Everything() in items:
        raise ReferenceSyntaxError(
            f"{what}: the reference selects several values, and only one is possible here",
            remedy="name one key: REF#KEY",
        )


def read_variables(
    options: Sequence[str], file: str | None, files: Sequence[str] = ()
) -> list[Variable]:
    """Read the variables of -e NAME=REF, of a file with such lines and # comments, and of --file
    NAME=REF.

    Tells everything that is wrong with them in one UsageError, by number or line, without their
    content.
    """
    places = [
        *_number("-e", options),
        *(_read_lines(file) if file else ()),
        *_number("--file", files),
    ]
    if not places:
        raise UsageError(
            "no variable is given", remedy="add -e NAME=REF, --env-file FILE or --file NAME=REF"
        )
    found: list[Variable] = []
    wrong: list[tuple[_Place, UsageError]] = []
    for place in places:
        try:
            variable = _parse_place(place)
            if not variable.is_pattern:  # two patterns may be of two documents
                check_once(variable.name, [each.name for each in found])
            found.append(variable)
        except UsageError as error:
            wrong.append((place, error))
    if wrong:
        first, *others = [f"{place.name}: {error.message}" for place, error in wrong]
        failure = UsageError(first, remedy=wrong[0][1].remedy if not others else _EACH)
        for other in others:
            failure.add_note(Note(other))
        raise failure
    return found


def check_key_name(name: str) -> None:
    """Raise UsageError for a name that no secret may have if the store chooses the name."""
    check_name(name)
    if name in CREDENTIAL_FILES:
        raise UsageError(
            f"{name} may not be a key of a document: it names what a program may run",
            remedy=f"name it yourself: -e {name}=REF#KEY",
        )


def check_once(name: str, others: Container[str]) -> None:
    """Raise UsageError if a name is among the others."""
    if name in others:
        raise UsageError(
            f"{name} is given twice",
            remedy="give each variable once; where keys of a document give one name, rename one: "
            "'PREFIX_*=REF#a,OTHER=b'",
        )


class _Place(NamedTuple):
    """A text NAME=REF, the option that gave it, what an error calls it, and its comment."""

    option: str
    name: str
    text: str
    comment: str = ""


def _parse_place(place: _Place) -> Variable:
    """Parse NAME=REF, of a variable also PREFIX_*=REF."""
    is_file = place.option == "--file"
    name, _, _ = place.text.partition("=")
    if name.endswith(_EVERY) and not is_file:
        variable = Variable(*_parse(place.text))
        if variable.ref.selector is None:
            raise UsageError(
                f"{name}: the reference selects no keys", remedy="select them: 'PREFIX_*=REF#*'"
            )
    else:
        variable = parse_variable(place.text)
    return variable._replace(is_file=is_file, comment=place.comment)


def _number(option: str, texts: Sequence[str]) -> list[_Place]:
    """Return the texts of an option."""
    return [
        _Place(option, f"{option} {number}" if len(texts) > 1 else option, text)
        for number, text in enumerate(texts, 1)
    ]


def _read_lines(file: str) -> Iterator[_Place]:
    """Yield the lines that say something, each with the comment right above it."""
    try:
        with Path(file).open("rb") as stream:
            content = stream.read(_MAX_FILE_SIZE + 1)
    except OSError as error:
        raise UsageError(
            f"{file} cannot be read: {error.strerror}", remedy="check the path of --env-file"
        ) from None
    if len(content) > _MAX_FILE_SIZE:
        raise UsageError(f"{file} is larger than 1 MiB", remedy="give a file of lines NAME=REF")
    comment: list[str] = []
    for number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        text = line.strip().decode("utf-8", "surrogateescape")
        if text.startswith("#"):
            words = text.lstrip("#").strip()
            if not _COMMENTED_OUT.match(words):  # it may be a secret that stood there once
                comment.append(words)
            continue
        if text:
            yield _Place("--env-file", f"{file}:{number}", text, " ".join(comment))
        comment = []


def check_holdable(name: str, value: bytes) -> None:
    """Raise UsageError for a value that no variable can hold."""
    if sys.platform == "linux" and len(name) + len(value) + 2 > _MAX_VARIABLE:
        raise UsageError(
            f"the value of {name} is too large for a variable: Linux allows 128 KiB",
            remedy=_IN_A_FILE,
        )
    if b"\0" in value:
        raise UsageError(
            f"the value of {name} has a NUL byte, which no variable can hold",
            remedy=f"{_IN_A_FILE}; or add ?encode=base64, for the base64 of the value",
        )


def make_environment(environ: Mapping[str, str], values: Mapping[str, bytes]) -> dict[bytes, bytes]:
    """Return the environment of the command.

    Ours without SEALPIPE_* variables, and the values, byte for byte.

    UsageError for a value with a NUL byte.
    """
    inherited = {
        os.fsencode(name): os.fsencode(value) for name, value in drop_own_variables(environ).items()
    }
    for name, value in values.items():
        check_holdable(name, value)
    return inherited | {name.encode(): value for name, value in values.items()}
