"""Reads a batch file.

TOML, or YAML or JSON of the same shape, as values whose lines and columns are known.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, time
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from sealpipe.batch.file import positions
from sealpipe.batch.file.mistakes import BatchFileError, Mistake, Place
from sealpipe.config_file import TomlFlaw, load_toml
from sealpipe.errors import EncodingError, PluginError
from sealpipe.installation import format_command
from sealpipe.parsing import find_nearest_file
from sealpipe.plugin import open_file
from sealpipe.sources.documents import NotAMapError, convert_yaml
from sealpipe.state.receipt import identify_file
from sealpipe.wire import jsontext

MAX_SIZE: Final = 8 * 1024 * 1024
"""Bytes of a batch file."""

_BOM: Final = b"\xef\xbb\xbf"
_WRITE_TOML: Final = 'write each option as name = value, and text in "quotes"'


@dataclass(frozen=True, slots=True)
class Document:
    """A batch file: its name as messages show it, its folder, its members, and where they stand.

    `members` consists of dict, list, str, int, float, bool and None: times are text.
    """

    file: str
    folder: Path
    members: Mapping[str, Any]
    find: Callable[[positions.Path], tuple[int, int]]
    texts: dict[str, str]
    """Files that the batch file names, apart from its rows, as far as they were read: their text by
    their name.
    """

    def place(self, *path: str | int) -> Place:
        """Return the place of a member, or of the nearest one around it."""
        return Place(self.file, *self.find(path))


class UnreadableFileError(Exception):
    """A file cannot be read; the text says why, `remedy` what to do. It becomes a mistake."""

    def __init__(self, problem: str, remedy: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.remedy = remedy


def read_document(path: Path) -> Document:
    """Read a batch file.

    Raises BatchFileError: of a file that cannot be parsed, only the first mistake is known.
    """
    place = Place(path.name)
    try:
        load = _LOADERS.get(path.suffix.lower())
        if load is None:
            near = find_nearest_file(path)
            raise UnreadableFileError(
                "there is no file of this name"
                if near
                else "the file's name does not say what it is",
                f"did you mean {near}?" if near else f"give it the ending {', '.join(_LOADERS)}",
            )
        content = read_file(path, MAX_SIZE)
        members, find = load(content.removeprefix(_BOM), place)
        if not isinstance(members, Mapping):
            raise UnreadableFileError(
                "the file is not a table of options", "begin it with name, kind, rows and key"
            )
        # The table of what it asks for.
        is_batch = isinstance(members.get(str(members.get("kind"))), Mapping)
        if not is_batch and (other := identify_file(members, "batch")):
            raise UnreadableFileError(f"this is {other[0]}, not a batch file", other[1])
    except UnreadableFileError as error:
        raise BatchFileError(path.name, [Mistake(place, error.problem, error.remedy)]) from None
    return Document(path.name, path.parent, members, find, {})


def read_file(path: Path, limit: int) -> bytes:
    """Read a file of at most `limit` bytes. Raises UnreadableFileError."""
    try:
        with open_file(path, "the file") as stream:
            content = stream.read(limit + 1)
    except (OSError, ValueError) as error:  # ValueError: a NUL character in the name
        why = getattr(error, "strerror", None) or "its name is not one of a file"
        near = find_nearest_file(path)
        remedy = f"did you mean {near}?" if near else "correct its name or its permissions"
        raise UnreadableFileError(f"the file cannot be read: {why}", remedy) from None
    except PluginError as error:
        raise UnreadableFileError(error.message, "name another file") from None
    if len(content) > limit:
        raise UnreadableFileError(
            f"the file is larger than {limit // (1024 * 1024) or 1} MiB",
            "divide it into several batches",
        )
    return content


Loaded = tuple[Any, Callable[[positions.Path], tuple[int, int]]]


def _fail(place: Place, line: int, column: int, problem: str, remedy: str) -> BatchFileError:
    return BatchFileError(
        place.file, [Mistake(place._replace(line=line, column=column), problem, remedy)]
    )


def _load_toml(content: bytes, place: Place) -> Loaded:
    members = load_toml(content)
    if isinstance(members, TomlFlaw):
        if members.repeats:
            raise _fail(
                place,
                members.line,
                members.column,
                "a table or an option is set twice",
                "keep one of them",
            )
        problem = (
            f"this is not valid TOML: {members.location}"
            if members.line == 0
            else "this is not valid TOML"
        )
        if members.location.endswith("not UTF-8"):
            raise _fail(place, members.line, 0, "the file is not UTF-8", "save it as UTF-8")
        raise _fail(place, members.line, members.column, problem, _WRITE_TOML)
    if _is_too_deep(members):
        raise _fail(place, 0, 0, "the file is nested too deeply", _WRITE_TOML)
    text = content.decode("utf-8")
    scan = cache(lambda: positions.Positions(text).scan_toml())  # only mistakes and rows need it
    return _convert_times(members), lambda path: scan().find(path)


def _is_too_deep(value: Any) -> bool:
    """Return whether there are more levels than JSON may have.

    Without recursion, because a dotted key has no limit.
    """
    level = [value]
    for _ in range(jsontext.DEPTH_LIMIT):
        tables = [each for each in level if isinstance(each, dict | list)]
        if not tables:
            return False
        level = [
            each
            for table in tables
            for each in (table.values() if isinstance(table, dict) else table)
        ]
    return True


def _convert_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _convert_times(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_convert_times(each) for each in value]
    return value.isoformat() if isinstance(value, date | time) else value


def _load_json(content: bytes, place: Place) -> Loaded:
    try:
        members = jsontext.loads(content)
    except EncodingError as error:
        line, column = _locate_json_error(content, error.reason)
        raise _fail(place, line, column, error.message, "write strict JSON in UTF-8") from None
    text = content.decode("utf-8")
    scan = cache(lambda: positions.Positions(text).scan_json())
    return members, lambda path: scan().find(path)


def _locate_json_error(content: bytes, reason: str) -> tuple[int, int]:
    """Return line and column of what is wrong with a JSON text; zeros if that is not known."""
    try:
        text = content.decode("utf-8")
        json.loads(text)
    except UnicodeDecodeError as error:
        return content.count(b"\n", 0, error.start) + 1, 0
    except json.JSONDecodeError as error:
        return error.lineno, error.colno
    except (ValueError, RecursionError):
        return 0, 0
    repeated = (
        positions.Positions(text).scan_json().repeated if reason == "duplicate-member" else None
    )
    return repeated or (0, 0)


def _load_yaml(content: bytes, place: Place) -> Loaded:
    try:
        yaml = import_module("yaml")
    except ImportError:
        yaml = None
    if yaml is None:
        remedy = f"{format_command(['sealpipe[yaml]'])}, or write it as TOML"
        raise UnreadableFileError("reading YAML needs a package that is not installed", remedy)
    line = column = 0
    problem = "this is not YAML"
    try:
        text = content.decode("utf-8")
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        return convert_yaml(node, {}), lambda path: _find_yaml(node, path)
    except UnicodeDecodeError as error:
        line, problem = content.count(b"\n", 0, error.start) + 1, "the file is not UTF-8"
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line, column = (0, 0) if mark is None else (mark.line + 1, mark.column + 1)
    except NotAMapError as error:
        line, column, problem = error.line, error.column, "a key is repeated, or is not text"
    except RecursionError:
        problem = "this is nested too deeply"
    raise _fail(
        place, line, column, problem, "write YAML of the same shape as a TOML batch file, in UTF-8"
    )


def _find_yaml(node: Any, path: positions.Path) -> tuple[int, int]:
    """Return line and column of a member, or of the nearest one around it."""
    mark = None
    for part in path:
        if node is None or isinstance(node.value, str):
            break
        if isinstance(part, int):
            if node.id != "sequence" or part >= len(node.value):
                break
            node = node.value[part]
            mark = node.start_mark
        else:
            pairs = [pair for pair in node.value if node.id == "mapping" and pair[0].value == part]
            if not pairs:
                break
            mark, node = pairs[0][0].start_mark, pairs[0][1]
    return (1, 1) if mark is None else (mark.line + 1, mark.column + 1)


_LOADERS: Final[Mapping[str, Callable[[bytes, Place], Loaded]]] = {
    ".toml": _load_toml,
    ".yaml": _load_yaml,
    ".yml": _load_yaml,
    ".json": _load_json,
}
