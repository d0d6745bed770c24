"""What a command imports before it does its work, and that tests which run it more cheaply see the
same.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from sealpipe.cli import main
from support.commands import SEALPIPE, must_be_whole, run
from support.terminal import PATIENCE, Done, Terminal


@pytest.mark.parametrize(("name", "importer"), [("trio", "httpcore"), ("rich", "httpx")])
def test_a_command_does_not_import_what_it_has_no_use_for(
    bare: Terminal, name: str, importer: str
) -> None:
    bare.file(f"beside/{name}/__init__.py", f"raise SystemExit('{name} was imported')")
    done = bare.sealpipe("rehearse", PYTHONPATH=str(bare.here / "beside"))
    assert done.code == 0, done
    used = bare.run(
        [sys.executable, "-c", f"import {importer}"],
        environ={"PYTHONPATH": str(bare.here / "beside")},
    )
    assert f"{name} was imported" in used.err  # or this would show nothing


def each_way(
    user: Terminal, *words: str, stdin: bytes = b"", here: bool = True, **environ: str
) -> Done:
    """What came of a command, the same whether it was started, forked, or run `here`, in this
    process.
    """
    assert not must_be_whole(user.with_environ(environ))
    started = user.run([*SEALPIPE, *words], stdin=stdin, environ=environ)
    assert user.sealpipe(*words, stdin=stdin, apart=True, **environ) == started
    if here:
        assert user.sealpipe(*words, stdin=stdin, **environ) == started
    return started


def test_a_command_gets_the_same_input_however_it_is_run(bare: Terminal) -> None:
    told = each_way(
        bare,
        "doctor",
        SEALPIPE_API_KEY="nonsense",
        SEALPIPE_DEADLINE="7s",
        SEALPIPE_TAG="\udcff\n é",
    )
    assert told.code == 2
    assert "7 s" in told.out
    typed = {"SEALPIPE_API_KEY_FILE": "/dev/stdin"}
    assert each_way(bare, "custody", "public-key", stdin=b"also nonsense", **typed).code == 2
    assert each_way(bare, "\udcff", "--tést\n").code == 2
    assert each_way(bare, "--version").out.startswith("sealpipe 0.")


def test_what_a_command_starts_finds_the_same_however_it_is_run(bare: Terminal) -> None:
    script = "umask; pwd; cat; env | grep -v SEALPIPE_ | sort; ls -l /proc/self/fd | wc -l"
    changes = {"TZ": "Asia/Tokyo", "HTTP_PROXY": "http://localhost:1"}
    told = each_way(bare, "rehearse", "sh", "-c", script, stdin=b"typed", **changes)
    assert told.code == 0
    assert {"typedHOME=" + str(bare.home), "TZ=Asia/Tokyo"} < set(told.out.splitlines())
    # subprocess closes the pipe that tells it of a failed exec only after the command has begun.
    begun = "while ls -l /proc/$PPID/fd | grep -q '[3-9] -> pipe:'; do sleep 0.01; done"
    assert (
        each_way(
            bare, "rehearse", "sh", "-c", f"{begun}; ls -l /proc/$PPID/fd | wc -l", here=False
        ).code
        == 0
    )
    assert each_way(bare, "rehearse", "sh", "-c", "exit 17").code == 17


def test_a_command_leaves_nothing_of_its_own_in_this_process(bare: Terminal) -> None:
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    before = (
        Path.cwd(),
        dict(os.environ),
        sys.stdout,
        [os.fstat(number) for number in range(3)],
        handlers,
    )
    descriptors = len(list(Path("/proc/self/fd").iterdir()))
    assert bare.sealpipe("plugins", stdin=b"x" * 1_000_000, TZ="Asia/Tokyo").code == 0
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    assert before == (
        Path.cwd(),
        dict(os.environ),
        sys.stdout,
        [os.fstat(number) for number in range(3)],
        handlers,
    )
    assert len(list(Path("/proc/self/fd").iterdir())) == descriptors


def test_a_forked_command_ends_by_the_signal_that_ends_it(bare: Terminal) -> None:
    assert (
        each_way(bare, "rehearse", "sh", "-c", "kill -KILL $PPID", here=False).code
        == -signal.SIGKILL
    )


def test_a_forked_command_is_killed_with_its_parent(bare: Terminal) -> None:
    begun = bare.here / "begun"
    words = ["rehearse", "sh", "-c", 'echo "$PPID" > begun.new; mv begun.new begun; exec sleep 9']
    with pytest.raises(subprocess.TimeoutExpired):
        run(words, stdin=b"", environ=bare.environ, cwd=bare.here, timeout=5, apart=True)
    until(lambda: not Path(f"/proc/{begun.read_text().strip()}").exists())


def until(done: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_finalizers_of_this_process_outlive_a_command(
    bare: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The first finalizer of a process asks to be called at its end, which is also the end of all
    # others.
    monkeypatch.setattr(weakref.finalize, "_registered_with_atexit", False)
    things = [type("Thing", (), {})() for _ in range(2)]
    finalized: list[int] = []
    command = main.run

    def finalizing(words: Sequence[str]) -> int:
        weakref.finalize(things[0], finalized.append, 0)
        return command(words)

    monkeypatch.setattr(main, "run", finalizing)
    assert bare.sealpipe("plugins").code == 0
    assert finalized == []
    weakref.finalize(things[1], finalized.append, 1)
    things.clear()
    assert sorted(finalized) == [0, 1]
