"""`sealpipe run` where a person sits: the command has a terminal as good as theirs, and its output
is redacted.
"""

from __future__ import annotations

import os
import pty
import shlex
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from support.commands import SEALPIPE
from support.terminal import PATIENCE, Terminal, readable
from support.typing_person import Person

VALUE = "canary-of-a-terminal"
WORDS = ("run", "-e", "SECRET=env:GIVEN")
AT_TERMINAL = "exec {} </dev/tty >/dev/tty 2>/dev/tty"


def person(
    user: Terminal, *command: str, words: Sequence[str] = WORDS, streams: str = AT_TERMINAL
) -> Person:
    """Somebody who types at a command under `sealpipe run`."""
    line = streams.format(shlex.join([*SEALPIPE, *words, "--", *command]))
    return Person(["sh", "-c", line], user.with_environ({"GIVEN": VALUE}), user.here)


def shell(user: Terminal, script: str, **how: Sequence[str]) -> Person:
    """The same with a script of a shell."""
    return person(user, "sh", "-c", script, **how)  # type: ignore[arg-type]


def test_all_streams_are_a_terminal_and_the_value_does_not_show(bare: Terminal) -> None:
    with shell(
        bare,
        "test -t 0 && test -t 1 && test -t 2 && echo all; echo $SECRET; echo $SECRET >&2; exit 5",
    ) as who:
        done = who.done()
        assert done.code == 5
        assert who.seen == b"all\r\n***\r\n***\r\n"


def test_a_question_is_answered(bare: Terminal) -> None:
    with shell(bare, "printf 'Your name: c'; read name; echo hello $name") as who:
        who.answers("Your name: c", "ada")
        who.waits_for("hello ada")
        assert who.done().code == 0


def test_a_password_is_typed_unseen(bare: Terminal) -> None:
    ask = "import getpass; print(len(getpass.getpass('Password: ')))"
    with person(bare, sys.executable, "-c", ask) as who:
        who.answers("Password: ", "unseen")
        assert who.done().code == 0
        assert b"unseen" not in who.seen
        assert b"6\r\n" in who.seen


def test_what_is_typed_shows_although_a_value_begins_so(bare: Terminal) -> None:
    with person(bare, "cat") as who:
        for key in "can":
            who.types(key)
            who.waits_for(key)
        who.types("'t\r")
        who.waits_for("can't")
        who.types(f"{VALUE}\r")
        who.waits_for("***")
        who.types(b"\x04")
        assert who.done().code == 0
        assert VALUE.encode() not in who.seen


def test_a_long_text_is_typed_at_once(bare: Terminal) -> None:
    count = (
        "import sys, tty; tty.setraw(0); print('ready'); sys.stdout.flush(); "
        "print(len(sys.stdin.buffer.read(200000)))"
    )
    with person(bare, sys.executable, "-c", count) as who:
        who.waits_for("ready")
        for _ in range(50):
            who.types(b"x" * 4000)
        who.waits_for("200000")
        assert who.done().code == 0


COUNTS = "trap 'n=x$n' INT; echo ready >&2; while [ -z \"$n\" ]; do sleep 0.05; done; sleep 0.5"
"""Counts interrupts: the first ends the loop, and another one would come right after it."""


def test_the_key_that_interrupts_reaches_the_command_once(bare: Terminal) -> None:
    with shell(bare, f"{COUNTS}; echo got $n; exit 3") as who:
        who.waits_for("ready")
        who.types(b"\x03")
        assert who.done().code == 3
        assert b"got x\r\n" in who.seen


def test_the_key_that_quits_ends_the_command(bare: Terminal) -> None:
    with shell(bare, "echo ready; exec sleep 100") as who:
        who.waits_for("ready")
        who.types(b"\x1c")
        assert who.done().code == 128 + signal.SIGQUIT


def test_a_command_is_stopped_by_its_key_and_brought_back(bare: Terminal) -> None:
    with shell(bare, "echo ready; exec cat") as who:
        who.waits_for("ready")  # what is typed before is shown twice, by both terminals
        who.types("one\r")
        who.waits_for("one\r\none")
        who.types(b"\x1a")
        who.is_stopped()
        assert who.shows_what_is_typed(), "the terminal is the shell's again"
        who.goes_on()
        who.types("two\r")
        who.waits_for("two\r\ntwo")
        who.types(b"\x04")
        assert who.done().code == 0
        assert who.shows_what_is_typed()


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1], ids=lambda number: number.name
)
def test_a_signal_reaches_the_command(bare: Terminal, number: int) -> None:
    script = f"trap 'echo got it; exit 9' {int(number)}; echo ready; while :; do sleep 0.05; done"
    with shell(bare, script) as who:
        who.waits_for("ready")
        os.kill(who.pid, number)
        who.waits_for("got it")
        assert who.done().code == 9
        assert who.shows_what_is_typed()


