"""The exceptions: the generated part of docs/reference/errors.md."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from sealpipe import errors
from unit.docs.generator.api import link_errors
from unit.docs.generator.markdown import code, escape, paragraphs, wrap

Kind = type[errors.SealpipeError]
ROOT = errors.SealpipeError

NO_EXIT_CODE = (errors.ServiceError, errors.CollectError)
"""Exceptions that are always raised as one of those derived from them."""


class Carried(NamedTuple):
    """An attribute of an exception, with the value that it has if nobody gives another."""

    name: str
    value: Any


@cache
def kinds() -> tuple[Kind, ...]:
    """Return every exception, a class before those derived from it."""
    return tuple(_walk(ROOT))


def _walk(kind: Kind) -> Iterator[Kind]:
    yield kind
    for name, each in vars(errors).items():
        if isinstance(each, type) and kind in each.__bases__ and name == each.__name__:
            yield from _walk(each)


def carried(kind: Kind) -> list[Carried]:
    """Return the attributes that a class adds to those of its base."""
    base = kind.__bases__[0]
    inherited = _attributes(base) if base is not Exception else {}
    return [
        Carried(name, value) for name, value in _attributes(kind).items() if name not in inherited
    ]


def _attributes(kind: Kind) -> dict[str, Any]:
    required = [
        each for each in inspect.signature(kind).parameters.values() if each.default is each.empty
    ]
    made = kind(*("" for each in required if each.kind is not each.VAR_KEYWORD))
    on_class = {
        name: getattr(kind, name)
        for each in kind.__mro__
        for name in getattr(each, "__annotations__", {})
    }
    return {
        name: value
        for name, value in {**on_class, **vars(made)}.items()
        if not name.startswith("_")
    }


def tree() -> str:
    """Return the exceptions as a list, each below its base, with their exit codes."""
    lines = []
    for kind in kinds():
        depth = len(kind.__mro__) - len(ROOT.__mro__)
        number = "" if kind in NO_EXIT_CODE else f": exit code {kind.exit_code}"
        lines.append(f"{'  ' * depth}- {link_errors(kind.__name__, '')}{number}\n")
    return "".join(lines)


def reference() -> str:
    """Return what each exception means, what it carries, and what to do."""
    return "\n".join(map(_section, kinds()))


def _section(kind: Kind) -> str:
    base = kind.__bases__[0].__name__
    number = "" if kind in NO_EXIT_CODE else f", exit code {kind.exit_code}"
    about = "The root." if kind is ROOT else f"{link_errors(base, '')}{number}."
    doc = paragraphs(inspect.getdoc(kind) or "", lambda text: link_errors(escape(text), ""))
    parts = [f"### {kind.__name__}\n", f"{wrap(about)}\n", doc]
    names = [code(f".{each.name}") for each in carried(kind) if each.name != "default_remedy"]
    if names:
        parts.append(f"It carries {', '.join(names)}.\n")
    if kind.default_remedy and "default_remedy" in vars(kind):
        parts.append(f"{wrap(f'What to do: {escape(kind.default_remedy)}.')}\n")
    return "\n".join(parts)


def of_code(number: int) -> str:
    """Return the exceptions of an exit code, as links from docs/reference."""
    names = [
        kind.__name__ for kind in kinds() if kind.exit_code == number and kind not in NO_EXIT_CODE
    ]
    return ", ".join(link_errors(name, "errors.md") for name in names)
