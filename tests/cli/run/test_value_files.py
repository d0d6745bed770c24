"""`sealpipe run --file`: values in files for a command, which are gone when it has ended.

`place` stands for the folder of this user in memory.
"""

from __future__ import annotations

import base64
import os
import shlex
import signal
import stat
import sys
import threading
import time
from pathlib import Path

import pytest

from cli.run.started import read_until, started, wait_until
from sealpipe.run.value_files import make_files, remove_left_over
from support.commands import SEALPIPE
from support.terminal import PATIENCE, Terminal
from support.typing_person import Person

BINARY = bytes(range(256)) * 9
PRINTS_SIZES = """\
import os
value, same, data = (os.environ[name] for name in ("HEX", "SAME", "BYTES"))
print(len(value), open(same).read() == value, os.stat(data).st_size)
"""
WORDS = ("run", "--file", "CERT=file:bundle.p12", "--")


@pytest.fixture
def place(bare: Terminal) -> Path:
    """A folder in which the files are made."""
    folder = bare.here / "runtime"
    folder.mkdir(0o700)
    bare.environ["XDG_RUNTIME_DIR"] = str(folder)
    bare.file("bundle.p12", BINARY)
    return folder


def left(place: Path) -> list[str]:
    return [each.name for each in place.rglob("*")]


def test_the_command_finds_the_bytes_in_a_private_file_that_is_gone_afterwards(
    bare: Terminal, place: Path
) -> None:
    script = (
        "cp $CERT copy; stat -c '%a %F' $CERT $(dirname $CERT); echo $CERT | cut -d/ -f1-; exit 5"
    )
    done = bare.sealpipe(*WORDS, "sh", "-c", script)
    assert done.code == 5, done
    file, folder, path = done.out.splitlines()
    assert (file, folder) == ("600 regular file", "700 directory")
    assert Path(path).parent.parent == place
    assert (bare.here / "copy").read_bytes() == BINARY
    assert left(place) == []


@pytest.mark.usefixtures("place")
def test_encode_gives_text_and_decode_the_bytes_to_variables_and_files_alike(
    bare: Terminal,
) -> None:
    bare.file("bundle.b64", base64.encodebytes(BINARY))
    words = ("-e", "HEX=file:bundle.p12?encode=hex", "--file", "SAME=file:bundle.p12?encode=hex")
    words += ("--file", "BYTES=file:bundle.b64?decode=base64")
    done = bare.sealpipe("run", *words, "--", sys.executable, "-c", PRINTS_SIZES)
    assert (done.code, done.out) == (0, f"{len(BINARY) * 2} True {len(BINARY)}\n"), done
    done = bare.sealpipe("run", "-e", "BYTES=file:bundle.p12", "--", "true")
    assert done.code == 2
    assert "give the command a file: --file NAME=REF; or add ?encode=base64" in done.err


@pytest.mark.usefixtures("place")
def test_without_a_folder_of_its_own_it_is_in_another(bare: Terminal) -> None:
    bare.environ |= {"XDG_RUNTIME_DIR": "/no/such/folder"}
    done = bare.sealpipe(*WORDS, "sh", "-c", "cmp $CERT bundle.p12 && echo $CERT")
    assert done.code == 0, done
    assert not Path(done.out.strip()).exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_it_is_gone_after_a_signal(bare: Terminal, place: Path, number: int) -> None:
    process = started(bare, "sh", "-c", "echo ready; exec sleep 100", words=WORDS)
    read_until(process, b"ready\n")
    assert left(place)
    process.send_signal(number)
    process.communicate(timeout=PATIENCE)
    assert (process.returncode, left(place)) == (128 + number, [])


def test_it_is_gone_after_a_command_at_a_terminal(bare: Terminal, place: Path) -> None:
    script = "cmp $CERT bundle.p12 && touch same"
    line = f"exec {shlex.join([*SEALPIPE, *WORDS, 'sh', '-c', script])} </dev/tty >/dev/tty"
    with Person(["sh", "-c", line], bare.environ, bare.here) as who:
        assert who.done().code == 0
    assert (bare.here / "same").exists()
    assert left(place) == []


@pytest.mark.parametrize("words", [("no-such-command",), ("./program",)])
def test_it_is_gone_where_the_command_cannot_be_started(
    bare: Terminal, place: Path, words: tuple[str, ...]
) -> None:
    bare.file("program", b"\x7fELF nonsense", 0o700)
    assert bare.sealpipe(*WORDS, *words).code == 2
    assert left(place) == []


