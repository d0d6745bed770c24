"""Reads the policy file of the local MCP server, and checks all of it before anything is allowed.

Only the path that a setting names, or the user's config folder, is read: never the working directory. Each error names
the place in the file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar

from sealpipe import values
from sealpipe.config import find_config_folder
from sealpipe.config_file import TomlFlaw, load_toml
from sealpipe.errors import SettingError, UsageError
from sealpipe.mcp.patterns import MAX_TEXT
from sealpipe.mcp.policy import LISTS, LONGEST_EXPIRY, TABLES, TOOLS, Pattern, Policy
from sealpipe.permissions import find_file_flaw, find_folder_flaw
from sealpipe.state import create_file, refuse_newer

T = TypeVar("T")

FILE_NAME: Final = "mcp.toml"
CONFIRMED: Final = ("share_secret", "run_with_secrets")
"""What a person must confirm, where the policy does not say."""
_MAX_SIZE: Final = 256 * 1024
_MAX_PATTERNS: Final = 200
_MAX_PER_HOUR: Final = 1000
_MAX_NAME: Final = 50


def find_policy_file(environ: Mapping[str, str]) -> Path | None:
    """Return the path of the policy in the user's config folder; None if there is no such folder."""
    folder = find_config_folder(environ)
    return None if folder is None else folder / FILE_NAME


