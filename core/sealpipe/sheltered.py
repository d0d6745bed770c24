"""Exceptions that leave by a public door without the frames behind them: whose locals may hold secrets.

Error trackers and debuggers show every frame's local variables. An error of ours says in its message what to do,
so nothing is lost; any other exception is a bug, and takes a note of where it was raised along.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from sealpipe.errors import SealpipeError

P = ParamSpec("P")
T = TypeVar("T")


def bare(error: Exception) -> Exception:
    """The exception without its frames, cause and context."""
    if not isinstance(error, SealpipeError):
        import traceback  # for a bug only

        places = [
            f"{frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(error.__traceback__)
        ]
        error.add_note("raised at " + " < ".join(reversed(places)))
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)


def sheltered(function: Callable[P, T]) -> Callable[P, T]:
    """A function whose exceptions come out bare."""

    @wraps(function)
    def door(*args: P.args, **options: P.kwargs) -> T:
        try:
            return function(*args, **options)
        except Exception as error:  # noqa: BLE001 - all of them: a bug's frames hold as much
            fault = error
        del args, options
        raise bare(fault)

    return door
