"""SIGINT and SIGTERM at any moment of a command: one line, 128 + the signal, no traceback, and no
waiting.
"""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path

import pytest

from sealpipe_rehearsal.running_service import RunningService
from support.distributions import Site
from support.terminal import PATIENCE, Done, Terminal

LINE = "sealpipe: interrupted\n"
AT_ONCE = 5
"""Seconds, on a machine with much to do: what hangs does so for a minute."""
NUMBERS = pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name
)

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
    return terminal.run(
        [sys.executable, "-c", AT_IMPORT, module, str(int(number)), *words], environ=environ
    )


def at_call(
    terminal: Terminal, place: str, number: int, *words: str, times: int = 1, **environ: str
) -> Done:
    code = [sys.executable, "-c", AT_CALL, place, str(int(number)), str(times)]
    return terminal.run([*code, *words], environ=environ)


@NUMBERS
@pytest.mark.parametrize(
    "module",
    [
        "sealpipe.cli.main",
        "click",
        "click.core",
        "inspect",
        "sealpipe.errors",
        "sealpipe.cli.command",
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
    [
        "sealpipe.cli.main:_wants_json",
        "sealpipe.cli.main:_open_standard_streams",
        "sealpipe.cli.main:_print_audit_heads",
        "gc:freeze",
    ],
)
def test_one_before_or_after_the_command_itself_ends_it_too(
    bare: Terminal, place: str, number: int
) -> None:
    done = at_call(bare, place, number, "plugins")
    assert (done.code, done.err) == (128 + number, LINE)


@NUMBERS
@pytest.mark.parametrize(
    "place", ["sealpipe.cli.render:print_note", "sealpipe.cli.render:print_error"]
)
def test_one_while_an_error_is_printed_ends_it(bare: Terminal, place: str, number: int) -> None:
    done = at_call(bare, place, number, "share", "-f", "nosuch:x")
    assert done.code == 128 + number
    assert done.err.endswith(LINE)
    assert "Traceback" not in done.err


@NUMBERS
def test_more_of_them_at_once_are_one(user: Terminal, number: int) -> None:
    """As `timeout` does it, which signals its child and then its group; and while the line is
    printed.
    """
    done = at_call(
        user, "sealpipe.cli.render:print_note", number, "share", "-f", "file:nothing", times=3
    )
    assert done.code == 128 + number
    assert done.err.count("interrupted") == 1
    assert "Traceback" not in done.err


HOOKS = """
from sealpipe.plugin import SinkInfo, SourceInfo, hookimpl

@hookimpl
def sealpipe_sources(register):
    for name in ("slow", "slower"):
        register(SourceInfo(name, "a test", "MODULE_it:HangingSource"))

@hookimpl
def sealpipe_sinks(register):
    register(SinkInfo("pit", "a test", "MODULE_it:HangingSink"))
"""

HANGING = """
import os, sys, time
from pathlib import Path
from sealpipe.plugin import *

def hang():
    Path(os.environ["HUNG"], str(time.monotonic_ns())).touch()
    try:
        time.sleep(60)
    except BaseException:  # as code does that means well
        time.sleep(60) if os.environ.get("STUBBORN") else None
        raise

class HangingSource(Source):
    def __init__(self, settings, context):
        super().__init__(settings, context)
        if os.environ.get("AT") == "login":
            hang()
    def fetch(self, locator):
        hang()
    def close(self):
        if "AT" in os.environ:
            hang()

class HangingSink(Sink):
    def describe(self, locator, mode): return "a pit"
    def put(self, locator, fields, *, mode, marker):
        if os.environ.get("AT") == "put":
            hang()
        Path(os.environ["HUNG"], "stored").touch()
        return WriteResult(locator)
    def close(self):
        if "AT" in os.environ:
            hang()
"""


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """A folder of installed distributions."""
    return Site(tmp_path / "site")


@pytest.fixture
def hanging(user: Terminal, site: Site) -> Terminal:
    """A user with plugins that hang for a minute wherever they are asked something."""
    site.install("hanging", HOOKS, HANGING)
    (user.here / "hung").mkdir()
    user.environ |= {"PYTHONPATH": site.path, "HUNG": str(user.here / "hung")}
    return user


def wait_until_hung(terminal: Terminal, calls: int = 1) -> None:
    end = time.monotonic() + PATIENCE
    while len(list((terminal.here / "hung").iterdir())) < calls:
        assert time.monotonic() < end
        time.sleep(0.02)


def interrupted(
    terminal: Terminal, number: int, threads: int, *words: str, **environ: str
) -> tuple[Done, float]:
    """What came of a command that got a signal once so many calls hang, and the seconds until it
    ended.
    """
    process = terminal.start(*words, environ=environ)
    wait_until_hung(terminal, threads)
    time.sleep(0.1)
    began = time.monotonic()
    process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE)
    return Done(process.returncode, out, err), time.monotonic() - began