def load_policy(path: Path | None, environ: Mapping[str, str]) -> Policy:
    """Load the policy: the file at `path`, else the user's own, else `Policy.DENY`.

    Raises SettingError for a file that is missing although `path` names it, that others can write, or with an error.
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
            f"the policy {found} does not exist", remedy=f"run `sealpipe mcp policy init --policy {found}`"
        ) from None
    except OSError as error:
        raise SettingError(f"the policy {found} cannot be read: {error.strerror}") from None
    if flaw is not None:
        raise SettingError(flaw[0], remedy=flaw[1])
    if len(content) > _MAX_SIZE:
        raise SettingError(f"the policy {found} is larger than {_MAX_SIZE // 1024} KiB", remedy="shorten it")
    table = load_toml(content)
    if isinstance(table, TomlFlaw):
        raise SettingError(f"the policy {found} is not valid TOML at {table.location}", remedy="correct it there")
    return _Reader(found.absolute()).read(table)


def write_example(path: Path, environ: Mapping[str, str]) -> None:
    """Write a policy that allows nothing, with an example of each setting (0600). Raises SettingError, UsageError.

    Never overwrites a file.
    """
    flaw = find_folder_flaw(path.parent, environ, f"the policy {path}")
    if flaw is not None:
        raise SettingError(flaw[0], remedy=flaw[1])
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        create_file(path, lambda: [EXAMPLE.encode()])
    except FileExistsError:
        raise UsageError(f"the policy {path} exists already", remedy="edit it, or give another --policy FILE") from None
    except OSError as error:
        raise UsageError(f"the policy {path} cannot be written: {error.strerror}", remedy="check the folder") from None


class _Reader:
    """Turns the tables of a file into a policy."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self, table: Mapping[str, Any]) -> Policy:
        refuse_newer(table, f"the policy {self._path}", SettingError)
        self._check_names("", table, ("schema", "longest_expiry", "confirm", "per_hour", *TABLES))
        schema = table.get("schema")
        if isinstance(schema, bool) or schema != 1:
            self._refuse("schema", "is missing" if schema is None else "is not 1", "write schema = 1")
        lists = {name: self._read_lists(name, self._get_table(table, name)) for name in TABLES if name in table}
        return Policy(
            self._path,
            lists,
            self._read_expiry(table),
            frozenset(self._read_confirm(table)),
            self._read_per_hour(self._get_table(table, "per_hour")),
        )

    def _read_lists(self, name: str, table: Mapping[str, Any]) -> dict[str, tuple[Pattern, ...]]:
        self._check_names(name, table, TABLES[name])
        return {key: tuple(self._read_patterns(f"{name}.{key}", key, value)) for key, value in table.items()}

    def _read_patterns(self, place: str, key: str, value: object) -> Iterable[Pattern]:
        is_command = key == "commands"
        form = f'write {key} = [["pg_dump", "app"]]' if is_command else f'write {key} = ["..."]'
        if not isinstance(value, list) or len(value) > _MAX_PATTERNS:
            self._refuse(place, f"is not a list of at most {_MAX_PATTERNS} patterns", form)
        for number, item in enumerate(value, 1):
            texts = item if is_command and isinstance(item, list) else [item]
            is_text = all(isinstance(text, str) and len(text) <= MAX_TEXT for text in texts)
            if not is_text or isinstance(item, list) != is_command:
                kind = "list of texts" if is_command else "text"
                self._refuse(f"{place}, pattern {number},", f"is not a {kind} of at most {MAX_TEXT} characters", form)
            yield self._parse(f"{place}, pattern {number}", LISTS[key].parse, item)

    def _read_expiry(self, table: Mapping[str, Any]) -> timedelta:
        value = table.get("longest_expiry")
        if value is None:
            return LONGEST_EXPIRY
        if not isinstance(value, str):
            self._refuse("longest_expiry", "is not a duration", 'write longest_expiry = "7d"')
        return self._parse("longest_expiry", values.parse_duration, value)

    def _read_confirm(self, table: Mapping[str, Any]) -> tuple[str, ...]:
        names = table.get("confirm", list(CONFIRMED))
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            self._refuse("confirm", "is not a list of tools", 'write confirm = ["share_secret"]')
        self._check_names("confirm", names, TOOLS)
        return tuple(names)

    def _read_per_hour(self, table: Mapping[str, Any]) -> dict[str, int]:
        self._check_names("per_hour", table, TOOLS)
        for name, value in table.items():
            if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= _MAX_PER_HOUR:
                self._refuse(f"per_hour.{name}", f"is not a number from 1 to {_MAX_PER_HOUR}", f"write {name} = 5")
        return dict(table)

    def _get_table(self, table: Mapping[str, Any], name: str) -> Mapping[str, Any]:
        value = table.get(name, {})
        if not isinstance(value, dict):
            self._refuse(name, "is not a table", f"write [{name}], followed by its lists")
        return value

    def _check_names(self, place: str, names: Iterable[str], known: Iterable[str]) -> None:
        unknown = next((name for name in names if name not in known), None)
        if unknown is None:
            return
        from difflib import get_close_matches  # for an error only

        near = get_close_matches(unknown, list(known), 1)
        shown = repr(unknown) if len(unknown) <= _MAX_NAME else f"a name of {len(unknown)} characters"
        remedy = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
        self._refuse(place or "the file", f"has {shown}, which it does not know", remedy)

    def _parse(self, place: str, parse: Callable[[Any], T], value: Any) -> T:
        try:
            return parse(value)
        except UsageError as error:
            raise SettingError(f"the policy {self._path}: {place}: {error.message}", remedy=error.remedy) from None

    def _refuse(self, place: str, what: str, remedy: str) -> NoReturn:
        raise SettingError(f"the policy {self._path}: {place} {what}", remedy=remedy)


EXAMPLE: Final = """\
# What assistants may do with `sealpipe mcp`. What is not allowed here is refused.
# Try it: sealpipe mcp policy test TOOL ARGUMENTS. A running server reads the file when it is started again.
schema = 1

# The longest life of a share and of a request.
longest_expiry = "7d"

# For these tools, a person must confirm each call. [] for none.
confirm = ["share_secret", "run_with_secrets"]

# In patterns, * stands for letters, digits and . _ + - (in references: for one part of a path or one key), and ** at
# the end for any rest. Everything else stands for itself.

# How many calls an hour a tool has. Without a line here, 10 for request_secret, share_secret and run_with_secrets, and
# any number for the others.
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

# Run commands with secrets in their environment. A command that runs others (sh, env, make, a script that anyone can
# write) has the secrets, too: name the whole command.
# [run]
# sources = ["vault:secret/app/*"]
# variables = ["PGPASSWORD"]
# commands = [["pg_dump", "--host=db.example.com", "--schema-only", "*"]]
"""
