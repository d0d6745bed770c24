"""`prompt:`: asked at a real terminal, shown nowhere, and the terminal is as before, whatever
happens.
"""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sealpipe.ci_systems import CISystem
from sealpipe_plugins.local import terminal
from sealpipe_rehearsal.running_service import RunningService
from support.ci_jobs import SOME, job, titled
from support.commands import SEALPIPE
from support.terminal import Terminal, opened
from support.typing_person import Person

CANARY = "c4nary häslich $x"
ASK = ("share", "-f", "Password=prompt:Database password")
QUESTION = "Database password (not shown): "


def person(user: Terminal, *words: str, stdin: bytes = b"", **environ: str | None) -> Person:
    return Person([*SEALPIPE, *words], user.with_environ(environ), user.here, stdin)


def everywhere(user: Terminal) -> bytes:
    """All that is on disk where the user may write."""
    return b"".join(path.read_bytes() for path in user.home.parent.rglob("*") if path.is_file())


def test_what_is_typed_is_shared_and_shown_nowhere(user: Terminal, service: RunningService) -> None:
    with person(user, *ASK) as typist:
        typist.waits_for(QUESTION)
        assert not typist.shows_what_is_typed()
        for name in ("cmdline", "environ"):
            assert b"c4nary" not in Path(f"/proc/{typist.pid}/{name}").read_bytes()
        typist.types(f"{CANARY}\r")
        done = typist.done()
        assert (done.code, typist.shows_what_is_typed()) == (0, True), done
    assert opened(service, done.out) == {"Password": CANARY}
    for text in (done.out.encode(), done.err.encode(), typist.seen, everywhere(user)):
        assert b"c4nary" not in text
    assert typist.seen.decode() == f"{QUESTION}\r\n"


def test_it_asks_at_the_terminal_while_something_else_is_piped_in(
    user: Terminal, service: RunningService
) -> None:
    with person(user, *ASK, "-f", "Piped=stdin:", stdin=b"from a pipe") as typist:
        typist.answers(QUESTION, CANARY)
        done = typist.done()
    assert opened(service, done.out) == {"Password": CANARY, "Piped": "from a pipe"}


def test_each_mention_asks_by_itself_one_after_the_other(
    user: Terminal, service: RunningService
) -> None:
    fields = ["-f", "A=prompt:", "-f", "B=prompt:", "-f", "C=env:HOME", "-f", "D=gen:pin"]
    with person(user, "share", *fields, "--passcode-from", "prompt:Passcode") as typist:
        typist.answers("Secret (not shown): ", "one")
        typist.answers("Secret (not shown): ", "two")
        typist.answers("Passcode (not shown): ", "open sesame")
        done = typist.done()
    found = opened(service, done.out, "open sesame")
    assert (found["A"], found["B"], found["C"]) == ("one", "two", str(user.home))


def test_a_request_asks_for_its_passcode_and_collect_for_its_key(
    user: Terminal, service: RunningService
) -> None:
    asked = (
        "request",
        "-a",
        "Token",
        "--passcode-from",
        "prompt:Passcode",
        "--key",
        "new",
        "--seed-to",
        "file:seed",
    )
    with person(user, *asked) as typist:
        typist.answers("Passcode (not shown): ", "knock")
        done = typist.done()
    assert done.code == 0, done
    service.submitter().submit(done.out.strip(), {"Token": "t"}, passcode="knock")
    code = done.out.strip().rpartition("/")[2]
    with person(user, "collect", "--key", "prompt:Seed", "--", code) as typist:
        typist.answers("Seed (not shown): ", (user.here / "seed").read_text().strip())
        assert typist.done().out.startswith("Token: t")


def test_the_deadline_is_not_for_who_types(user: Terminal, service: RunningService) -> None:
    with person(user, *ASK, "--deadline", "2s") as typist:
        typist.waits_for(QUESTION)
        time.sleep(2.5)
        typist.types("slow\r")
        done = typist.done()
    assert opened(service, done.out) == {"Password": "slow"}


@pytest.mark.parametrize(
    ("how", "code"),
    [("keys", 130), (signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)],
)
def test_an_interrupt_ends_it_and_the_terminal_shows_again(
    user: Terminal, service: RunningService, how: str | int, code: int
) -> None:
    # Another source is read at the same time: its thread must not be waited for.
    with person(user, *ASK, "-f", "B=env:HOME") as typist:
        typist.waits_for(QUESTION)
        typist.types("half of it")
        if isinstance(how, int):
            time.sleep(
                0.5
                # the kernel gives the terminal what was typed a moment later: not after the
                # interrupt
            )
            os.kill(typist.pid, how)
        else:
            typist.types("\x03")
        done = typist.done()
        assert (done.code, done.out, typist.shows_what_is_typed()) == (code, "", True), done
    assert service.seen() == []
    assert b"half" not in typist.seen


