"""All the ways in which a Python object or an exception gives itself away to logs, reports and debuggers."""

from __future__ import annotations

import copy
import dataclasses
import io
import json
import logging
import pickle
import pprint
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

TESTS = str(Path(__file__).resolve().parents[1])


def shown(thing: object) -> str:
    """What everything that prints, logs, copies or serializes an object would make of it."""
    return "\n".join(_told(way, thing) for way in WAYS)


def _told(way: Callable[[Any], object], thing: object) -> str:
    try:
        return str(way(thing))
    except Exception as error:  # noqa: BLE001 - a refusal must not tell either
        return "".join(traceback.format_exception(error))


WAYS: tuple[Callable[[Any], object], ...] = (
    repr,
    str,
    ascii,
    format,
    lambda thing: f"{thing!r:>40} {thing!s}",
    lambda thing: "%s %r" % (thing, thing),  # noqa: UP031 - logging formats like this
    lambda thing: pprint.pformat(thing),
    lambda thing: pprint.pformat(vars(thing)),
    lambda thing: pprint.pformat(dataclasses.asdict(thing)),
    lambda thing: pprint.pformat(dataclasses.astuple(thing)),
    lambda thing: json.dumps(thing, default=repr),
    lambda thing: json.dumps(thing, default=vars),
    lambda thing: repr(pickle.dumps(thing)),
    lambda thing: repr(pickle.dumps(thing, protocol=0)),
    lambda thing: repr([copy.deepcopy(thing), {thing.__class__: thing}]),
)


def exposed(error: BaseException) -> str:
    """An exception and all behind it: itself, its attributes, its causes, and the locals of every frame of ours."""
    parts = [shown(error), logged(error)]
    for link in chain(error):
        parts += [repr(link.args), pprint.pformat(vars(link)), *getattr(link, "__notes__", ())]
        parts += [f"{where}: {values}" for where, values in local_variables(link.__traceback__)]
    return "\n".join(parts)


def chain(error: BaseException) -> Iterator[BaseException]:
    """The exception, what caused it and what it was raised while handling, shown or not."""
    seen: set[int] = set()
    waiting = [error]
    while waiting:
        link = waiting.pop()
        if id(link) not in seen:
            seen.add(id(link))
            yield link
            waiting += [behind for behind in (link.__cause__, link.__context__) if behind is not None]


def local_variables(found: TracebackType | None) -> Iterator[tuple[str, str]]:
    """The local variables of each frame, as a debugger or an error tracker prints them; the tests' own left out."""
    for frame, line in traceback.walk_tb(found):
        where = f"{frame.f_code.co_filename}:{line} {frame.f_code.co_name}"
        if not frame.f_code.co_filename.startswith(TESTS):
            yield where, "\n".join(f"{name} = {_told(repr, value)}" for name, value in frame.f_locals.items())


def logged(error: BaseException) -> str:
    """What logging.exception() writes."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    record = logging.LogRecord("x", logging.ERROR, "", 0, "it failed: %s %r", (error, error), _info(error))
    handler.emit(record)
    return stream.getvalue()


def _info(error: BaseException) -> tuple[type[BaseException], BaseException, TracebackType | None]:
    return type(error), error, error.__traceback__
