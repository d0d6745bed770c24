"""What a command imports before it does its work, and that tests which fork it instead see the same."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from support.terminal import PATIENCE, SEALPIPE, Done, Terminal, must_be_whole, run


@pytest.mark.parametrize(("name", "importer"), [("trio", "httpcore"), ("rich", "httpx")])
def test_a_command_does_not_import_what_it_has_no_use_for(bare: Terminal, name: str, importer: str) -> None:
    bare.file(f"beside/{name}/__init__.py", f"raise SystemExit('{name} was imported')")
    done = bare.sealpipe("rehearse", PYTHONPATH=str(bare.here / "beside"))
    assert done.code == 0, done
    used = bare.run([sys.executable, "-c", f"import {importer}"], environ={"PYTHONPATH": str(bare.here / "beside")})
    assert f"{name} was imported" in used.err  # or this would show nothing


def both(user: Terminal, *words: str, stdin: bytes = b"", **environ: str) -> Done:
    """What came of a command, the same whether it was started or forked."""
    assert not must_be_whole(user.with_environ(environ))
    started = user.run([*SEALPIPE, *words], stdin=stdin, environ=environ)
    assert user.sealpipe(*words, stdin=stdin, **environ) == started
    return started


def test_a_forked_command_gets_the_same_input_as_a_started_one(bare: Terminal) -> None:
    told = both(bare, "doctor", SEALPIPE_API_KEY="nonsense", SEALPIPE_DEADLINE="7s", SEALPIPE_TAG="\udcff\n é")
    assert told.code == 2
    assert "7 s" in told.out
    assert both(bare, "custody", "public-key", SEALPIPE_API_KEY_FILE="/dev/stdin", stdin=b"also nonsense").code == 2
    assert both(bare, "\udcff", "--tést\n").code == 2
    assert both(bare, "--version").out.startswith("sealpipe 0.")


def test_what_a_forked_command_starts_finds_the_same_folder_umask_streams_and_environment(bare: Terminal) -> None:
    script = "umask; pwd; cat; env | grep -v SEALPIPE_ | sort; ls -l /proc/$PPID/fd | wc -l"
    told = both(bare, "rehearse", "sh", "-c", script, stdin=b"typed", TZ="Asia/Tokyo", HTTP_PROXY="http://localhost:1")
    assert told.code == 0
    assert {"typedHOME=" + str(bare.home), "TZ=Asia/Tokyo"} < set(told.out.splitlines())


def test_a_forked_command_ends_by_the_signal_that_ends_it(bare: Terminal) -> None:
    assert both(bare, "rehearse", "sh", "-c", "kill -KILL $PPID").code == -signal.SIGKILL
    assert both(bare, "rehearse", "sh", "-c", "exit 17").code == 17


def test_a_forked_command_is_killed_with_its_parent(bare: Terminal) -> None:
    begun = bare.here / "begun"
    words = ["rehearse", "sh", "-c", 'echo "$PPID" > begun.new; mv begun.new begun; exec sleep 9']
    with pytest.raises(subprocess.TimeoutExpired):
        run(words, stdin=b"", environ=bare.environ, cwd=bare.here, timeout=5)
    until(lambda: not Path(f"/proc/{begun.read_text().strip()}").exists())


def until(done: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < end
        time.sleep(0.02)
