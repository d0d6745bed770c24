"""Completion, typed into real shells: what they offer, and that no name on this machine runs or
breaks anything.
"""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from sealpipe.cli.commands import COMMANDS
from sealpipe.cli.completion import split_line
from sealpipe.state.receipt import Receipt
from support.parts import program
from support.terminal import PATIENCE, Terminal

CONFIG = """
[stores.prod-vault]
plugin = "vault"
[stores."$(touch ran)"]
plugin = "vault"
[checks.db-login]
argv = ["true"]
"""
HOSTILE = [
    "$(touch ran)",
    "`touch ran`",
    "a b",
    "a'b",
    'a"b',
    "a;touch ran",
    "a&b",
    "-x",
    "a\\b",
    "é",
    "a*",
    "a!b",
    "~",
    "#a",
]
"""Names that a shell would take for something else, if nobody quoted them."""
UNSPEAKABLE = ["a\nb", "a\x1b[31mb", "a\x07b", "a\u202eb", "a\rb"]
"""Names that no terminal should show."""


def receipt(terminal: Terminal, name: str) -> None:
    """A receipt in the working directory."""
    terminal.file(name, Receipt("AbC", "x", ()).dump())


def answer(terminal: Terminal, line: str, **environ: str | None) -> tuple[str, list[str]]:
    """What the scripts get: the kind, and the values."""
    done = terminal.sealpipe(_SEALPIPE_COMPLETE="zsh", _SEALPIPE_COMPLETE_LINE=line, **environ)
    assert (done.code, done.err) == (0, "")
    kind, *rows = done.out.splitlines()
    return kind, [row.partition("\t")[0] for row in rows]


# -- what is offered ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "kind", "offers"),
    [
        ("sealpipe sh", "words", ["share", "shares"]),
        ("sealpipe ", "words", list(COMMANDS)),
        ("sealpipe shares ", "words", ["expire", "list", "log", "show", "wait"]),
        ("sealpipe share --expires-", "words", ["--expires-in", "--expires-at"]),
        ("sealpipe share --custody ", "words", ["auto", "require", "off"]),
        ("sealpipe share --custody=re", "words", ["--custody=require"]),
        ("sealpipe share -f prod", "open", ["prod-vault:"]),
        (
            "sealpipe share -f 'Root password=pro",
            "open",
            ["Root password=prod-vault:", "Root password=prompt:"],
        ),
        ("sealpipe share prod", "open", ["prod-vault:"]),
        ("sealpipe copy DB=prod", "open", ["DB=prod-vault:"]),
        ("sealpipe copy text:x --to prod", "open", ["prod-vault:"]),
        ("sealpipe share env:A DB=dot", "open", ["DB=dotenv:"]),
        ("sealpipe share --field=DB=dot", "open", ["--field=DB=dotenv:"]),
        ("sealpipe share -f vault:", "open", []),
        ("sealpipe share --send sl", "open", ["slack:"]),
        ("sealpipe share --passcode-from gen", "open", ["gen:"]),
        ("sealpipe share --link-file ", "file", []),
        ("sealpipe collect x --dir ", "dir", []),
        ("sealpipe collect x --to git", "open", ["github-secret:", "gitlab-variable:"]),
        ("sealpipe collect x --key cr", "open", ["credential"]),
        ("sealpipe collect x --check ", "words", ["db-login"]),
        ("sealpipe doctor va", "words", ["vault"]),
        ("sealpipe completion ", "words", ["bash", "zsh", "fish"]),
        ("sealpipe audit verify ", "file", []),
        ("sealpipe no-such-command ", "words", []),
        ("sealpipe plugins --no-such-option ", "words", []),
        ("sealpipe --version ", "words", list(COMMANDS)),
        ("sealpipe plugins 'an open quote", "words", []),
        ("", "words", list(COMMANDS)),
    ],
)
def test_each_word_is_completed_by_what_belongs_there(
    bare: Terminal, line: str, kind: str, offers: list[str]
) -> None:
    config = str(bare.file("config.toml", CONFIG))
    assert answer(bare, line, SEALPIPE_CONFIG=config) == (kind, offers)


def state(terminal: Terminal) -> Path:
    return terminal.home / ".local/state/sealpipe"


def ledger(terminal: Terminal, number: int, code: str, folder: Path | None = None) -> None:
    """What this machine knows of a request."""
    place = (folder or state(terminal)) / "requests"
    place.mkdir(parents=True, exist_ok=True)
    head = {"schema": 1, "kind": "request", "base_url": "x", "short_code": code}
    (place / f"{number:032}.jsonl").write_text(json.dumps(head) + "\n")


