"""`sealpipe run` as a process: environment, streams, signals, exit codes, and what its command
leaves behind.
"""

from __future__ import annotations

import json
import os
import resource
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cli.run.started import VALUE, WORDS, read_until, started, wait_until
from support.commands import SEALPIPE
from support.terminal import PATIENCE, Terminal

# -- environment -------------------------------------------------------------------------------


def test_the_command_gets_the_environment_without_ours_and_the_secrets(bare: Terminal) -> None:
    ours = {
        "SEALPIPE_API_KEY": "x",
        "SEALPIPE_OUTPUT": "text",
        "SEALPIPE_RUN_ENV": "ANOTHER=text:more",
    }
    more = {"HTTP_PROXY": "http://127.0.0.1:9", "ODD": "a\nb=c"}
    environ = bare.with_environ({"GIVEN": VALUE, **ours, **more})
    dump = "import json, os; print(json.dumps(dict(os.environ)).encode().hex())"
    done = bare.run([*SEALPIPE, "run", "--", sys.executable, "-Ic", dump], environ={**environ})
    seen = json.loads(bytes.fromhex(done.out))
    assert seen.pop("ANOTHER") == "more"
    assert seen == {
        name: value for name, value in environ.items() if not name.startswith("SEALPIPE_")
    }


def test_a_value_arrives_byte_for_byte(bare: Terminal) -> None:
    value = bytes(byte for byte in range(1, 256)) + b"\r\n\n"
    bare.file("value", value)
    dump = "import os; print(os.environb[b'SECRET'] == open('value', 'rb').read())"
    for locale in ("C.UTF-8", "C", "POSIX"):
        done = bare.run(
            [*SEALPIPE, "run", "-e", "SECRET=file:value", "--", sys.executable, "-c", dump],
            environ={"LC_ALL": locale},
        )
        assert (done.code, done.out) == (0, "True\n"), done


def test_a_value_with_a_nul_byte_is_refused_by_its_name(bare: Terminal) -> None:
    bare.file("value", b"canary\0canary")
    done = bare.sealpipe("run", "-e", "SECRET=file:value", "--", "touch", "started")
    assert done.code == 2
    assert done.err.startswith("sealpipe: the value of SECRET has a NUL byte")
    assert not (bare.here / "started").exists()


def test_a_value_that_is_too_large_is_told_as_such(bare: Terminal) -> None:
    bare.file("value", "x" * 140_000)
    done = bare.sealpipe("run", "-e", "SECRET=file:value", "--", "true")
    assert done.code == 2
    assert "Linux allows 128 KiB" in done.err


def test_nothing_starts_if_one_value_is_missing(bare: Terminal) -> None:
    done = bare.sealpipe("run", "-e", "A=text:x", "-e", "B=env:NOT_SET", "--", "touch", "started")
    assert done.code == 14
    assert not (bare.here / "started").exists()


def test_nothing_is_read_for_a_command_that_is_not_there(bare: Terminal) -> None:
    os.mkfifo(bare.here / "never-written")  # reading it would not end
    assert bare.sealpipe("run", "-e", "A=file:never-written", "--", "no-such-command").code == 2


def test_the_credential_is_never_handed_on(user: Terminal) -> None:
    user.file("key", user.environ["SEALPIPE_API_KEY"])
    done = user.sealpipe("run", "-e", "KEY=file:key", "--", "touch", "started")
    assert (done.code, done.err.splitlines()[0]) == (
        2,
        "sealpipe: a value holds sealpipe's own credential, which is never handed on",
    )
    assert not (user.here / "started").exists()
    assert user.sealpipe("read", "file:key").code == 2


@pytest.mark.parametrize("key", ["nonsense", "svc_sk_live_x"])
def test_a_wrong_credential_does_no_harm(bare: Terminal, key: str) -> None:
    done = bare.sealpipe(
        "run", "-e", "A=text:x", "--", "true", SEALPIPE_API_KEY=key, SEALPIPE_API_KEY_PREVIOUS=key
    )
    assert done.code == 0, done


# -- streams -----------------------------------------------------------------------------------


def test_output_that_is_no_text_passes_unchanged(bare: Terminal) -> None:
    data = bytes(range(256)) * 2000
    bare.file("data", data)
    process = started(bare, "cat", "data")
    assert process.communicate(timeout=PATIENCE) == (data, b"")


