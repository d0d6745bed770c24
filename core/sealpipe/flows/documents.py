"""Documents in a format: JSON, YAML or dotenv text as maps, lists and values.

Nothing is interpreted beyond the structure: a number keeps its spelling, a dotenv value is not expanded. A
parser's own error is never shown, and never kept behind ours: it holds the text.
"""

from __future__ import annotations

import io
from importlib import import_module
from typing import Any, Final, NoReturn

from sealpipe.errors import EncodingError, NotConfiguredError, PluginError
from sealpipe.flows.values import is_utf8
from sealpipe.wire import jsontext

_BOM: Final = b"\xef\xbb\xbf"
_NULL: Final = "tag:yaml.org,2002:null"


def parsed(content: bytes | str, form: str, where: str) -> Any:
    """The content of a document. Raises PluginError naming `where`, and the line where that is known."""
    if not is_utf8(content):
        _refuse(where, form, "it is not UTF-8 text")
    data = content.encode("utf-8") if isinstance(content, str) else content
    data = data.removeprefix(_BOM)  # a mark of the file, not of what is in it
    return {"json": _json, "yaml": _yaml, "dotenv": _dotenv}[form](data, where)


def _refuse(where: str, form: str, reason: str) -> NoReturn:
    raise PluginError(f"{where} cannot be read as {form}: {reason}", locator=where, remedy="mend it, or change format=")


def _json(data: bytes, where: str) -> Any:
    try:
        return jsontext.loads(data)
    except EncodingError as error:
        reason = error.message
    _refuse(where, "json", reason)


def _dotenv(data: bytes, where: str) -> dict[str, str]:
    from dotenv.parser import parse_stream  # comes with pydantic-settings; only this needs it

    found: dict[str, str] = {}
    for binding in parse_stream(io.StringIO(data.decode("utf-8"))):
        if binding.error:
            _refuse(where, "dotenv", f"line {binding.original.line} is not NAME=VALUE")
        # A name without = sets nothing. It is no key either: a line of a secret would pass for one.
        if binding.key is not None and binding.value is not None:
            found[binding.key] = binding.value  # the last one counts, as in a shell
    return found


def _yaml(data: bytes, where: str) -> Any:
    try:
        yaml = import_module("yaml")
    except ImportError:
        yaml = None
    if yaml is None:
        raise NotConfiguredError(
            f"{where}: reading YAML needs a package that is not installed",
            locator=where,
            remedy="pip install pyyaml",
        )
    reason = "it is nested too deeply"
    try:
        return _yaml_value(yaml.compose(data.decode("utf-8"), Loader=yaml.SafeLoader), {})
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        reason = "it is not YAML" if mark is None else f"line {mark.line + 1}"
    except _NotAMapError as error:
        reason = f"line {error.line} repeats a key, or has one that is no text"
    except RecursionError:
        pass
    _refuse(where, "yaml", reason)


class _NotAMapError(Exception):  # never leaves this module
    def __init__(self, node: Any) -> None:
        self.line = node.start_mark.line + 1


def _yaml_value(node: Any, done: dict[int, Any]) -> Any:
    """A node as its value. Scalars keep their text (`0123`, `yes`); an alias is the same value, not a copy."""
    if node is None or node.tag == _NULL:
        return None
    if isinstance(node.value, str):
        return node.value
    if id(node) in done:
        return done[id(node)]
    if node.id == "sequence":
        items: list[Any] = []
        done[id(node)] = items
        items.extend(_yaml_value(item, done) for item in node.value)
        return items
    members: dict[str, Any] = {}
    done[id(node)] = members
    for key, value in node.value:
        if not isinstance(key.value, str) or key.value in members:
            raise _NotAMapError(key)
        members[key.value] = _yaml_value(value, done)
    return members