def test_codes_receipts_and_entries_are_those_of_this_machine(bare: Terminal) -> None:
    receipt(bare, "acme.json")
    bare.file("package.json", '{"name": "no receipt"}')
    ledger(bare, 1, "AbC")
    outbox = state(bare) / "outbox"
    outbox.mkdir()
    for name in ("0123456789ab.sealed", "$(touch ran).sealed", "other.txt"):
        (outbox / name).write_bytes(b"")
    assert answer(bare, "sealpipe collect ") == ("names", ["AbC", "acme.json"])
    assert answer(bare, f"sealpipe collect {bare.here}/ac") == ("names", [f"{bare.here}/acme.json"])
    assert answer(bare, "sealpipe collect no-such") == ("file", [])
    assert answer(bare, "sealpipe requests show ") == ("words", ["AbC"])
    assert answer(bare, "sealpipe requests expire ") == ("names", ["AbC", "acme.json"])
    assert answer(bare, "sealpipe resume ") == ("words", ["0123456789ab"])
    assert answer(bare, "sealpipe resume 9") == ("words", [])


def test_what_this_machine_created_is_offered_by_its_kind(bare: Terminal) -> None:
    created = state(bare) / "created"
    for age, (kind, code) in enumerate(
        [("share", "New"), ("request", "Req"), ("share", "Old"), ("share", "New")]
    ):
        line = {
            "schema": 1,
            "kind": kind,
            "short_code": code,
            "name": f"its\x1b-{code}",
            "title": "x",
        }
        created.mkdir(parents=True, exist_ok=True)
        (created / f"{age}.json").write_text(json.dumps(line) + "\n")
        os.utime(created / f"{age}.json", (1000 - age, 1000 - age))
    ledger(bare, 1, "Req")
    ledger(bare, 2, "Theirs")
    bare.file("share.json", json.dumps({"schema": 1, "kind": "share", "short_code": "New"}))
    receipt(bare, "acme.json")
    assert answer(bare, "sealpipe shares show ") == ("words", ["New", "Old"])
    assert answer(bare, "sealpipe shares expire ") == ("names", ["New", "Old", "share.json"])
    assert set(answer(bare, "sealpipe requests show ")[1]) == {"Req", "Theirs"}
    assert set(answer(bare, "sealpipe requests remind ")[1]) == {"Req", "Theirs", "acme.json"}
    done = bare.sealpipe(_SEALPIPE_COMPLETE="zsh", _SEALPIPE_COMPLETE_LINE="sealpipe shares show N")
    assert done.out == "words\nNew\tits\\x1b-New\n"


def test_a_code_is_offered_as_plain_text_that_commands_understand(bare: Terminal) -> None:
    for number, code in enumerate(["AbC", "a/b", "$(touch ran)", "a b\n", "-dash", "\x1b[0m", "é"]):
        ledger(bare, number, code)
    (state(bare) / "requests/broken.jsonl").write_text("{")
    (state(bare) / "requests/other.jsonl").write_text('{"short_code": ["a"]}\n[]')
    os.mkfifo(state(bare) / "requests/pipe.jsonl")
    _, found = answer(bare, "sealpipe requests show ")
    assert set(found) == {"AbC", "a%2Fb", "%24%28touch%20ran%29", "a%20b%0A", "%1B%5B0m", "%C3%A9"}


def test_an_answer_reads_at_most_some_files(bare: Terminal) -> None:
    for number in range(500):
        ledger(bare, number, f"code{number}")
    assert len(answer(bare, "sealpipe requests show ")[1]) == 200


def test_the_state_directory_may_be_named_on_the_line(bare: Terminal, tmp_path: Path) -> None:
    ledger(bare, 1, "elsewhere", tmp_path / "other")
    line = f"sealpipe requests show --state-dir {tmp_path}/other "
    assert answer(bare, line) == ("words", ["elsewhere"])
    config = str(bare.file("config.toml", f'state_dir = "{tmp_path}/other"\n'))
    assert answer(bare, "sealpipe requests show ", SEALPIPE_CONFIG=config)[1]


def test_a_config_file_that_is_wrong_breaks_no_answer(bare: Terminal) -> None:
    for text in ("= broken", "stores = 5\n", "[stores]\na = 5\n", "checks = []\n"):
        config = str(bare.file("config.toml", text))
        for line in ("sealpipe share -f va", "sealpipe collect x --check ", "sealpipe doctor "):
            answer(bare, line, SEALPIPE_CONFIG=config)
        assert answer(bare, "sealpipe share -f va", SEALPIPE_CONFIG=config)[1] == ["vault:"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("a b", ["a", "b"]),
        ("a b ", ["a", "b", ""]),
        ("a 'b c", ["a", "b c"]),
        ('a "b c" d', ["a", "b c", "d"]),
        ("a b\\ c", ["a", "b c"]),
        ("a b\\", ["a", "b"]),
        ("a #b", ["a", "#b"]),
        ("a '' ", ["a", "", ""]),
        ("", [""]),
    ],
)
def test_a_line_is_split_as_a_shell_does(line: str, words: list[str]) -> None:
    assert split_line(line) == words


