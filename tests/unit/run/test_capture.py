"""A command is run for a program: what it returns, how it ends, and what it leaves behind."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealpipe.errors import UsageError
from sealpipe.run import capture
from sealpipe.run.capture import Captured, Excerpt, Stop, capture_command
from sealpipe.spellings import Finder
from support.terminal import ends

SECRET = b"canary-of-a-captured-command"
ENVIRON = {b"PATH": os.fsencode(os.environ["PATH"]), b"SECRET": SECRET}


def captured(
    *argv: str,
    seconds: float = 60,
    longest: int = 1000,
    stop: Stop | None = None,
    environ: Mapping[bytes, bytes] = {},
) -> Captured:
    """What a command of a shell comes to, with a secret in its environment."""
    argv = argv if len(argv) > 1 else ("/bin/sh", "-c", *argv)
    limits = {"seconds": seconds, "longest": longest}
    with Stop() as never:
        return capture_command(
            argv[0], argv, {**ENVIRON, **environ}, Finder([SECRET]), stop=stop or never, **limits
        )


def test_both_streams_and_the_exit_code_are_returned() -> None:
    done = captured("echo out; echo err >&2; exit 7")
    assert done == (7, "exited", "out\n", "err\n", False)


def test_a_secret_is_redacted_in_both_streams_and_in_pieces() -> None:
    script = (
        'echo "$SECRET"; printf %s "$SECRET" | base64 >&2; printf canary-of-; sleep 0.1; '
        "printf a-captured-command"
    )
    done = captured(script)
    assert (done.stdout, done.stderr) == ("***\n***", "***\n")


def test_what_begins_like_a_secret_at_the_end_is_shown() -> None:
    done = captured("printf 'see canary-of-'; printf canary-of-a-captured >&2")
    assert (done.stdout, done.stderr) == ("see canary-of-", "canary-of-a-captured")


def test_it_has_no_input_no_terminal_and_a_session_of_its_own() -> None:
    tell = (
        "import os; print(os.read(0, 1), os.getsid(0) == os.getpid(), "
        "os.listdir('/proc/self/fd')); open('/dev/tty')"
    )
    done = captured(sys.executable, "-Ic", tell)
    assert done.stdout.startswith("b'' True ")
    assert done.exit_code == 1
    assert "/dev/tty" in done.stderr


def test_no_descriptor_of_ours_reaches_it(tmp_path: Path) -> None:
    with (tmp_path / "ours").open("w") as file:
        os.set_inheritable(file.fileno(), True)  # noqa: FBT003 - its signature
        assert str(tmp_path) not in captured("ls -l /proc/self/fd /dev/fd/").stdout


def stopped(tmp_path: Path, script: str) -> Captured:
    """What a script comes to that is stopped once it has opened a pipe."""
    ready = tmp_path / "ready"
    os.mkfifo(ready)
    with Stop() as stop:
        waiting = threading.Thread(target=lambda: (ready.read_bytes(), stop()))
        waiting.start()
        done = captured(script.replace("READY", f": > {ready}"), stop=stop)
        waiting.join()
    return done


def test_it_ends_with_all_of_its_children(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(capture, "_PATIENCE", 0.3)
    children = (
        "(trap '' TERM; sleep 600) & echo $!; setsid sleep 600 & echo $!; set -m; sleep 600 & "
        "echo $!"
    )
    done = stopped(tmp_path, f"{children}; trap '' TERM; READY; while :; do sleep 600; done")
    assert (done.ending, done.exit_code) == ("stopped", 128 + signal.SIGKILL)
    assert [ends(int(pid)) for pid in done.stdout.split()] == [True] * 3


def test_a_command_that_obeys_sigterm_may_clean_up(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(capture, "_PATIENCE", 60)
    done = stopped(
        tmp_path, "trap 'echo cleaned; exit 3' TERM; READY; while :; do sleep 0.05; done"
    )
    assert done[:3] == (3, "stopped", "cleaned\n")


def test_it_ends_when_its_time_is_up() -> None:
    assert captured("exec sleep 600", seconds=0.1)[:2] == (128 + signal.SIGTERM, "timeout")


def test_it_can_be_stopped_at_any_moment() -> None:
    with Stop() as stop:
        threading.Timer(0.2, stop).start()
        assert captured("exec sleep 600", stop=stop)[:2] == (128 + signal.SIGTERM, "stopped")
    with Stop() as early:
        early()
        assert captured("exec sleep 600", stop=early).ending == "stopped"


def test_what_it_leaves_running_is_ended_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capture, "GRACE", 0.1)
    done = captured("sleep 600 & echo $!")
    assert done.ending == "exited"
    assert ends(int(done.stdout))


def test_endless_output_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capture, "MAX_READ", 1_000_000)
    done = captured("yes $SECRET")
    assert done.ending == "too much output"
    assert done.is_truncated
    assert done.stdout.startswith("***\n***\n")
    assert len(done.stdout) < 1100


def test_it_works_where_nothing_tells_of_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pidfd_open", raising=False)
    monkeypatch.setattr(capture, "_PROCESSES", Path("/nowhere"))
    assert captured("echo out; exec sleep 0.2") == (0, "exited", "out\n", "", False)
    assert captured("sleep 600", seconds=0.2).ending == "timeout"


def test_a_command_that_cannot_start_is_named() -> None:
    with pytest.raises(UsageError, match=r"^/no/such cannot be run"):
        captured("/no/such", "x")


@given(st.lists(st.text(max_size=9)), st.integers(min_value=1, max_value=9))
def test_an_excerpt_is_whole_or_has_both_ends(pieces: list[str], half: int) -> None:
    excerpt = Excerpt(2 * half)
    for piece in pieces:
        excerpt.add(piece.encode())
    text = "".join(pieces)
    expected = text if len(text) <= 2 * half else f"{text[:half]}\n[...]\n{text[-half:]}"
    assert excerpt.read() == (expected, len(text) > 2 * half)