def test_what_a_killed_sealpipe_leaves_stays_for_its_command_and_is_removed_by_the_next_run(
    bare: Terminal, place: Path
) -> None:
    script = "echo ready; read go; cmp $CERT bundle.p12 && touch same"
    process = started(bare, "sh", "-c", script, words=WORDS)
    read_until(process, b"ready\n")
    process.kill()
    process.wait(PATIENCE)
    assert bare.sealpipe("run", "-e", "A=text:x", "--", "true").code == 0
    assert left(place), "its command lives"
    assert process.stdin is not None
    process.stdin.write(b"go\n")
    process.stdin.close()
    wait_until((bare.here / "same").exists)
    wait_until(lambda: _removed_by_another(bare, place))
    for stream in (process.stdout, process.stderr):
        assert stream is not None
        stream.close()


def _removed_by_another(bare: Terminal, place: Path) -> bool:
    """The killed one's command may still be ending."""
    assert bare.sealpipe("run", "-e", "A=text:x", "--", "true").code == 0
    return left(place) == []


def test_what_only_looks_like_ours_is_left_alone(bare: Terminal, place: Path) -> None:
    precious = bare.here / "precious"
    precious.mkdir()
    (precious / "file").write_text("x")
    (place / ".sealpipe-run-link.values").symlink_to(precious)
    (place / ".sealpipe-run-file.values").write_text("x")
    for name in ("sealpipe-run-notes", ".sealpipe-run-notes", "other"):
        (place / name).mkdir(0o700)
    if os.geteuid() == 0:
        foreign = place / ".sealpipe-run-foreign.values"
        foreign.mkdir(0o700)
        os.chown(foreign, 12345, 12345)
    before = sorted(left(place))
    assert bare.sealpipe("run", "-e", "A=text:x", "--", "true").code == 0
    assert (sorted(left(place)), (precious / "file").read_text()) == (before, "x")


def test_a_value_that_does_not_fit_is_told_and_nothing_is_left(bare: Terminal, place: Path) -> None:
    line = f'ulimit -f 1; exec "{sys.executable}" -m sealpipe "$@"'
    bare.file("bundle.p12", b"x" * 100_000)
    done = bare.run(["sh", "-c", line, "sh", *WORDS, "true"])
    assert (done.code, left(place)) == (2, [])
    assert "the file for CERT cannot be written: File too large" in done.err


def test_it_is_gone_also_where_the_command_took_the_right_to_that(
    bare: Terminal, place: Path
) -> None:
    assert bare.sealpipe(*WORDS, "sh", "-c", "chmod 500 $(dirname $CERT)").code == 0
    assert left(place) == []


def test_a_signal_while_it_is_removed_does_not_stop_that(bare: Terminal, place: Path) -> None:
    script = "cd $(dirname $CERT); seq 30000 | xargs touch; echo ready >&2"
    process = started(bare, "sh", "-c", script, words=WORDS)
    assert process.stderr is not None
    process.stderr.readline()
    for _ in range(40):
        for number in (signal.SIGTERM, signal.SIGHUP):
            process.send_signal(number)
        time.sleep(0.005)
    process.communicate(timeout=PATIENCE)
    wait_until(lambda: _removed_by_another(bare, place))
    assert left(place) == []


@pytest.mark.parametrize("mode", [0o777, 0o770])
def test_a_place_in_which_others_can_rename_it_is_not_taken(
    bare: Terminal, place: Path, mode: int
) -> None:
    place.chmod(mode)
    done = bare.sealpipe(*WORDS, "sh", "-c", "cmp $CERT bundle.p12 && echo $CERT")
    assert (done.code, left(place)) == (0, [])
    assert not done.out.startswith(str(place))


@pytest.mark.usefixtures("place")
def test_a_large_value_is_there_at_once_and_its_beginning_is_redacted(bare: Terminal) -> None:
    large = os.urandom(8 * 1024 * 1024)
    bare.file("bundle.p12", large)
    bare.file("text.pem", "canary-line-0001\n" * 1000)
    words = ("run", "--file", "CERT=file:bundle.p12", "--file", "PEM=file:text.pem", "--")
    done = bare.sealpipe(*words, "sh", "-c", "cmp $CERT bundle.p12 && head -1 $PEM")
    assert (done.code, done.out) == (0, "***\n"), done
    assert "only its first 8 KiB are: CERT, PEM" in done.err