def test_the_size_is_ours_and_follows_it(bare: Terminal) -> None:
    script = "trap 'stty size; exit' WINCH; stty size; while :; do sleep 0.05; done"
    with shell(bare, script) as who:
        who.waits_for("0 0")
        who.resizes(33, 77)
        who.waits_for("33 77")
        assert who.done().code == 0


def test_a_shell_in_it_has_jobs_of_its_own(bare: Terminal) -> None:
    with person(bare, "bash", "--norc", "--noprofile", "-i") as who:
        who.types("PS1='ready> '\r")
        who.waits_for("\nready> ")
        who.types("sh -c 'echo it is \"\"up; exec sleep 100'\r")
        who.waits_for("it is up")
        who.types(b"\x1a")
        who.waits_for("Stopped")
        # A newer bash does not wait for a job that is still stopped, and would not leave it behind
        # at `exit`.
        who.types("while kill %1; do wait %1; done 2>/dev/null; echo $SECRET\r")
        who.waits_for("***")
        who.types("exit\r")
        who.done()
        assert VALUE.encode() not in who.seen


def test_stderr_in_a_file_is_redacted_there(bare: Terminal) -> None:
    streams = "exec {} </dev/tty >/dev/tty 2>errors"
    with shell(bare, "test -t 2 || echo $SECRET in a file >&2; echo shown", streams=streams) as who:
        assert who.done().code == 0
        assert who.seen == b"shown\r\n"
    assert (bare.here / "errors").read_bytes() == b"*** in a file\n"


def test_output_to_a_terminal_alone_is_a_terminal_for_the_command(bare: Terminal) -> None:
    """Its input stays what it is; the bytes are changed by one terminal, not by two."""
    streams = "echo typed | {} >/dev/tty 2>/dev/tty"
    with shell(
        bare,
        "test -t 1 && test -t 2 && test ! -t 0 && cat && echo $SECRET && stty size <&1",
        streams=streams,
    ) as who:
        assert who.done().code == 0
        assert who.seen == b"typed\r\n***\r\n0 0\r\n"


def test_the_interrupt_key_reaches_a_command_in_a_pipeline_once(bare: Terminal) -> None:
    streams = "{} </dev/tty | cat >/dev/tty"
    with shell(
        bare,
        f"{COUNTS}; echo got $n >/dev/tty",
        streams="trap : INT; " + streams.replace("{}", "{} 2>/dev/tty"),
    ) as who:
        who.waits_for("ready")
        who.types(b"\x03")
        who.waits_for("got x\r\n")
        who.done()


def test_a_program_that_cannot_start_is_told_on_the_terminal(bare: Terminal) -> None:
    bare.file("program", b"\x7fELF nonsense", 0o700)
    with person(bare, "./program") as who:
        assert who.done().code == 2
        assert who.seen == b"sealpipe: ./program cannot be run: Exec format error\r\n"
        assert who.shows_what_is_typed()


def test_without_redaction_the_terminal_is_handed_on(bare: Terminal) -> None:
    words = (*WORDS[:1], "--no-redact", *WORDS[1:])
    with shell(bare, "tty; echo $SECRET", words=words) as who:
        assert who.done().code == 0
        outside, value = who.seen.split()
        assert value == VALUE.encode()
    with shell(bare, "tty") as who:
        who.done()
        assert who.seen.split() != [outside]


def test_the_end_of_the_terminal_ends_the_command(bare: Terminal, tmp_path: Path) -> None:
    """As where a window is closed: the command is told by SIGHUP."""
    master, slave = pty.openpty()
    script = (
        f"trap 'echo $? >{tmp_path}/hung-up; exit' HUP; echo ready; while :; do sleep 0.05; done"
    )
    take = (
        "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
        "os.execvp(sys.argv[1], sys.argv[1:])"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", take, *SEALPIPE, *WORDS, "--", "sh", "-c", script],
        stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
        env=bare.with_environ({"GIVEN": VALUE}), cwd=bare.here,
    )  # fmt: skip
    os.close(slave)
    seen = b""
    while b"ready" not in seen:
        assert readable([master], PATIENCE)
        seen += os.read(master, 65_536)
    os.close(master)
    process.wait(PATIENCE)
    assert (tmp_path / "hung-up").exists()
