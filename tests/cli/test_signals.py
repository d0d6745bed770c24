"""SIGINT and SIGTERM at any moment of a command: one line, 128 + the signal, no traceback, and no waiting."""

from __future__ import annotations

import signal
import sys

import pytest

from sealpipe_rehearsal.running_service import RunningService
from support.terminal import Done, Terminal

LINE = "sealpipe: interrupted\n"
NUMBERS = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)

AT_IMPORT = """
import os, sys
name, number = sys.argv.pop(1), int(sys.argv.pop(1))

def strike(event, arguments):
    if event == "import" and arguments[0] == name:
        os.kill(os.getpid(), number)

from sealpipe.__main__ import main
sys.addaudithook(strike)
main()
"""
"""Sends itself a signal when it imports a module: each of them is a moment of its own."""

AT_CALL = """
import os, sys
from importlib import import_module
place, number, times = sys.argv.pop(1), int(sys.argv.pop(1)), int(sys.argv.pop(1))
module, _, name = place.partition(":")
module = import_module(module)
found = getattr(module, name)

def struck(*arguments, **named):
    for _ in range(times):
        os.kill(os.getpid(), number)
    return found(*arguments, **named)

setattr(module, name, struck)
from sealpipe.__main__ import main
main()
"""
"""Sends itself signals whenever a function is called."""


def at_import(terminal: Terminal, module: str, number: int, *words: str, **environ: str) -> Done:
    return terminal.run([sys.executable, "-c", AT_IMPORT, module, str(int(number)), *words], environ=environ)


def at_call(terminal: Terminal, place: str, number: int, *words: str, times: int = 1, **environ: str) -> Done:
    code = [sys.executable, "-c", AT_CALL, place, str(int(number)), str(times)]
    return terminal.run([*code, *words], environ=environ)


@NUMBERS
@pytest.mark.parametrize(
    "module",
    [
        "sealpipe.cli",
        "click",
        "click.core",
        "inspect",
        "sealpipe.errors",
        "sealpipe.cli.options",
        "cryptography",
        "httpcore",
    ],
)
def test_one_that_comes_with_an_import_ends_the_command(
    user: Terminal, service: RunningService, module: str, number: int
) -> None:
    done = at_import(user, module, number, "share", "-f", "env:HOME")
    assert done == Done(128 + number, "", LINE)
    assert service.seen() == []


@NUMBERS
@pytest.mark.parametrize(
    "place",
    ["sealpipe.cli:_wants_json", "sealpipe.cli:_open_standard_streams", "sealpipe.cli:_print_audit_heads", "gc:freeze"],
)
def test_one_before_or_after_the_command_itself_ends_it_too(bare: Terminal, place: str, number: int) -> None:
    done = at_call(bare, place, number, "plugins")
    assert (done.code, done.err) == (128 + number, LINE)


@NUMBERS
@pytest.mark.parametrize("place", ["sealpipe.cli.render:print_note", "sealpipe.cli.render:print_error"])
def test_one_while_an_error_is_printed_ends_it(bare: Terminal, place: str, number: int) -> None:
    done = at_call(bare, place, number, "share", "-f", "nosuch:x")
    assert done.code == 128 + number
    assert done.err.endswith(LINE)
    assert "Traceback" not in done.err


@NUMBERS
def test_more_of_them_at_once_are_one(user: Terminal, number: int) -> None:
    """As `timeout` does it, which signals its child and then its group; and while the line is printed."""
    done = at_call(user, "sealpipe.cli.render:print_note", number, "share", "-f", "file:nothing", times=3)
    assert done.code == 128 + number
    assert done.err.count("interrupted") == 1
    assert "Traceback" not in done.err


HANGS = """
class It(Source):
    def fetch(self, locator):
        import sys, threading
        sys.stderr.write("it hangs\\n")
        sys.stderr.flush()
        threading.Event().wait({seconds})
        return Document(b"x")
    def close(self):
        threading.Event().wait({seconds})
"""