# -- what is not done -----------------------------------------------------------------------------


LINES = [
    "sealpipe ",
    "sealpipe share -f va",
    "sealpipe collect ",
    "sealpipe resume ",
    "sealpipe doctor ",
    "sealpipe x ",
]


@pytest.mark.parametrize("line", LINES)
def test_an_answer_loads_no_plugin_no_network_and_no_cryptography(
    bare: Terminal, line: str
) -> None:
    config = str(bare.file("config.toml", CONFIG))
    environ = {
        "_SEALPIPE_COMPLETE": "fish",
        "_SEALPIPE_COMPLETE_LINE": line,
        "SEALPIPE_CONFIG": config,
    }
    code = """if 1:
        import sys
        from sealpipe.cli.main import run
        run([])
        heavy = "cryptography httpcore httpx pluggy pydantic hvac botocore importlib.metadata"
        print([name for name in heavy.split() if name in sys.modules], file=sys.stderr)
        plugins = [name for name in sys.modules if name.startswith("sealpipe_plugins.")]
        print(plugins, file=sys.stderr)
    """
    done = bare.run([sys.executable, "-c", code], environ=environ)
    heavy, plugins = done.err.splitlines()
    assert heavy == "[]"
    assert set(json.loads(plugins.replace("'", '"'))) <= {
        f"sealpipe_plugins.{each}s" for each in ("source", "sink", "channel")
    }


def test_an_answer_does_not_read_the_credential(bare: Terminal) -> None:
    """One that is malformed, in a file that nobody can read, changes nothing."""
    file = str(bare.file("key", "c4nary", 0o000))
    for environ in (
        {"SEALPIPE_API_KEY": "c4nary"},
        {"SEALPIPE_API_KEY": None, "SEALPIPE_API_KEY_FILE": file},
    ):
        for line in LINES:
            done = bare.sealpipe(_SEALPIPE_COMPLETE="bash", _SEALPIPE_COMPLETE_LINE=line, **environ)
            assert (done.code, done.err, "c4nary" in done.out) == (0, "", False)


# -- typed into shells ----------------------------------------------------------------------------


