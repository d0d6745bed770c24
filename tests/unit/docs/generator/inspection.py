"""What modules and classes say of themselves: signatures, docstrings, and the texts below their
attributes.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Iterator
from functools import cache, cached_property
from types import ModuleType
from typing import Any, NamedTuple

_FOREIGN = ("builtins", "typing", "abc", "collections", "enum", "pydantic", "pydantic_settings")
_WIDTH = 100


class Attribute(NamedTuple):
    """A field, a property or a constant: its type and its value as the source has them, and what it
    is.
    """

    name: str
    type: str
    value: str
    doc: str
    is_property: bool = False


class Described(NamedTuple):
    """A class, a function or a method by its full name, with its signature and its docstring."""

    name: str
    signature: str
    doc: str
    attributes: tuple[Attribute, ...] = ()
    methods: tuple[Described, ...] = ()


def describe(name: str, found: Any, *, is_made: bool = True) -> Described:
    """Describe a class or a function.

    With `is_made` False, nobody but its library makes instances of the class.
    """
    if not inspect.isclass(found):
        return Described(name, format_signature(name, found), inspect.getdoc(found) or "")
    is_record = hasattr(found, "__dataclass_fields__") or hasattr(found, "_fields")
    fields = tuple(each for each in _fields(found) if each.doc or (is_record and each.type))
    attributes = tuple({each.name: each for each in (*fields, *_properties(found))}.values())
    constructor = _constructor(name, found) if is_made else ""
    methods = tuple(
        Described(
            f"{name}.{each}",
            format_signature(f"{name}.{each}", method),
            inspect.getdoc(method) or "",
        )
        for each, method in _methods(found)
    )
    return Described(name, constructor, _own_doc(found), attributes, methods)


def constants(module: ModuleType) -> Iterator[Attribute]:
    """Yield the public constants of a module, those with a text below them and those without."""
    yield from _assignments(_tree(module.__name__).body, _source(module))


def format_signature(name: str, function: Callable[..., Any]) -> str:
    """Return a signature without `self`, on one line if it fits."""
    signature = inspect.signature(function)
    parameters = [
        each for each in signature.parameters.values() if each.name not in ("self", "cls")
    ]
    shown = [*_format_parameters(parameters)]
    result = (
        ""
        if signature.return_annotation in (inspect.Signature.empty, "None")
        else signature.return_annotation
    )
    tail = f") -> {_type(result)}" if result else ")"
    line = f"{name}({', '.join(shown)}{tail}"
    return (
        line
        if len(line) <= _WIDTH
        else f"{name}(\n" + "".join(f"    {each},\n" for each in shown) + tail
    )


def _format_parameters(parameters: list[inspect.Parameter]) -> Iterator[str]:
    last = None
    for each in parameters:
        if each.kind is each.KEYWORD_ONLY and last not in (each.KEYWORD_ONLY, each.VAR_POSITIONAL):
            yield "*"
        last = each.kind
        stars = {each.VAR_POSITIONAL: "*", each.VAR_KEYWORD: "**"}.get(each.kind, "")
        annotation = "" if each.annotation is each.empty else f": {_type(each.annotation)}"
        equals = " = " if annotation else "="
        default = "" if each.default is each.empty else equals + _value(each.default)
        yield f"{stars}{each.name}{annotation}{default}"


def _type(annotation: Any) -> str:
    text = getattr(annotation, "__forward_arg__", annotation)
    return text.replace("'", '"') if isinstance(text, str) else getattr(text, "__name__", str(text))


def _value(value: Any) -> str:
    text = repr(value).removeprefix("datetime.")
    return "..." if text.startswith("<") else text.replace("'", '"')


def _constructor(name: str, found: type[Any]) -> str:
    """The signature of `__init__`, if a person wrote it: that of a record says what its fields
    say.
    """
    owner = next(each for each in found.__mro__ if "__init__" in vars(each))
    is_written = (
        owner.__module__.partition(".")[0] not in _FOREIGN
        and vars(owner)["__init__"].__code__.co_filename
    )
    return (
        format_signature(name, vars(owner)["__init__"])
        if is_written and is_written != "<string>"
        else ""
    )


def _own_doc(found: type[Any]) -> str:
    """The docstring, unless a dataclass or a named tuple made it of the fields."""
    doc = inspect.cleandoc(found.__doc__ or "")
    return "" if doc.startswith(f"{found.__name__}(") else doc


def _bases(found: type[Any]) -> list[type[Any]]:
    return [
        each
        for each in reversed(found.__mro__)
        if each.__module__.partition(".")[0] not in _FOREIGN
    ]


def _methods(found: type[Any]) -> Iterator[tuple[str, Any]]:
    named = {
        name: None
        for base in reversed(_bases(found))
        for name in vars(base)
        if not name.startswith("_")
    }
    for name in named:
        value = inspect.getattr_static(found, name)
        if isinstance(value, property | cached_property) or name in getattr(
            found, "__dataclass_fields__", ()
        ):
            continue
        method = getattr(found, name)
        if inspect.isroutine(method) and not inspect.ismemberdescriptor(value):
            yield name, method


def _properties(found: type[Any]) -> Iterator[Attribute]:
    for base in _bases(found):
        for name, value in vars(base).items():
            get = value.fget if isinstance(value, property) else getattr(value, "func", None)
            if (
                get is not None
                and not name.startswith("_")
                and isinstance(value, property | cached_property)
            ):
                annotation = inspect.signature(get).return_annotation
                yield Attribute(
                    name, _type(annotation), "", inspect.getdoc(value) or "", is_property=True
                )


def _fields(found: type[Any]) -> Iterator[Attribute]:
    for base in _bases(found):
        text = _source(sys.modules[base.__module__])
        body: list[ast.stmt] = _tree(base.__module__).body
        for part in base.__qualname__.split("."):
            body = next(
                (
                    each.body
                    for each in body
                    if isinstance(each, ast.ClassDef) and each.name == part
                ),
                [],
            )
        bounds = {
            each.__name__: _type(each.__bound__) for each in getattr(base, "__parameters__", ())
        }
        for each in _assignments(body, text):
            yield each._replace(type=bounds.get(each.type, each.type))


@cache
def _source(module: ModuleType) -> str:
    return inspect.getsource(module)


@cache
def _tree(module: str) -> ast.Module:
    return ast.parse(_source(sys.modules[module]))


def _assignments(body: list[ast.stmt], text: str) -> Iterator[Attribute]:
    for statement, after in zip(body, [*body[1:], None], strict=True):
        is_simple = isinstance(statement, ast.Assign) and len(statement.targets) == 1
        if not (isinstance(statement, ast.AnnAssign) or is_simple):
            continue
        target = statement.target if isinstance(statement, ast.AnnAssign) else statement.targets[0]
        if (
            not isinstance(target, ast.Name)
            or target.id.startswith("_")
            or target.id in _NO_CONSTANTS
        ):
            continue
        annotation = statement.annotation if isinstance(statement, ast.AnnAssign) else None
        value, doc = _default(statement.value), getattr(after, "value", None)
        is_doc = (
            isinstance(after, ast.Expr)
            and isinstance(doc, ast.Constant)
            and isinstance(doc.value, str)
        )
        yield Attribute(
            target.id,
            _segment(text, annotation),
            _segment(text, value),
            inspect.cleandoc(doc.value) if is_doc and isinstance(doc, ast.Constant) else "",
        )


def _default(value: ast.expr | None) -> ast.expr | None:
    """The default in a dataclass's `field(default=...)`, or the value itself."""
    if (
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Name)
        and value.func.id == "field"
    ):
        return next((each.value for each in value.keywords if each.arg == "default"), None)
    return value


_NO_CONSTANTS = {"T", "P", "TYPE_CHECKING"}


@cache
def _lines(text: str) -> list[bytes]:
    return text.encode().splitlines(keepends=True)


def _segment(text: str, node: ast.expr | None) -> str:
    """The source of an expression in one line; `ast.get_source_segment` divides the whole text each
    time.
    """
    if node is None or node.end_lineno is None:
        return ""
    lines = _lines(text)[node.lineno - 1 : node.end_lineno]
    lines[-1] = lines[-1][: node.end_col_offset]
    lines[0] = lines[0][node.col_offset :]
    return " ".join(b"".join(lines).decode().split())
