"""The base of the models of arguments, answers and the policy file.

Pydantic gives their schemas, and checks.

What a caller gave may be a secret, so no error quotes it: a flaw is its place, and what the schema
has there.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, ValidationError, WithJsonSchema

from sealpipe.errors import UsageError
from sealpipe.parsing import format_time

M = TypeVar("M", bound="Model")
Schema = Mapping[str, Any]
"""A JSON Schema."""

MAX_TEXT: Final = 2000
"""Longest text of an argument, in characters."""

Text = Annotated[str, Field(min_length=1, max_length=MAX_TEXT)]
Count = Annotated[int, Field(ge=0)]
Code = Annotated[str, Field(min_length=1, max_length=100)]
Time = Annotated[
    datetime,
    PlainSerializer(format_time, return_type=str),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]


class Model(BaseModel):
    """An object of JSON with these members and no others, of exactly these types."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        hide_input_in_errors=True,
        json_schema_extra=lambda schema: schema.pop("description", None),  # a docstring is for us
    )


class Nothing(Model):
    """No arguments."""


class CodeArguments(Model):
    """The arguments of a tool that is about one share or request."""

    code: Code = Field(description="Short code, as the tool that made it returned it.")


class Untrusted(Model):
    """Text from outside in an answer: data, never instructions."""

    untrusted: str


def make_schema(
    model: type[Model], mode: Literal["validation", "serialization"] = "validation"
) -> Schema:
    """Make a model's JSON Schema, in one piece: few clients follow references."""
    schema = model.model_json_schema(mode=mode)
    simple: Schema = _simplify(schema, schema.pop("$defs", {}))
    return simple


def _simplify(schema: Any, definitions: Schema) -> Any:
    """Put definitions in place of references.

    Leave out pydantic's titles, and defaults that stand for nothing.
    """
    # An answer may be without it.
    match schema:
        case {"$ref": str(reference), **others}:
            return _simplify({**definitions[reference.rpartition("/")[2]], **others}, definitions)
        case {
            "anyOf": [{**known}, {"type": "null"}],
            "default": None,
            **others,
        }:
            return _simplify({**known, **others}, definitions)
        case {"anyOf": [{"type": kind, **known}, {"type": "null"}], **others}:
            return _simplify({**known, **others, "type": [kind, "null"]}, definitions)
        case Mapping():
            return {
                name: _simplify(value, definitions)
                for name, value in schema.items()
                if not (name == "title" and isinstance(value, str))
                and (name, value) != ("default", "")
            }
        case list():
            return [_simplify(each, definitions) for each in schema]
    return schema


class Flaw(NamedTuple):
    """The first thing that is wrong with a value.

    Pydantic's kind of error, and the place, of which only ours is named.

    `path` has names of the model's members, and numbers of items. `rest` has what stands there and
    the model does not know: a name that the caller chose. `schema` is that of the place.
    """

    kind: str
    path: tuple[str | int, ...]
    rest: tuple[str | int, ...]
    schema: Schema

    @property
    def place(self) -> str:
        """The path as text, which is empty for the whole value: `prompts item 1.text`."""
        text = "".join(
            f" item {part + 1}" if isinstance(part, int) else f".{part}" for part in self.path
        )
        return text.removeprefix(".")


def find_flaw(model: type[M], value: object) -> M | Flaw:
    """Return the model of a value, or its first flaw.

    A member that is not known, else the first in order.
    """
    try:
        return model.model_validate(value)
    except ValidationError as error:
        flaws = error.errors(include_url=False, include_context=False, include_input=False)
    first = min(flaws, key=lambda each: each["type"] != "extra_forbidden")
    schema: Schema = make_schema(model)
    for depth, part in enumerate(first["loc"]):
        inner = (
            schema.get("items") if isinstance(part, int) else schema.get("properties", {}).get(part)
        )
        if inner is None:
            return Flaw(first["type"], first["loc"][:depth], first["loc"][depth:], schema)
        schema = inner
    return Flaw(first["type"], first["loc"], (), schema)


def check_arguments(model: type[M], arguments: Mapping[str, Any]) -> M:
    """Return the arguments of a call.

    UsageError names the place of the first flaw, and never a value.
    """
    found = find_flaw(model, arguments)
    if not isinstance(found, Flaw):
        return found
    where = found.place or "the arguments"
    if found.kind == "extra_forbidden":  # the name is not shown: it may be anything
        known = ", ".join(found.schema["properties"])
        raise UsageError(f"{where}: there is a member that is not known", remedy=f"known: {known}")
    if found.kind == "missing":
        raise UsageError(f"{where} is missing", remedy=f"add {where}")
    if found.rest:
        (names,) = found.schema["patternProperties"].values()
        is_name = found.rest[-1] == "[key]"
        where = f"a name in {where}" if is_name else f"a member of {where}"
        expected = "a name of the expected form" if is_name else _describe(names)
    else:
        expected = "valid Unicode" if found.kind == "string_unicode" else _describe(found.schema)
    raise UsageError(f"{where} is not {expected}", remedy=f"give {where} as {expected}")


def _describe(schema: Schema) -> str:
    """Return what a place takes, as words."""
    match schema:
        case {"enum": choices}:
            return f"one of {', '.join(choices)}"
        case {"type": "string", "maxLength": most}:
            return f"a text of {schema.get('minLength', 0)} to {most} characters"
        case {"type": "integer", "minimum": least, "maximum": most}:
            return f"a whole number from {least} to {most}"
        case {"type": "array", "maxItems": most}:
            return f"a list of {schema.get('minItems', 0)} to {most} items"
        case {"type": "object", "maxProperties": most}:
            return f"an object of at most {most} members"
    return {"object": "an object", "boolean": "true or false"}.get(
        schema.get("type", ""), "of the expected form"
    )
