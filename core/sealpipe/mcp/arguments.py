"""JSON Schemas of arguments and answers, and the check of arguments against them.

Only what these functions make is understood, so that the check is small, quick, and quotes nothing: an assistant may
send a secret as an argument.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from sealpipe.errors import UsageError
from sealpipe.mcp.tools import Schema

MAX_TEXT: Final = 2000
"""Longest text of an argument, in characters."""


def make_object(members: Mapping[str, Schema], required: tuple[str, ...] | None = None) -> Schema:
    """Make the schema of an object with these members and no others; all are required unless `required` names some."""
    return {
        "type": "object",
        "properties": dict(members),
        "required": list(members if required is None else required),
        "additionalProperties": False,
    }


def make_text(description: str = "", *, longest: int = MAX_TEXT, choices: tuple[str, ...] = ()) -> Schema:
    """Make the schema of a text that is not empty. With `choices`, it is one of these."""
    schema = {"type": "string", "minLength": 1, "maxLength": longest, **({"enum": list(choices)} if choices else {})}
    return _describe(schema, description)


def make_number(description: str = "", *, least: int, most: int) -> Schema:
    """Make the schema of a whole number within bounds."""
    return _describe({"type": "integer", "minimum": least, "maximum": most}, description)


def make_count(description: str = "") -> Schema:
    """Make the schema of a number of an answer."""
    return _describe({"type": "integer", "minimum": 0}, description)


def make_time(description: str = "") -> Schema:
    """Make the schema of a time of an answer; null if there is none."""
    return _describe({"type": ["string", "null"], "format": "date-time"}, description)


def make_untrusted(description: str = "") -> Schema:
    """Make the schema of text from outside in an answer."""
    return _describe(make_object({"untrusted": {"type": "string"}}), description)


def make_list(items: Schema, description: str = "", *, most: int, least: int = 0) -> Schema:
    """Make the schema of a list."""
    return _describe({"type": "array", "items": items, "minItems": least, "maxItems": most}, description)


def make_map(values: Schema, names: str, description: str = "", *, most: int) -> Schema:
    """Make the schema of an object with names of the caller's choice, which match the pattern `names`."""
    schema = {"type": "object", "propertyNames": {"pattern": f"^(?:{names})$"}, "additionalProperties": values}
    return _describe({**schema, "maxProperties": most}, description)


def _describe(schema: Schema, description: str) -> Schema:
    return {**schema, "description": description} if description else schema


def check_arguments(schema: Schema, value: Any, path: str = "") -> None:
    """Check a value against its schema. UsageError names its place, and never the value."""
    where = path or "the arguments"
    match schema["type"]:
        case "object":
            _check_object(schema, value, path)
        case "array":
            least, most = schema["minItems"], schema["maxItems"]
            if not isinstance(value, list) or not least <= len(value) <= most:
                raise _refuse(where, f"a list of {least} to {most} items")
            for number, item in enumerate(value, 1):
                check_arguments(schema["items"], item, f"{where} item {number}")
        case "string":
            _check_text(schema, value, where)
        case "integer":
            least, most = schema["minimum"], schema["maximum"]
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
                raise _refuse(where, f"a whole number from {least} to {most}")
        case "boolean":
            if not isinstance(value, bool):
                raise _refuse(where, "true or false")


def _check_object(schema: Schema, value: Any, path: str) -> None:
    where = path or "the arguments"
    if not isinstance(value, dict):
        raise _refuse(where, "an object")
    others = schema["additionalProperties"]
    if others is not False:
        if len(value) > schema["maxProperties"]:
            raise _refuse(where, f"an object of at most {schema['maxProperties']} members")
        if not all(re.fullmatch(schema["propertyNames"]["pattern"], name) for name in value):
            raise _refuse(f"a name in {where}", "a name of the expected form")
        for number, item in enumerate(value.values(), 1):
            check_arguments(others, item, f"{where} member {number}")
        return
    members = schema["properties"]
    prefix = f"{path}." if path else ""
    if value.keys() - members.keys():  # the name is not shown: it may be anything
        raise UsageError(f"{where}: there is a member that is not known", remedy=f"known: {', '.join(members)}")
    for name in schema["required"]:
        if name not in value:
            raise UsageError(f"{prefix}{name} is missing", remedy=f"add {prefix}{name}")
    for name, item in value.items():
        check_arguments(members[name], item, f"{prefix}{name}")


def _check_text(schema: Schema, value: Any, where: str) -> None:
    choices = schema.get("enum")
    if choices is not None and value not in choices:
        raise _refuse(where, f"one of {', '.join(choices)}")
    if not isinstance(value, str) or not schema["minLength"] <= len(value) <= schema["maxLength"]:
        raise _refuse(where, f"a text of {schema['minLength']} to {schema['maxLength']} characters")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise _refuse(where, "valid Unicode") from None


def _refuse(where: str, what: str) -> UsageError:
    return UsageError(f"{where} is not {what}", remedy=f"give {where} as {what}")
