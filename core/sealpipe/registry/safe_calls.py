"""Calls plugins so that only errors of the contract come out, whatever a plugin does.

Of any other error only type, file and line are shown, because its text may contain secrets.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

from sealpipe.cancellation import current
from sealpipe.errors import PayloadTooLargeError, PluginError, find_similar
from sealpipe.plugin import Info

T = TypeVar("T")
# As text, like the names that they are compared with.
_CORE_FOLDER: Final = os.path.dirname(os.path.dirname(__file__)) + os.sep  # noqa: PTH120
_IMPORTLIB: Final = os.path.dirname(importlib.__file__) + os.sep  # noqa: PTH120
_SYNTAX_ERRORS: Final = (SyntaxError, IndentationError, TabError)
_LOADERS: Final = (f"{os.sep}pluggy{os.sep}", f"{os.sep}importlib_metadata{os.sep}")
"""Packages that call a plugin for us; the second one does where a program has imported it."""


watch: Callable[[str, Callable[[], Any]], Any] | None = None
"""Makes each call of a plugin, which it gets with its name, and returns its result (`--debug`)."""


def import_object(spec: str) -> Any:
    """Import the object that an import string names; None if its module has none."""
    module, _, name = spec.partition(":")
    return getattr(importlib.import_module(module), name, None)


def call_plugin(
    what: str,
    call: Callable[[], T],
    make_error: Callable[[str], PluginError] | None = None,
    *,
    is_changing: bool = False,
) -> T:
    """Call a plugin, as a step that its caller may cancel.

    `is_changing`: it changes something elsewhere.

    Only errors of the contract come out, without their causes, and CancelledCallError before the
    call.
    """
    with current().step(is_changing=is_changing):
        return isolate_plugin(what, call, make_error)


def isolate_plugin(
    what: str, call: Callable[[], T], make_error: Callable[[str], PluginError] | None = None
) -> T:
    """Call a plugin, even for a caller that has cancelled.

    Only errors of the contract come out, without causes.
    """
    error_to_raise: PluginError | PayloadTooLargeError
    try:
        return call() if watch is None else watch(what, call)
    except (PluginError, PayloadTooLargeError) as error:
        error_to_raise = error
    except (Exception, SystemExit) as error:  # noqa: BLE001  # its text is not shown
        kind = type(error).__name__ + _locate_error(error)
        error_to_raise = (
            make_error(kind) if make_error else PluginError(f"{what} raised an unexpected {kind}")
        )
    # Outside the handler there is no context; the error's own causes and frames are removed.
    error_to_raise.__cause__ = error_to_raise.__context__ = None
    raise error_to_raise.with_traceback(None)


def _locate_error(error: BaseException) -> str:
    """Return where in the plugin's own folder an error was raised, as ` at shelf.py:41`.

    Empty if unknown.
    """
    if type(error) in _SYNTAX_ERRORS:  # of other classes, the name may be a document's address
        return _format_place(error.filename, error.lineno)  # type: ignore[attr-defined]
    trace = error.__traceback__
    folder = location = ""
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if not folder and not _passes_on(name):
            folder = os.path.dirname(name)  # noqa: PTH120 - no name of a file need be a path
        if folder and os.path.dirname(name) == folder:  # noqa: PTH120 - as above
            location = _format_place(name, trace.tb_lineno)
        trace = trace.tb_next
    return location


def _format_place(file: object, line: object) -> str:
    """Return a line of a file that exists; empty for others: code may name its file as it likes."""
    if isinstance(file, str) and isinstance(line, int) and os.path.isfile(file):  # noqa: PTH113
        return f" at {os.path.basename(file)}:{line}"  # noqa: PTH119 - as above
    return ""


def _passes_on(file: str) -> bool:
    """Return whether a file's functions only lead from us to the plugin."""
    return file.startswith((_CORE_FOLDER, _IMPORTLIB, "<frozen ")) or any(
        folder in file for folder in _LOADERS
    )


def format_install_command(info: Info) -> str:
    """Return the command that installs the packages of a plugin; empty if it needs none."""
    from sealpipe.installation import format_command  # for an error only

    return format_command([f"sealpipe[{info.extra}]"] if info.extra else info.needs)


def suggest(word: str, known: Iterable[str], plural: str) -> str:
    """Suggest the nearest known names, or all of them."""
    names = sorted(known)
    matches = find_similar(word.lower(), names, 2)
    matches = [
        name for name in matches if sorted(name) == sorted(word.lower())
    ] or matches  # transposed letters
    return (
        f"did you mean {' or '.join(matches)}?"
        if matches
        else f"known {plural}: {', '.join(names)}"
    )


CLOSING_TIME: Final = 0.5
"""Seconds that plugins have to close after an interruption."""


def close_in_time(close: Callable[[], None]) -> None:
    """Close what plugins hold; after an interruption, wait at most `CLOSING_TIME`."""
    error = sys.exception()
    if error is None or isinstance(error, Exception | GeneratorExit):
        close()
        return
    thread = threading.Thread(target=close, name="sealpipe-close", daemon=True)
    thread.start()
    thread.join(CLOSING_TIME)