@NUMBERS
@pytest.mark.parametrize(
    ("at", "references", "threads"),
    [
        ("fetch", ["slow:a", "slower:b"], 2),
        ("fetch", ["slow:a"], 1),
        ("login", ["slow:a", "slower:b"], 1),
    ],
    ids=["in threads", "in the main thread", "while it is made, under the lock"],
)
def test_a_store_that_hangs_does_not_hold_an_interrupted_command(
    hanging: Terminal,
    service: RunningService,
    number: int,
    at: str,
    references: list[str],
    threads: int,
) -> None:
    fields = [word for reference in references for word in ("-f", reference)]
    done, seconds = interrupted(hanging, number, threads, "share", *fields, AT=at)
    assert done == Done(128 + number, "", LINE)
    assert seconds < AT_ONCE
    assert service.seen() == []


@NUMBERS
def test_a_sink_that_hangs_leaves_what_resume_finishes(
    hanging: Terminal, service: RunningService, number: int
) -> None:
    done, seconds = interrupted(
        hanging, number, 1, "share", "-f", "env:HOME", "--also-to", "pit:x", AT="put"
    )
    (entry,) = {file.stem for file in hanging.outbox()}
    assert (done.code, done.out) == (128 + number, "")
    assert done.err.startswith(LINE)
    assert f"sealpipe resume {entry}" in done.err
    assert seconds < AT_ONCE
    resumed = hanging.sealpipe("resume", entry, "--resend")
    assert (resumed.code, resumed.out[:7]) == (0, "http://"), resumed
    assert len(service.seen()) == 1
    assert hanging.outbox() == []


def test_a_second_signal_does_not_wait_for_a_plugin(hanging: Terminal) -> None:
    process = hanging.start("share", "-f", "slow:a", environ={"STUBBORN": "1"})
    wait_until_hung(hanging)
    process.send_signal(signal.SIGINT)
    time.sleep(1.5)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=10)
    assert (process.returncode, out, err) == (130, "", LINE)


IN_LOOP = """
import asyncio, os, sys, threading
from sealpipe import signals
from sealpipe.event_loop import run_in_loop
moment, number = sys.argv[1], int(sys.argv[2])

def strike():
    os.kill(os.getpid(), number)

async def task():
    strike()

async def serve():
    if moment == "callback":
        asyncio.get_running_loop().call_soon(strike)
    elif moment == "wait":
        threading.Timer(0.2, strike).start()
    async with asyncio.TaskGroup() as group:
        group.create_task(task() if moment == "task" else asyncio.sleep(0))
        group.create_task(asyncio.Event().wait())

signals.raise_on_signals()
try:
    run_in_loop(serve())
except signals.Interrupted as end:
    sys.exit(128 + end.number)
"""
"""Serves for ever, and sends itself a signal at a moment of its loop."""


@NUMBERS
@pytest.mark.parametrize("moment", ["callback", "task", "wait"])
def test_one_at_any_moment_of_a_loop_ends_it(bare: Terminal, moment: str, number: int) -> None:
    done = bare.run([sys.executable, "-c", IN_LOOP, moment, str(int(number))])
    assert done == Done(128 + number, "", "")