def test_names_are_refused_as_for_other_variables(bare: Terminal, place: Path) -> None:
    for words in (("--file", "LD_PRELOAD=file:x"), ("-e", "A=env:HOME", "--file", "A=env:HOME")):
        done = bare.sealpipe("run", *words, "--", "true")
        assert (done.code, left(place)) == (2, [])


def test_folders_made_while_others_are_removed_are_not_lost(place: Path) -> None:
    environ = {"XDG_RUNTIME_DIR": str(place)}
    is_over = threading.Event()

    def remove() -> None:
        while not is_over.is_set():
            remove_left_over(environ)

    removers = [threading.Thread(target=remove) for _ in range(2)]
    for each in removers:
        each.start()
    try:
        for _ in range(100):
            with make_files(environ, {"A": BINARY}) as made:
                path = Path(os.fsdecode(made.paths["A"]))
                assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (BINARY, 0o600)
    finally:
        is_over.set()
        for each in removers:
            each.join(PATIENCE)
    remove_left_over(environ)
    assert left(place) == []


# -- `--check` ------------------------------------------------------------------------------------

LINES = """
# DB=what-stood-here-once
# the database of staging
# (ask Ann)
DB=env:GIVEN

# no longer there
OLD=env:NOT_SET?optional=1
"""


def test_check_says_what_is_there_and_runs_nothing(bare: Terminal) -> None:
    bare.file("refs.env", LINES)
    words = ("run", "--check", "--env-file", "refs.env", "--file", "CERT=env:GIVEN")
    done = bare.sealpipe(*words, "--", "touch", "ran", GIVEN="canary-of-a-check")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == [
        "DB\tthere\tthe database of staging (ask Ann)",
        "OLD\tleft out\tno longer there",
        "CERT\tthere\t-",
    ]
    assert not (bare.here / "ran").exists()


def test_check_names_everything_that_cannot_be_read_and_ends_with_14(bare: Terminal) -> None:
    words = ("run", "--check", "-e", "A=env:GIVEN", "-e", "B=env:NOT_SET", "-e", "C=file:no")
    done = bare.sealpipe(*words, "--output", "json", GIVEN="canary-of-a-check")
    assert done.code == 14
    rows = done.json["variables"]
    assert [(row["name"], row["state"]) for row in rows] == [
        ("A", "there"),
        ("B", "unreadable"),
        ("C", "unreadable"),
    ]
    assert rows[1]["error"]["type"] == "SecretNotFoundError"
    assert "2 of 3 values cannot be read" in done.err
    assert "canary" not in done.out + done.err


@pytest.mark.skipif(sys.platform != "linux", reason="Linux's limit")
def test_check_finds_what_is_too_large_for_a_variable(bare: Terminal) -> None:
    bare.file("most", "x" * (128 * 1024 - len("A=") - 1))
    bare.file("more", "x" * (128 * 1024 - len("A=")))
    for name, code in (("most", 0), ("more", 2)):
        assert bare.sealpipe("run", "--check", "-e", f"A=file:{name}").code == code
        assert bare.sealpipe("run", "-e", f"A=file:{name}", "--", "true").code == code


def test_check_asks_the_policies_that_a_run_asks(bare: Terminal) -> None:
    audit = bare.here / "audit.jsonl"
    bare.file("policy.toml", f'[policy]\ntypes = ["text"]\n[audit]\nfile = "{audit}"\n')
    words = ("-e", "A=env:GIVEN", "--", "true")
    environ = {"SEALPIPE_CONFIG": "policy.toml", "GIVEN": "canary-of-a-check"}
    assert bare.sealpipe("run", *words, **environ).code == 2
    done = bare.sealpipe("run", "--check", *words, **environ)
    assert (done.code, done.out) == (2, "")
    assert len(audit.read_text().splitlines()) == 2


@pytest.mark.usefixtures("place")
def test_check_finds_what_no_variable_can_hold(bare: Terminal) -> None:
    done = bare.sealpipe("run", "--check", "-e", "A=file:bundle.p12")
    assert (done.code, done.out) == (2, "A\tunreadable\t-\n")
    assert bare.sealpipe("run", "--check", "--file", "A=file:bundle.p12").code == 0
