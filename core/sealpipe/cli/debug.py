"""`--debug`: each step with its time on stderr, and where a plugin raised an unexpected error.

Names, places, sizes and times only: no value, body, header or query, no local variable, no text of
an exception. Lines are redacted and escaped as all others (`render.print_note`).
"""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from sealpipe import budget
from sealpipe.api.operation import Failure, Operation, Response
from sealpipe.cli import render
from sealpipe.errors import SealpipeError
from sealpipe.network import service_network
from sealpipe.registry import safe_calls
from sealpipe.version import __version__

T = TypeVar("T")

_started: float | None = None
"""When it was turned on, in monotonic time; None while it is off."""


def turn_on() -> None:
    """Print each step of this run from now on."""
    global _started
    if _started is None:
        _started = time.monotonic()
        budget.watch, safe_calls.watch, service_network.watch = (
            _watch_step,
            _watch_plugin,
            _print_exchange,
        )
        version = ".".join(map(str, sys.version_info[:3]))
        _print(f"sealpipe {__version__}, Python {version}, {sys.platform}")


def is_on() -> bool:
    """Return whether steps are printed."""
    return _started is not None


def turn_off() -> None:
    """Print nothing more."""
    global _started
    _started = budget.watch = safe_calls.watch = service_network.watch = None


def _print_origin(error: BaseException) -> None:
    """Print where an error was raised, without its text and without values."""
    _print(f"{type(error).__name__} was raised here:")
    for frame in traceback.extract_tb(error.__traceback__):
        _print(f"  {frame.filename}:{frame.lineno} {frame.name}")


def _print(text: str) -> None:
    elapsed = 0.0 if _started is None else time.monotonic() - _started
    render.print_note(f"debug {elapsed:9.3f} s  {render.escape(text)}")


def _watch_step(step: Operation[Any] | float) -> budget.Finish | None:
    """Return what to call with the response to an operation, or the error; nothing for a wait."""
    if not isinstance(step, Operation):
        _print(f"waiting for {step:.3f} s")
        return None
    names = "&".join(step.query)
    target = f"{step.method} {step.path}" + (f"?{names}" if names else "")
    return partial(_print_response, target, len(step.body or b""), time.monotonic())


def _print_response(
    target: str, sent: int, began: float, result: Any, error: BaseException | None
) -> None:
    took = f"in {_format_seconds(time.monotonic() - began)}, {sent} bytes sent"
    if isinstance(result, Response):
        _print(f"{target}: {result.status} {took}, {len(result.body)} received")
    elif isinstance(result, Failure):
        _print(
            f"{target}: no response {took}, "
            f"{'it may have arrived' if result.sent else 'nothing arrived'}"
        )
    else:
        _print(f"{target}: {type(error).__name__} {took}")


def _print_work(name: str, began: float, _: object, error: BaseException | None) -> None:
    outcome = "" if error is None else f": {type(error).__name__}"
    _print(f"{name} took {_format_seconds(time.monotonic() - began)}{outcome}")


def _watch_plugin(what: str, call: Callable[[], T]) -> T:
    """Call a plugin, and print how long it took; the frames of an error that is not one of ours."""
    began = time.monotonic()
    try:
        result = call()
    except BaseException as error:
        _print_work(f"a call of {what}", began, None, error)
        if not isinstance(error, SealpipeError):
            _print_origin(error)
        raise
    _print_work(f"a call of {what}", began, None, None)
    return result


def _print_exchange(method: str, host: str, status: int, seconds: float, sent: int) -> None:
    """Print a plugin's request. Its path may be a secret, as a webhook's is."""
    _print(f"{method} at {host}: {status} in {_format_seconds(seconds)}, {sent} bytes sent")


def _format_seconds(seconds: float) -> str:
    return f"{1000 * seconds:.0f} ms"
