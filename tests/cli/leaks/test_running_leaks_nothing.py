"""What `sealpipe run` hands to a command is in that command's environment, and nowhere else; `read`
prints it once.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from cli.leaks.canaries import Canaries, leaks
from sealpipe_rehearsal.running_service import RunningService
from support.commands import SEALPIPE
from support.leaks import Detector
from support.terminal import PATIENCE, Terminal, readable
from support.typing_person import Person

VARIABLES = {"PEM": "file:secret.pem", "TOKEN": "file:passcode", "PIPED": "stdin:"}
RUN = ["run", *(word for name, ref in VARIABLES.items() for word in ("-e", f"{name}={ref}"))]

EVERY_KEY = "file:keys.json?format=json#*"


@pytest.fixture
def canaries(bare: Terminal, service: RunningService) -> Canaries:
    """Secrets in files and on stdin: none of them stands in the environment that sealpipe is
    started with.
    """
    made = Canaries(bare, service, service.base_url)
    bare.environ.pop("CANARY_ENV")
    bare.file("audit.toml", f'[audit]\nfile = "{bare.here}/audit.jsonl"\nrequired = true\n')
    bare.file("never.toml", f'[policy]\nsinks = []\n[audit]\nfile = "{bare.here}/audit.jsonl"\n')
    bare.file("program", b"\x7fELF nonsense", 0o700)
    return made


ENDS = {
    "it runs": (["--", "true"], {}, 0, 1),
    "as JSON": (["--output", "json", "--", "false"], {}, 1, 1),
    "without redaction": (["--no-redact", "--", "true"], {}, 0, 1),
    "with an audit log": (["--", "true"], {"SEALPIPE_CONFIG": "audit.toml"}, 0, 1),
    "in GitLab": (["--", "true"], {"GITLAB_CI": "true"}, 0, 1),
    "a signal ends it": (["--", "sh", "-c", "kill -9 $$"], {}, 137, 1),
    "another value is missing": (["-e", "FURTHER=env:NOT_SET", "--", "true"], {}, 14, 0),
    "several are missing": (
        ["-e", "FURTHER=env:NOT_SET", "-e", "X=file:no", "--", "true"],
        {},
        14,
        0,
    ),
    "a name is refused": (["-e", "PATH=file:secret.pem", "--", "true"], {}, 2, 0),
    "a policy refuses it": (["--", "true"], {"SEALPIPE_CONFIG": "never.toml"}, 2, 0),
    "there is no such command": (["--", "no-such-command"], {}, 2, 0),
    "the command is no program": (["--", "./program"], {}, 2, 1),
    "only a check": (["--check", "--", "true"], {}, 0, 0),
    "a check of what is missing": (["--check", "-e", "FURTHER=env:NOT_SET"], {}, 14, 0),
    "no value can be so large": (["-e", "LARGE=file:large", "--", "true"], {}, 2, 0),
}


@pytest.mark.parametrize("name", ENDS)
def test_secrets_are_in_the_environment_of_one_command_and_nowhere_else(
    canaries: Canaries, name: str
) -> None:
    words, environ, code, starts = ENDS[name]
    canaries.user.file("large", "x" * 200_000)
    watched = canaries.watch(*RUN, *words, environ=environ)
    assert watched.done.code == code, watched.done
    pem = canaries.user.here / "secret.pem"
    handed = {
        f"PEM={pem.read_text()}",
        f"TOKEN={canaries.values['passcode']}",
        f"PIPED={canaries.values['stdin']}",
    }
    given = {text.encode() for text in handed}
    assert [given & {*words} for words in watched.executed] == [given] * starts
    assert not any(word.startswith(b"SEALPIPE_") for words in watched.executed for word in words)
    watched.words = [
        (call, word) for call, word in watched.words if call != "execve" or word not in given
    ]
    assert leaks(canaries, watched, 0, None, None) == []


def test_each_key_of_a_document_is_in_the_environment_alone(canaries: Canaries) -> None:
    canaries.user.file("keys.json", json.dumps({"token": canaries.values["dotenv"]}))
    words = [word for name in ("APP", "TF") for word in ("-e", f"{name}_*={EVERY_KEY}")]
    watched = canaries.watch("run", *words, "--", "true")
    assert watched.done.code == 0, watched.done
    given = {f"{prefix}_TOKEN={canaries.values['dotenv']}".encode() for prefix in ("APP", "TF")}
    assert [given & {*words} for words in watched.executed] == [given]
    watched.words = [
        (call, word) for call, word in watched.words if call != "execve" or word not in given
    ]
    assert leaks(canaries, watched, 0, None, None) == []


def test_a_key_that_no_variable_may_have_leaks_nothing(canaries: Canaries) -> None:
    canaries.user.file("keys.json", json.dumps({"external-diff": canaries.values["dotenv"]}))
    watched = canaries.watch("run", "-e", f"GIT_*={EVERY_KEY}", "--", "true")
    assert watched.done.code == 2, watched.done
    assert "GIT_EXTERNAL_DIFF may not come from a store" in watched.done.err
    assert leaks(canaries, watched, 0, None, None) == []


def test_secrets_in_files_are_in_them_alone_and_they_are_gone(canaries: Canaries) -> None:
    files = [word for name, ref in VARIABLES.items() for word in ("--file", f"{name}={ref}")]
    words = ["run", *files, "--", "sh", "-c", 'cmp "$PEM" secret.pem && cmp "$TOKEN" passcode']
    place = canaries.user.here / "runtime"
    place.mkdir(0o700)
    watched = canaries.watch(*words, environ={"XDG_RUNTIME_DIR": str(place)})
    assert watched.done.code == 0, watched.done
    assert list(place.iterdir()) == []
    handed = {
        Path(name).name: bytes(watched.streams.pop(name))
        for name in [*watched.streams]
        if Path(name).parent.parent.name == place.name
    }
    assert handed == {
        "PEM": (canaries.user.here / "secret.pem").read_bytes(),
        "TOKEN": canaries.values["passcode"].encode(),
        "PIPED": canaries.values["stdin"].encode(),
    }
    assert leaks(canaries, watched, 0, None, None) == []


def test_what_is_encoded_for_a_file_is_in_it_alone(canaries: Canaries) -> None:
    data = canaries.values["passcode"].encode() + b"\xff"
    (canaries.user.here / "key.der").write_bytes(data)
    canaries.user.file("key.b64", b64encode(data).decode())
    place = canaries.user.here / "runtime"
    place.mkdir(0o700)
    words = ("--file", "KEY=file:key.der?encode=base64", "--", "sh", "-c", 'cmp "$KEY" key.b64')
    watched = canaries.watch("run", *words, environ={"XDG_RUNTIME_DIR": str(place)})
    assert watched.done.code == 0, watched.done
    files = [name for name in watched.streams if Path(name).parent.parent.name == place.name]
    assert [bytes(watched.streams.pop(name)) for name in files] == [b64encode(data)]
    assert leaks(canaries, watched, 0, None, None) == []


def visible() -> Iterator[tuple[int, bytes]]:
    """What other processes can be seen to have been started with: their words and environments."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            for name in ("cmdline", "environ"):
                try:
                    yield int(folder.name), (folder / name).read_bytes()
                except OSError:
                    continue


