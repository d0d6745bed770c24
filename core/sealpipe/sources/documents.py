"""Parse documents: JSON, YAML and dotenv.

Only the structure is interpreted: a number keeps its original text, and a dotenv value is not
expanded. A parser's own error contains the text, so it is neither shown nor chained to ours.
"""

from __future__ import annotations

import io
from importlib import import_module
from typing import Any, Final, NoReturn

from sealpipe.errors import EncodingError, NotConfiguredError, PluginError
from sealpipe.wire import jsontext

_BOM: Final = b"\xef\xbb\xbf"
_NULL: Final = "tag:yaml.org,2002:null"


def parse_document(content: bytes | str, form: str, where: str) -> Any:
    """Parse a document, which is UTF-8 text.

    Raises PluginError naming `where`, and the line if known.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    data = data.removeprefix(_BOM)  # a byte order mark, not part of the content
    return {"json": _parse_json, "yaml": _parse_yaml, "dotenv": _parse_dotenv}[form](data, where)


def refuse_document(where: str, form: str, reason: str) -> NoReturn:
    """Raise PluginError: the document at `where` cannot be parsed as `form`."""
    raise PluginError(
        f"{where} cannot be read as {form}: {reason}",
        locator=where,
        remedy="fix it, or change format=",
    )


def _parse_json(data: bytes, where: str) -> Any:
    try:
        return jsontext.loads(data)
    except EncodingError as error:
        reason = error.message
    refuse_document(where, "json", reason)


def _parse_dotenv(data: bytes, where: str) -> dict[str, str]:
    from dotenv.parser import parse_stream  # comes with pydantic-settings; only this needs it

    values: dict[str, str] = {}
    for binding in parse_stream(io.StringIO(data.decode("utf-8"))):
        if binding.error:
            refuse_document(where, "dotenv", f"line {binding.original.line} is not NAME=VALUE")
        # A name without = sets nothing. It is not a key either: it may be a line of a secret.
        if binding.key is not None and binding.value is not None:
            values[binding.key] = binding.value  # the last one wins, as in a shell
    return values


def _parse_yaml(data: bytes, where: str) -> Any:
    try:
        yaml = import_module("yaml")
    except ImportError:
        yaml = None
    if yaml is None:
        from sealpipe.installation import format_command  # for an error only

        raise NotConfiguredError(
            f"{where}: reading YAML needs a package that is not installed",
            locator=where,
            remedy=format_command(["sealpipe[yaml]"]),
        )
    reason = "it is nested too deeply"
    try:
        return convert_yaml(yaml.compose(data.decode("utf-8"), Loader=yaml.SafeLoader), {})
    except yaml.YAMLError as error:
        problem_mark = getattr(error, "problem_mark", None)
        reason = "it is not YAML" if problem_mark is None else f"line {problem_mark.line + 1}"
    except NotAMapError as error:
        reason = f"line {error.line} repeats a key, or has one that is no text"
    except RecursionError:
        pass
    refuse_document(where, "yaml", reason)


class NotAMapError(Exception):
    """A mapping of YAML repeats a key, or has one that is no text: where, counted from 1."""

    def __init__(self, node: Any) -> None:
        self.line = node.start_mark.line + 1
        self.column = node.start_mark.column + 1


def convert_yaml(node: Any, converted: dict[int, Any]) -> Any:
    """Convert a node to its value.

    Scalars keep their text (`0123`, `yes`); an alias is the same value, not a copy.

    `converted` is what was converted before, by the node's identity. Raises NotAMapError,
    RecursionError.
    """
    if node is None or node.tag == _NULL:
        return None
    if isinstance(node.value, str):
        return node.value
    if id(node) in converted:
        return converted[id(node)]
    if node.id == "sequence":
        items: list[Any] = []
        converted[id(node)] = items
        items.extend(convert_yaml(item, converted) for item in node.value)
        return items
    members: dict[str, Any] = {}
    converted[id(node)] = members
    for key, value in node.value:
        if not isinstance(key.value, str) or key.value in members:
            raise NotAMapError(key)
        members[key.value] = convert_yaml(value, converted)
    return members