def test_stopped_it_leaves_the_terminal_as_it_was_and_asks_again(
    user: Terminal, service: RunningService
) -> None:
    with person(user, *ASK) as typist:
        typist.waits_for(QUESTION)
        for how in ("keys", "signal"):
            typist.types("half")
            if how == "keys":
                typist.types("\x1a")
            else:
                os.kill(typist.pid, signal.SIGTSTP)
            typist.is_stopped()
            assert typist.shows_what_is_typed()
            typist.goes_on()
            typist.waits_for(QUESTION)
            assert not typist.shows_what_is_typed()
        typist.types("whole\r")
        done = typist.done()
        assert typist.shows_what_is_typed()
    assert opened(service, done.out) == {"Password": "whole"}
    assert b"half" not in typist.seen


@pytest.mark.parametrize("typed", ["first\rsecond\r", "x" * 4095 + "\r", "x" * 8000 + "\r"])
def test_more_than_a_line_is_refused_and_no_shell_gets_the_rest(
    user: Terminal, service: RunningService, typed: str
) -> None:
    with person(user, *ASK) as typist:
        typist.waits_for(QUESTION)
        typist.types(typed)
        done = typist.done()
    assert (done.code, done.out, service.seen()) == (14, "", [])
    assert "a line of a terminal" in done.err
    assert "file:PATH" in done.err


def test_a_second_line_of_a_slow_paste_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The terminal hands the lines over one by one; the window is long here, so that a slow machine
    is no failure.
    """
    master, slave = pty.openpty()
    monkeypatch.setattr(terminal, "TERMINAL", os.ttyname(slave))
    monkeypatch.setattr(terminal, "_PASTE_WINDOW", 30)

    def paste() -> None:
        os.read(master, 100)  # the question
        os.write(master, b"first\n")
        time.sleep(0.3)
        os.write(master, b"second\n")

    with ThreadPoolExecutor() as pool:
        pasting = pool.submit(paste)
        with pytest.raises(terminal.InputTooLongError):
            terminal.read_secret_line(QUESTION)
        pasting.result()
    os.close(master)
    os.close(slave)


def test_a_long_line_is_whole(user: Terminal, service: RunningService) -> None:
    with person(user, *ASK) as typist:
        typist.answers(QUESTION, "x" * 4094)
        assert opened(service, typist.done().out) == {"Password": "x" * 4094}


@pytest.mark.parametrize("typed", ["\r", "\x04"])
def test_nothing_is_an_error_unless_it_is_optional(
    user: Terminal, service: RunningService, typed: str
) -> None:
    with person(user, *ASK) as typist:
        typist.waits_for(QUESTION)
        typist.types(typed)
        done = typist.done()
    assert (done.code, "nothing was typed" in done.err, service.seen()) == (14, True, [])
    with person(user, *ASK[:2], f"{ASK[2]}?optional=1", "-f", "B=text:b") as typist:
        typist.waits_for(QUESTION)
        typist.types(typed)
        assert opened(service, typist.done().out) == {"B": "b"}


def test_without_a_terminal_it_says_what_to_do(user: Terminal, service: RunningService) -> None:
    config = user.file("config.toml", '[plugins.exec.commands.make]\nargv = ["touch", "made"]\n')
    environ = user.with_environ({"SEALPIPE_CONFIG": str(config)})
    done = subprocess.run(
        [*SEALPIPE, *ASK, "-f", "B=exec:make"],
        env=environ,
        cwd=user.here,
        start_new_session=True,
        capture_output=True,
        check=False,
        stdin=subprocess.DEVNULL,
        text=True,
    )
    assert (done.returncode, done.stdout, service.seen()) == (14, "", [])
    assert "this process has none" in done.stderr
    assert not (user.here / "made").exists(), "what is made by being read is not read in vain"
    assert "env:NAME" in done.stderr


@pytest.mark.parametrize("row", SOME, ids=titled)
def test_in_ci_there_is_no_prompt_even_at_a_terminal(
    user: Terminal, service: RunningService, row: CISystem
) -> None:
    with person(user, *ASK, "--link-file", "link", **job(row)) as typist:
        done = typist.done()
    assert (done.code, done.out, service.seen(), typist.seen) == (14, "", [], b"")
    assert "this is a CI job" in done.err


def test_who_switched_ci_off_is_asked(user: Terminal, service: RunningService) -> None:
    with person(user, *ASK, CI="False") as typist:
        typist.answers(QUESTION, "x")
        assert opened(service, typist.done().out) == {"Password": "x"}


def test_its_question_is_only_text(user: Terminal) -> None:
    with person(user, "share", "-f", "A=prompt:\u202eevil ") as typist:
        typist.answers("evil (not shown): ", "x")
        assert typist.done().code == 0
    assert "\u202e" not in typist.seen.decode()