class Shell:
    """A shell that somebody types into.

    `sealpipe` prints its arguments there; completion asks the real one.
    """

    READY = "READY>"
    START: Mapping[str, tuple[str, str]] = {
        "bash": (
            "--norc --noprofile -i",
            r"""bind 'set enable-bracketed-paste off'; bind 'set bell-style none'
            set +H; PS1='READ''Y>'
            sealpipe() { printf '<%s>' "$@"; echo; }; eval "$(command sealpipe completion bash)"
            """,
        ),
        "zsh": (
            "-f -i",
            r"""unset zle_bracketed_paste; setopt no_beep no_prompt_sp
            autoload -Uz compinit; compinit -u -D
            sealpipe() { printf '<%s>' "$@"; echo }; eval "$(command sealpipe completion zsh)"
            PS1='READ''Y>'
            """,
        ),
    }
    """How each begins: its words, and what is typed first."""

    def __init__(self, name: str, terminal: Terminal, **environ: str) -> None:
        words, start = self.START[name]
        ours, theirs = pty.openpty()
        self._process = subprocess.Popen(
            [program(name), *words.split()],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=terminal.with_environ({"TERM": "dumb", "COLUMNS": "500", **environ}),
            cwd=terminal.here,
            start_new_session=True,
        )
        os.close(theirs)
        self._ours = ours
        self._send("; ".join(map(str.strip, start.strip().splitlines())) + "\n")
        self._read_until(self.READY)

    def complete(self, line: str) -> list[str]:
        """Type a line, TAB and Enter; the arguments that the command then gets."""
        self._send(f"{line}\t")
        time.sleep(0.1)  # what follows in the same read could be taken for typing ahead
        self._send("\n")
        shown = self._read_until(self.READY)
        arguments = [row for row in shown.replace("\r", "\n").split("\n") if row.startswith("<")]
        return arguments[-1][1:-1].split("><") if arguments else []

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._ours)

    def _send(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def _read_until(self, text: str) -> str:
        shown, end = b"", time.monotonic() + PATIENCE
        while not shown.decode(errors="replace").rstrip().endswith(text):
            ready, _, _ = select.select([self._ours], [], [], max(0.0, end - time.monotonic()))
            assert ready, f"it did not come to {text}: {shown!r}"
            shown += os.read(self._ours, 65536)
        return shown.decode(errors="replace")


@pytest.fixture(params=["bash", "zsh"])
def shell(request: pytest.FixtureRequest, bare: Terminal) -> Iterator[Shell]:
    config = str(bare.file("config.toml", CONFIG))
    started = Shell(request.param, bare, SEALPIPE_CONFIG=config)
    yield started
    started.close()


def test_a_shell_completes_the_word_under_the_cursor(shell: Shell) -> None:
    for line, becomes in (
        ("sealpipe share --expires-i", ["share", "--expires-in"]),
        ("sealpipe share -f prod-", ["share", "-f", "prod-vault:"]),
        ("sealpipe share -f DB=prod-", ["share", "-f", "DB=prod-vault:"]),
        ("sealpipe share --field=DB=prod-", ["share", "--field=DB=prod-vault:"]),
        ("sealpipe share -f Root\\ password=prod-", ["share", "-f", "Root password=prod-vault:"]),
        ("sealpipe share -f vault:se", ["share", "-f", "vault:se"]),
        (
            "sealpipe collect --to file:x --to github-",
            ["collect", "--to", "file:x", "--to", "github-secret:"],
        ),
        ("sealpipe share --custody re", ["share", "--custody", "require"]),
        ("sealpipe collect x --check d", ["collect", "x", "--check", "db-login"]),
    ):
        assert shell.complete(line) == becomes, line


def test_a_receipt_with_a_hostile_name_arrives_as_its_name(shell: Shell, bare: Terminal) -> None:
    for name in HOSTILE:
        receipt(bare, f"r{name}.json")
        assert shell.complete("sealpipe collect r") == ["collect", f"r{name}.json"]
        (bare.here / f"r{name}.json").unlink()
        assert not (bare.here / "ran").exists()


def test_what_no_terminal_should_show_is_not_offered(bare: Terminal) -> None:
    for name in UNSPEAKABLE:
        receipt(bare, f"q{name}.json")
    assert answer(bare, "sealpipe collect q") == ("names", [])


def test_a_code_is_completed_from_the_ledger(shell: Shell, bare: Terminal) -> None:
    ledger(bare, 1, "Unique-c0de$(touch ran)")
    assert shell.complete("sealpipe requests expire Uni") == [
        "requests",
        "expire",
        "Unique-c0de%24%28touch%20ran%29",
    ]
    assert shell.complete("sealpipe collect Uni") == ["collect", "Unique-c0de%24%28touch%20ran%29"]
    assert not (bare.here / "ran").exists()


def test_a_program_that_is_only_typed_is_not_run(shell: Shell, bare: Terminal) -> None:
    bare.file("sealpipe", "#!/bin/sh\ntouch ran\n", 0o700)
    for line in ("./sealpipe sh", f"{bare.here}/sealpipe sh"):
        shell._send(f"{line}\t")
        time.sleep(0.5)
        assert not (bare.here / "ran").exists()
        shell._send("\x15\n")
        shell._read_until(Shell.READY)


def fish(terminal: Terminal, line: str, **environ: str) -> list[str]:
    """What fish offers for a line."""
    ask_it = "sealpipe completion fish | source; complete --do-complete $argv[1]"
    done = terminal.run([program("fish"), "--no-config", "-c", ask_it, line], environ=environ)
    assert (done.code, done.err) == (0, "")
    return [row.partition("\t")[0] for row in done.out.splitlines()]


@pytest.mark.parametrize(
    ("line", "offers"),
    [
        ("sealpipe sh", ["share", "shares"]),
        ("sealpipe share --expires-", ["--expires-in", "--expires-at"]),
        ("sealpipe share -f DB=prod-", ["DB=prod-vault:"]),
        ("sealpipe share --custody r", ["require"]),
        ("sealpipe collect x --check d", ["db-login"]),
    ],
)
def test_fish_completes_the_word_under_the_cursor(
    bare: Terminal, line: str, offers: list[str]
) -> None:
    config = str(bare.file("config.toml", CONFIG))
    assert fish(bare, line, SEALPIPE_CONFIG=config) == offers


def test_fish_offers_hostile_names_as_they_are_and_runs_none(bare: Terminal) -> None:
    for name in (*HOSTILE, *UNSPEAKABLE):
        receipt(bare, f"r{name}.json")
    ledger(bare, 1, "r$(touch ran)")
    assert set(fish(bare, "sealpipe collect r")) == {
        *(f"r{name}.json" for name in HOSTILE),
        "r%24%28touch%20ran%29",
    }
    assert not (bare.here / "ran").exists()