def test_a_value_that_is_cut_across_two_writes_is_redacted(bare: Terminal) -> None:
    halves = (
        'printf %s "${SECRET%??????}"; sleep 0.3; printf %s "${SECRET#?????????????}" >&1; '
        "echo .; echo $SECRET >&2"
    )
    out, err = started(bare, "sh", "-c", halves).communicate(timeout=PATIENCE)
    assert (out, err) == (b"***.\n", b"***\n")


def test_two_streams_to_one_place_keep_their_order(bare: Terminal) -> None:
    lines = "for n in 1 2 3 4 5 6 7 8 9; do echo out $n; echo err $n >&2; done"
    out, _ = started(bare, "sh", "-c", lines, stderr=subprocess.STDOUT).communicate(
        timeout=PATIENCE
    )
    assert out.splitlines() == [
        b"%s %d" % (name, n) for n in range(1, 10) for name in (b"out", b"err")
    ]


def test_a_prompt_shows_before_it_is_answered(bare: Terminal) -> None:
    process = started(bare, "sh", "-c", "printf 'go on? c'; read answer; echo $answer")
    assert read_until(process, b"? c") == b"go on? c"
    assert process.communicate(b"yes\n", timeout=PATIENCE) == (b"yes\n", b"")


def test_a_reader_that_goes_away_ends_the_writer_too(bare: Terminal) -> None:
    with started(bare, "yes") as process:
        read_until(process, b"y\n")
        assert process.stdout
        process.stdout.close()
        assert process.wait(PATIENCE) == 128 + signal.SIGPIPE
        assert process.stderr
        assert process.stderr.read() == b""


def test_all_output_arrives_however_slowly_it_is_read(bare: Terminal) -> None:
    process = started(bare, "sh", "-c", "head -c 300000 /dev/zero; echo end")
    time.sleep(1.5)
    out, _ = process.communicate(timeout=PATIENCE)
    assert len(out) == 300_004


def test_a_stream_that_does_not_block_is_written_whole(bare: Terminal) -> None:
    reads, writes = os.pipe()
    os.set_blocking(writes, False)
    with (
        started(bare, "head", "-c", "300000", "/dev/zero", stdout=writes) as process,
        os.fdopen(reads, "rb") as stream,
    ):
        os.close(writes)
        time.sleep(0.5)
        assert len(stream.read()) == 300_000
        assert process.wait(PATIENCE) == 0


def test_a_process_in_the_background_does_not_hold_the_command(bare: Terminal) -> None:
    process = started(bare, "sh", "-c", "sleep 600 & echo $!")
    out, _ = process.communicate(timeout=PATIENCE)
    os.kill(int(out), signal.SIGKILL)  # it is still there
    assert process.returncode == 0


def test_without_redaction_the_streams_are_ours(bare: Terminal) -> None:
    words = ("run", "--no-redact", "-e", "SECRET=env:GIVEN", "--")
    ours = "os.readlink('/proc/self/fd/1') == os.readlink(f'/proc/{os.getppid()}/fd/1')"
    same = f"import os; print({ours}, os.environ['SECRET'])"
    out, _ = started(bare, sys.executable, "-c", same, words=words).communicate(timeout=PATIENCE)
    assert out == f"True {VALUE}\n".encode()


# -- signals and the end -----------------------------------------------------------------------

PASSED_ON = [
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
]


@pytest.mark.parametrize(
    "words", [WORDS, ("run", "--no-redact", "-e", "SECRET=env:GIVEN", "--")], ids=["", "plain"]
)
@pytest.mark.parametrize("number", PASSED_ON, ids=lambda number: number.name)
def test_a_signal_reaches_the_command_which_decides(
    bare: Terminal, number: int, words: tuple[str, ...]
) -> None:
    script = f"trap 'echo got it; exit 9' {int(number)}; echo ready; while :; do sleep 0.05; done"
    process = started(bare, "sh", "-c", script, words=words)
    read_until(process, b"ready\n")
    process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out, err) == (9, b"got it\n", b"")


@pytest.mark.parametrize("number", PASSED_ON, ids=lambda number: number.name)
def test_a_signal_that_ends_the_command_is_its_exit_code(bare: Terminal, number: int) -> None:
    process = started(bare, "sh", "-c", "echo ready; exec sleep 100")
    read_until(process, b"ready\n")
    process.send_signal(number)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 128 + number