PRINTS = "import os; print(os.getpid(), flush=True); os.environ['PEM']; input()"


def own_part(canaries: Canaries) -> Detector:
    """Finds what no canary of another test has."""
    return Detector({name: canaries.values[name][:18].encode() for name in ("file", "passcode")})


def holders(canaries: Canaries) -> set[int]:
    detector = own_part(canaries)
    return {pid for pid, text in visible() if detector.find(text)}


WORDS = [*SEALPIPE, "run", "-e", "PEM=file:secret.pem", "-e", "TOKEN=file:passcode", "--"]


def test_only_the_command_is_seen_to_have_them(canaries: Canaries) -> None:
    user = canaries.user
    with subprocess.Popen(
        [*WORDS, sys.executable, "-c", PRINTS],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=user.environ, cwd=user.here,
    ) as process:  # fmt: skip
        assert process.stdout
        assert process.stdin
        assert readable([process.stdout], PATIENCE)
        pid = int(process.stdout.readline())
        assert holders(canaries) == {pid}
        process.communicate(b"\n", timeout=PATIENCE)
    assert process.returncode == 0


def test_only_the_command_is_seen_to_have_them_at_a_terminal(canaries: Canaries) -> None:
    user = canaries.user
    line = (
        f"exec {shlex.join([*WORDS, sys.executable, '-c', PRINTS])} </dev/tty >/dev/tty 2>/dev/tty"
    )
    with Person(["sh", "-c", line], user.environ, user.here) as who:
        who.waits_for("\n")
        pid = int(who.seen.split()[0])
        assert holders(canaries) == {pid}
        who.types("\r")
        assert who.done().code == 0


