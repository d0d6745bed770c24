"""`sealpipe rehearse --open`: shows the tour's link in a browser, and in no process's arguments.

The link has its key in it, and other users of the machine can read the arguments of processes. So
the browser is given the name of a file that only this user can read, whose page leads to the link.
"""

from __future__ import annotations

import html
import os
import subprocess
import sys
import tempfile
import threading
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from sealpipe.cli import render
from sealpipe.errors import UsageError
from sealpipe.plugin.context import drop_own_variables

_PAGE: Final = """<!DOCTYPE html>
<meta charset="utf-8"><meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={link}">
<title>sealpipe rehearse</title>
<p><a href="{link}">Open the link</a></p>
"""
_OPEN: Final = "import sys, webbrowser; sys.exit(not webbrowser.open(sys.argv[1]))"
_START_SECONDS: Final = 10


def check_browser() -> None:
    """Raise UsageError if Python finds no browser to open."""
    try:
        webbrowser.get()
    except webbrowser.Error:
        raise _make_error("finds no browser") from None


@contextmanager
def show_link(link: str) -> Iterator[None]:
    """Open the link in a browser; what the browser reads first is there until the block ends.

    Raises UsageError.
    """
    with tempfile.TemporaryDirectory(prefix="sealpipe-rehearsal-") as folder:
        page = Path(folder, "open.html")
        page.touch(mode=0o600)
        page.write_text(_PAGE.format(link=html.escape(link)), encoding="utf-8")
        _start_browser(page.as_uri())
        yield


def wait_for_person() -> None:
    """Wait until Enter is pressed; without a terminal, until this process is interrupted."""
    if sys.stdin is not None and sys.stdin.isatty():
        render.print_note("The service runs until you press Enter.")
        sys.stdin.readline()
    else:
        render.print_note("The service runs until it is interrupted.")
        threading.Event().wait()


def _start_browser(address: str) -> None:
    # in a process of its own: a browser inherits no setting of ours, and writes to none of our
    # streams
    command = [sys.executable, "-I", "-c", _OPEN, address]
    silent = subprocess.DEVNULL
    environ = drop_own_variables(os.environ)
    process = subprocess.Popen(  # noqa: S603 - Python
        command, env=environ, stdin=silent, stdout=silent, stderr=silent
    )
    # One that stays in the foreground runs: that is enough.
    with suppress(subprocess.TimeoutExpired):
        if process.wait(_START_SECONDS) != 0:
            raise _make_error("could not start the browser")


def _make_error(problem: str) -> UsageError:
    return UsageError(
        f"--open: Python {problem}",
        remedy=(
            "run `sealpipe rehearse --keep`, and open the link that it prints in a browser of "
            "this machine"
        ),
    )