def test_a_command_is_told_to_stop_and_to_go_on(bare: Terminal) -> None:
    script = (
        "trap 'echo stops; echo >told' TSTP; trap 'echo goes on; exit 4' CONT; echo ready; "
        "while :; do sleep 0.05; done"
    )
    process = started(bare, "sh", "-c", script)
    read_until(process, b"ready\n")
    process.send_signal(signal.SIGTSTP)
    wait_until(lambda: state_of(process.pid) == "T")
    wait_until((bare.here / "told").exists)
    process.send_signal(signal.SIGCONT)
    assert process.communicate(timeout=PATIENCE) == (b"stops\ngoes on\n", b"")
    assert process.returncode == 4


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]


def test_a_signal_that_is_ignored_stays_ignored(bare: Terminal) -> None:
    words = shlex.join(
        [*SEALPIPE, "run", "-e", "A=text:x", "--", "sh", "-c", "kill -HUP $$; echo alive"]
    )
    done = bare.run(["sh", "-c", f"trap '' HUP; {words}"])
    assert (done.code, done.out) == (0, "alive\n"), done


def test_the_command_starts_with_the_usual_signals(bare: Terminal) -> None:
    """As a shell starts it: SIGPIPE ends it, and nothing is blocked or ignored."""
    show = (
        "import re; print(re.findall('^Sig(?:Blk|Ign):.*', open('/proc/self/status').read(), re.M))"
    )
    here = bare.run([sys.executable, "-c", show])
    assert (
        bare.run([*SEALPIPE, "run", "-e", "A=text:x", "--", sys.executable, "-c", show]).out
        == here.out
    )


def test_the_command_gets_no_descriptor_of_ours(bare: Terminal) -> None:
    done = bare.run(
        [
            *SEALPIPE,
            "run",
            "-e",
            "A=text:x",
            "--",
            sys.executable,
            "-c",
            "import os; print(os.listdir('/proc/self/fd'))",
        ]
    )
    assert done.out == "['0', '1', '2', '3']\n"


def test_the_command_may_leave_a_core_file_and_we_may_not(bare: Terminal) -> None:
    show = (
        "import resource; print(resource.getrlimit(resource.RLIMIT_CORE), "
        "open('/proc/self/environ').read(3))"
    )
    limits = resource.getrlimit(resource.RLIMIT_CORE)
    done = bare.run([*SEALPIPE, "run", "-e", "A=text:x", "--", sys.executable, "-c", show])
    assert done.out.startswith(str(limits)), done
    with started(bare, "sh", "-c", "echo ready; exec sleep 100") as process:
        read_until(process, b"ready\n")
        (child,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        process.send_signal(signal.SIGSEGV)
        _, status = os.waitpid(process.pid, 0)
        process.returncode = 0
        os.kill(int(child), signal.SIGKILL)
    assert os.WTERMSIG(status) == signal.SIGSEGV
    assert not os.WCOREDUMP(status)


def test_a_file_that_is_no_program_cannot_be_run(bare: Terminal) -> None:
    bare.file("program", b"\x7fELF nonsense", 0o700)
    done = bare.sealpipe("run", "-e", "A=text:x", "--", "./program")
    assert (done.code, done.err) == (2, "sealpipe: ./program cannot be run: Exec format error\n")


def test_errors_as_json_are_the_last_line(bare: Terminal) -> None:
    assert (
        bare.sealpipe("run", "-e", "A=text:x", "--output", "json", "--", "no-such").error[
            "exit_code"
        ]
        == 2
    )


LOADED = """
import sys
from sealpipe.__main__ import main
try:
    main()
except SystemExit as end:
    print(*sorted(sys.modules), sep="\\n", file=sys.stderr)
    raise
"""


def loaded(user: Terminal, *words: str) -> set[str]:
    """The modules that a command has loaded at its end."""
    return set(user.run([sys.executable, "-c", LOADED, *words]).err.splitlines())


def test_no_http_client_is_loaded_and_no_terminal_without_one(bare: Terminal) -> None:
    modules = loaded(bare, "run", "-e", "A=env:HOME", "--", "true")
    assert "sealpipe.run.child" in modules
    assert not {
        each
        for each in modules
        if each.partition(".")[0] in ("httpx", "httpcore", "pydantic", "cryptography")
    } - {
        "httpx._main"  # blocked, not loaded
    }
    assert "sealpipe.run.terminal" not in modules
    assert "sealpipe.run.child" not in loaded(bare, "read", "env:HOME")


def test_other_commands_do_not_load_it(user: Terminal) -> None:
    assert not {
        each for each in loaded(user, "share", "-f", "env:HOME") if each.startswith("sealpipe.run")
    }
