"""Reads the policy file of the local MCP server, and checks all of it before anything is allowed.

Only the path that a setting names, or the user's config folder, is read: never the working
directory. Each error names the place in the file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

from pydantic import AfterValidator, Field

from sealpipe import parsing
from sealpipe.config import find_config_folder
from sealpipe.config_file import TomlFlaw, load_toml
from sealpipe.errors import SettingError, UsageError, find_similar
from sealpipe.mcp.models import Flaw, Model, find_flaw
from sealpipe.mcp.patterns import MAX_TEXT
from sealpipe.mcp.tool_policy import (
    LISTS,
    LONGEST_EXPIRY,
    TABLES,
    TOOLS,
    Pattern,
    Policy,
    format_duration,
)
from sealpipe.permissions import find_file_flaw, find_folder_flaw
from sealpipe.state.files import create_file, refuse_newer

T = TypeVar("T")

FILE_NAME: Final = "mcp.toml"
CONFIRMED: Final = ("share_secret", "run_with_secrets")
"""What a person must confirm, where the policy does not say."""
_MAX_SIZE: Final = 256 * 1024
_MAX_PATTERNS: Final = 200
_MAX_PER_HOUR: Final = 1000
_MAX_NAME: Final = 50


def find_policy_file(environ: Mapping[str, str]) -> Path | None:
    """Return the policy's path in the user's config folder, or None without such a folder."""
    folder = find_config_folder(environ)
    return None if folder is None else folder / FILE_NAME


def load_policy(path: Path | None, environ: Mapping[str, str]) -> Policy:
    """Load the policy: the file at `path`, else the user's own, else `Policy.DENY`.

    Raises SettingError for a file that is missing although `path` names it, that others can write,
    or with an error.
    """
    found = path or find_policy_file(environ)
    if found is None:
        return Policy.DENY
    try:
        with found.open("rb") as stream:
            flaw = find_file_flaw(found, os.fstat(stream.fileno()), "the policy", environ)
            content = stream.read(_MAX_SIZE + 1)
    except FileNotFoundError:
        if path is None:
            return Policy.DENY
        raise SettingError(
            f"the policy {found} does not exist",
            remedy=f"run `sealpipe mcp policy init --policy {found}`",
        ) from None
    except OSError as error:
        raise SettingError(f"the policy {found} cannot be read: {error.strerror}") from None
    if flaw is not None:
        raise SettingError(flaw[0], remedy=flaw[1])
    if len(content) > _MAX_SIZE:
        raise SettingError(
            f"the policy {found} is larger than {_MAX_SIZE // 1024} KiB", remedy="shorten it"
        )
    table = load_toml(content)
    if isinstance(table, TomlFlaw):
        raise SettingError(
            f"the policy {found} is not valid TOML at {table.location}", remedy="correct it there"
        )
    return _read_policy(found.absolute(), table)


def write_example(path: Path, environ: Mapping[str, str]) -> None:
    """Write a policy that allows nothing, with an example of each setting (0600).

    Raises SettingError, UsageError.

    Never overwrites a file.
    """
    flaw = find_folder_flaw(path.parent, environ, f"the policy {path}")
    if flaw is not None:
        raise SettingError(flaw[0], remedy=flaw[1])
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        create_file(path, lambda: [EXAMPLE.encode()])
    except FileExistsError:
        raise UsageError(
            f"the policy {path} exists already", remedy="edit it, or give another --policy FILE"
        ) from None
    except OSError as error:
        raise UsageError(
            f"the policy {path} cannot be written: {error.strerror}", remedy="check the folder"
        ) from None


def _check_tool(name: str) -> str:
    if name not in TOOLS:
        raise ValueError
    return name


PatternText = Annotated[str, Field(max_length=MAX_TEXT)]
Patterns = Annotated[list[PatternText], Field(max_length=_MAX_PATTERNS)]
Commands = Annotated[list[list[PatternText]], Field(max_length=_MAX_PATTERNS)]
ToolName = Annotated[str, AfterValidator(_check_tool)]
PerHour = Annotated[int, Field(ge=1, le=_MAX_PER_HOUR)]


class RequestTable(Model):
    """Whom assistants may ask for secrets, and where these are stored."""

    sinks: Patterns = Field(default_factory=list)
    recipients: Patterns = Field(default_factory=list)


class ShareTable(Model):
    """Which secrets assistants may share, and with whom."""

    sources: Patterns = Field(default_factory=list)
    recipients: Patterns = Field(default_factory=list)


class RunTable(Model):
    """Which commands assistants may run, with which secrets in which variables."""

    sources: Patterns = Field(default_factory=list)
    variables: Patterns = Field(default_factory=list)
    commands: Commands = Field(default_factory=list)


class PolicyFile(Model):
    """The members of a policy file, before its patterns and durations are parsed."""

    version: int = Field(alias="schema", ge=1, le=1)
    longest_expiry: str = format_duration(LONGEST_EXPIRY)
    confirm: list[ToolName] = Field(default_factory=lambda: list(CONFIRMED))
    per_hour: dict[ToolName, PerHour] = Field(default_factory=dict)
    request: RequestTable | None = None
    share: ShareTable | None = None
    run: RunTable | None = None


def _read_policy(path: Path, table: Mapping[str, Any]) -> Policy:
    refuse_newer(table, f"the policy {path}", SettingError)
    found = find_flaw(PolicyFile, table)
    if isinstance(found, Flaw):
        what, remedy = _describe_flaw(found, table)
        raise SettingError(f"the policy {path}: {what}", remedy=remedy)
    tables = {name: getattr(found, name) for name in TABLES}
    return Policy(
        path,
        {
            name: {
                key: tuple(_parse_patterns(path, f"{name}.{key}", key, values))
                for key, values in given
            }
            for name, given in tables.items()
            if given is not None
        },
        _parse(path, "longest_expiry", parsing.parse_duration, found.longest_expiry),
        frozenset(found.confirm),
        found.per_hour,
    )


def _parse_patterns(path: Path, place: str, key: str, items: Iterable[Any]) -> Iterator[Pattern]:
    for number, item in enumerate(items, 1):
        yield _parse(path, f"{place}, pattern {number}", LISTS[key].parse, item)


def _parse(path: Path, place: str, parse: Callable[[Any], T], value: Any) -> T:
    try:
        return parse(value)
    except UsageError as error:
        raise SettingError(
            f"the policy {path}: {place}: {error.message}", remedy=error.remedy
        ) from None


def _describe_flaw(flaw: Flaw, table: Mapping[str, Any]) -> tuple[str, str]:
    """Return what is wrong with a file, and what to write there."""
    place = ".".join(str(each) for each in flaw.path if isinstance(each, str))
    if flaw.kind == "extra_forbidden":
        return _describe_unknown(place or "the file", str(flaw.rest[0]), flaw.schema["properties"])
    match (*flaw.path, *flaw.rest):
        case ("schema",):
            return (
                f"schema {'is missing' if flaw.kind == 'missing' else 'is not 1'}",
                "write schema = 1",
            )
        case ("longest_expiry",):
            return "longest_expiry is not a duration", 'write longest_expiry = "7d"'
        case ("confirm", int(number)) if isinstance(table["confirm"][number], str):
            return _describe_unknown("confirm", table["confirm"][number], TOOLS)
        case ("confirm", *_):
            return "confirm is not a list of tools", 'write confirm = ["share_secret"]'
        case ("per_hour", str(name), "[key]"):
            return _describe_unknown("per_hour", name, TOOLS)
        case ("per_hour", str(name)):
            return f"per_hour.{name} is not a number from 1 to {_MAX_PER_HOUR}", f"write {name} = 5"
        case (str(), str(key), *_):
            is_command = key == "commands"
            form = f'write {key} = [["pg_dump", "app"]]' if is_command else f'write {key} = ["..."]'
            item = next((each for each in flaw.path if isinstance(each, int)), None)
            if item is None:
                return f"{place} is not a list of at most {_MAX_PATTERNS} patterns", form
            kind = "list of texts" if is_command else "text"
            return (
                f"{place}, pattern {item + 1}, is not a {kind} of at most {MAX_TEXT} characters",
                form,
            )
    return f"{place} is not a table", f"write [{place}], followed by its lists"


def _describe_unknown(place: str, name: str, known: Iterable[str]) -> tuple[str, str]:
    near = find_similar(name, known)
    shown = repr(name) if len(name) <= _MAX_NAME else f"a name of {len(name)} characters"
    remedy = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
    return f"{place} has {shown}, which it does not know", remedy


EXAMPLE: Final = """\
# What assistants may do with `sealpipe mcp`. What is not allowed here is refused.
# Try it: sealpipe mcp policy test TOOL ARGUMENTS. A running server reads the file when it is
# started again.
schema = 1

# The longest life of a share and of a request.
longest_expiry = "7d"

# For these tools, a person must confirm each call. [] for none.
confirm = ["share_secret", "run_with_secrets"]

# In patterns, * stands for letters, digits and . _ + - (in references: for one part of a path or
# one key), and ** at the end for any rest. Everything else stands for itself.

# How many calls an hour a tool has. Without a line here, 10 for request_secret, share_secret and
# run_with_secrets, and any number for the others.
# [per_hour]
# request_secret = 5

# Ask people for secrets: where these may be stored, and to whom a collect link may be sent.
# [request]
# sinks = ["vault:secret/vendor/*"]
# recipients = ["email:*@example.com"]

# Share secrets with people: which, and to whom a link may be sent.
# [share]
# sources = ["vault:secret/app/*#password"]
# recipients = ["email:*@example.com"]

# Run commands with secrets in their environment. A command that runs others (sh, env, make, a
# script that anyone can write) has the secrets, too: name the whole command.
# [run]
# sources = ["vault:secret/app/*"]
# variables = ["PGPASSWORD"]
# commands = [["pg_dump", "--host=db.example.com", "--schema-only", "*"]]
"""