SAYS = """
import base64, html, json, os, sys, urllib.parse
value = os.environ["TOKEN"]
for spelled in (value, json.dumps(value), json.dumps(value, ensure_ascii=False),
                urllib.parse.quote(value, safe=""),
                urllib.parse.quote_plus(value), html.escape(value), value.encode().hex(),
                *(base64.b64encode(b"x" * n + value.encode()).decode() for n in range(3)),
                *(base64.urlsafe_b64encode(b"x" * n + value.encode()).decode() for n in range(3))):
    for stream in (sys.stdout, sys.stderr):
        half = len(spelled) // 2
        print(spelled[:half], end="", file=stream, flush=True)
        print(spelled[half:], file=stream, flush=True)
sys.exit(value)
"""


@pytest.mark.parametrize("environ", [{}, {"GITLAB_CI": "true"}], ids=["", "GitLab"])
def test_a_command_that_tells_its_secret_is_not_heard(
    canaries: Canaries, environ: dict[str, str]
) -> None:
    done = canaries.user.run([*WORDS, sys.executable, "-c", SAYS], environ=environ)
    detector = Detector({"TOKEN": canaries.values["passcode"].encode()})
    assert (done.code, detector.find((done.out + done.err).encode())) == (1, set()), done
    assert (done.out.count("***"), done.err.count("***")) == (13, 14)


def test_without_redaction_it_would_be_heard(canaries: Canaries) -> None:
    words = [*WORDS[:-1], "--no-redact", "--", sys.executable, "-c", SAYS]
    done = canaries.user.run(words)
    detector = Detector({"TOKEN": canaries.values["passcode"].encode()})
    assert detector.find(done.out.encode())
    assert detector.find(done.err.encode())


@pytest.mark.parametrize("words", [[], ["--print"]], ids=" ".join)
def test_a_value_that_is_read_is_on_stdout_and_nowhere_else(
    canaries: Canaries, words: Sequence[str]
) -> None:
    watched = canaries.watch(
        "read", "file:passcode", *words, environ={"CI": "true"} if words else {}
    )
    assert watched.done.code == 0, watched.done
    assert watched.executed == []
    assert leaks(canaries, watched, 0, canaries.values["passcode"], "stdout") == []


@pytest.mark.parametrize(
    "words", [["file:secret.pem"], ["file:no"], ["dotenv:prod.env"]], ids=" ".join
)
def test_what_is_not_printed_stands_nowhere(canaries: Canaries, words: Sequence[str]) -> None:
    watched = canaries.watch(
        "read", *words, environ={"CI": "true"} if words == ["file:secret.pem"] else {}
    )
    assert watched.done.code in (2, 14)
    assert leaks(canaries, watched, 0, None, None) == []


def test_a_command_that_is_killed_leaves_no_secret(canaries: Canaries) -> None:
    user = canaries.user
    with subprocess.Popen(
        [*WORDS, "sh", "-c", "echo ready; exec sleep 100"],
        stdout=subprocess.PIPE,
        env=user.environ,
        cwd=user.here,
    ) as process:
        assert process.stdout
        assert readable([process.stdout], PATIENCE)
        (child,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        process.kill()
        process.wait(PATIENCE)
        os.kill(int(child), signal.SIGKILL)
    detector = own_part(canaries)
    files = [path for path in user.home.parent.rglob("*") if path.is_file()]
    found = {path.name for path in files if detector.find(path.read_bytes())}
    assert found == {"secret.pem", "passcode"}, "where the user has them"
