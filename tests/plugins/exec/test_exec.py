"""exec:NAME: programs that the config file names, and nothing else."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from sealpipe.errors import (
    NotConfiguredError,
    PayloadTooLargeError,
    PluginError,
    ReferenceSyntaxError,
    ReferenceValueError,
    SecretNotFoundError,
    SettingError,
)
from sealpipe.reference import parse_field
from sealpipe.registry import Registry
from sealpipe.sources.resolve import resolve
from sealpipe.wire.fields import Field
from sealpipe_plugins.local.exec_source import ExecSettings
from sealpipe_plugins.program import run_program
from support.backends import opened
from support.parts import ROOT

CANARY = "Canary-7d31"


def named(**commands: Mapping[str, Any]) -> dict[str, Any]:
    """A config file that names commands."""
    return {"plugins": {"exec": {"commands": commands}}}


def fetched(
    *texts: str, config: Mapping[str, Any], environ: Mapping[str, str] | None = None
) -> list[Field]:
    """What references give by a config file."""
    registry = Registry(environ=os.environ if environ is None else environ, config=lambda: config)
    fields: list[Field] = resolve([parse_field(text) for text in texts], lambda: registry)
    return fields


def python(code: str, *words: str) -> list[str]:
    """argv of a program."""
    return [sys.executable, "-I", "-c", code, *words]


def test_the_page_has_the_default_timeout() -> None:
    page = (ROOT / "docs/products/exec.md").read_text(encoding="utf-8")
    assert f"`timeout` of `[plugins.exec]`, {ExecSettings().timeout:g} |" in page


@pytest.mark.parametrize("data", [b"x", b" a\r\n\xef\xbb\xbf\x00 ", "é\n".encode() * 200_000])
def test_what_a_command_writes_is_taken_exactly(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(data)
    (field,) = fetched(
        "Key=exec:show", config=named(show={"argv": ["cat", str(tmp_path / "data")]})
    )
    assert (field.key, opened(field)) == ("Key", data)


def test_a_selector_takes_from_what_a_command_writes() -> None:
    config = named(db={"argv": ["echo", '{"user": "app", "password": "hunter2"}']})
    fields = fetched("exec:db?format=json#user,Word=password", config=config)
    assert [(field.key, opened(field)) for field in fields] == [
        ("user", b"app"),
        ("Word", b"hunter2"),
    ]


def test_a_named_store_has_commands_of_its_own() -> None:
    config = {
        "stores": {
            "vendor": {"plugin": "exec", "commands": {"key": {"argv": ["echo", "of the vendor"]}}}
        }
    }
    assert opened(fetched("vendor:key", config=config)[0]) == b"of the vendor\n"
    with pytest.raises(NotConfiguredError, match="it has none"):
        fetched("exec:key", config=config)


def test_a_named_store_without_commands_is_told_its_own_table() -> None:
    config = {"stores": {"plugins.dev": {"plugin": "exec"}}}
    with pytest.raises(NotConfiguredError) as told:
        fetched("plugins.dev:key", config=config)
    assert "[stores.plugins.dev.commands.NAME]" in f"{told.value.message} {told.value.remedy}"


HOSTILE = [
    "a b",
    "$(touch made)",
    "`touch made`",
    "; touch made",
    "a'b\"c",
    "*",
    "~",
    "x --flag",
    "{arg}",
    "é",
]


@pytest.mark.parametrize("value", HOSTILE)
def test_an_argument_is_one_word_of_data(
    value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    show = python("import sys; print(repr(sys.argv[1:]))", "--name={arg}", "{arg}", "{other}")
    (field,) = fetched(f"exec:show?arg={value}", config=named(show={"argv": show}))
    assert opened(field).decode() == f"{[f'--name={value}', value, '{other}']!r}\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("exec:show?arg=-n", "begins with a dash"),
        ("exec:show?arg=--help", "begins with a dash"),
        ("exec:show?arg=", "is empty"),
        ("exec:show", "needs an argument"),
        ("exec:plain?arg=x", "takes no argument"),
        ("exec:fixed?arg=prod/../dev", "not allowed by the config file"),
        ("exec:fixed?arg=prod/db and more", "not allowed by the config file"),
    ],
)
def test_arguments_that_a_command_does_not_take(text: str, why: str) -> None:
    config = named(
        show={"argv": ["echo", "{arg}"]},
        plain={"argv": ["echo", "x"]},
        fixed={"argv": ["echo", "{arg}"], "arg_pattern": "prod/[a-z]+"},
    )
    with pytest.raises(ReferenceValueError, match=why) as caught:
        fetched(text, config=config)
    assert caught.value.exit_code == 2
    assert caught.value.remedy


def test_the_config_may_allow_a_dash_and_a_pattern() -> None:
    config = named(
        dash={"argv": ["echo", "{arg}"], "allow_dash": True},
        fixed={"argv": ["echo", "{arg}"], "arg_pattern": "prod/[a-z]+"},
    )
    fields = fetched("exec:dash?arg=-x", "exec:fixed?arg=prod/db", config=config)
    assert [opened(field) for field in fields] == [b"-x\n", b"prod/db\n"]


def test_a_control_character_never_gets_there() -> None:
    with pytest.raises(ReferenceSyntaxError, match="control character"):
        fetched("exec:show?arg=a\nb", config=named(show={"argv": ["echo", "{arg}"]}))


@pytest.mark.parametrize("body", ["echo hunter2", "/bin/echo", "shw", "", "../show", "show x"])
def test_a_reference_never_says_what_is_started(body: str) -> None:
    with pytest.raises(ReferenceValueError, match="has no such command") as caught:
        fetched(f"exec:{body}", config=named(show={"argv": ["echo", "x"]}))
    assert caught.value.remedy == "write exec:NAME; the commands are show"
    assert "hunter2" not in repr(vars(caught.value))


def test_without_commands_the_error_says_where_they_are_named() -> None:
    with pytest.raises(NotConfiguredError, match="only commands from the config file") as caught:
        fetched("exec:show", config={})
    assert "[plugins.exec.commands.NAME]" in caught.value.remedy


@pytest.mark.parametrize(
    "variable",
    [
        "SEALPIPE_PLUGIN_EXEC__COMMANDS",
        "SEALPIPE_PLUGIN_EXEC__COMMANDS__SHOW__ARGV",
        "SEALPIPE_PLUGIN_EXEC__COMMANDS__NEW__ARGV__0",
    ],
)
def test_the_environment_names_no_commands(variable: str) -> None:
    environ = {**os.environ, variable: '{"show": {"argv": ["echo", "theirs"]}}'}
    with pytest.raises(SettingError, match="the environment cannot set exec's commands") as caught:
        fetched("exec:show", config=named(show={"argv": ["echo", "ours"]}), environ=environ)
    assert "theirs" not in f"{caught.value} {caught.value.remedy}"


def test_nor_does_it_for_a_named_store() -> None:
    environ = {
        **os.environ,
        "SEALPIPE_STORE__MINE__PLUGIN": "exec",
        "SEALPIPE_STORE__MINE__COMMANDS": '{"show": {"argv": ["echo", "theirs"]}}',
    }
    with pytest.raises(SettingError, match="the environment cannot set mine's commands"):
        fetched("mine:show", config={}, environ=environ)


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ({"argv": "echo x"}, r"plugins.exec.commands.show.argv cannot be used"),
        ({"argv": []}, r"plugins.exec.commands.show.argv cannot be used"),
        ({}, r"plugins.exec.commands.show.argv is missing"),
        ({"argv": ["echo"], "shell": True}, r"plugins.exec.commands.show.shell does not exist"),
        ({"argv": ["echo"], "arg_pattern": "("}, r"arg_pattern cannot be used"),
        ({"argv": ["echo"], "timeout": 0}, r"timeout cannot be used"),
    ],
)
def test_a_command_that_is_written_wrongly_is_named(command: dict[str, Any], why: str) -> None:
    with pytest.raises(SettingError, match=why) as caught:
        fetched("exec:show", config=named(show=command))
    assert caught.value.remedy == "correct it there"


@pytest.mark.parametrize("argv", [["{arg}"], ["", "x"], ["/bin/{arg}"], ["echo", "\0"]])
def test_an_argument_is_never_the_program(argv: list[str]) -> None:
    with pytest.raises(NotConfiguredError, match="the first word of argv is its path"):
        fetched("exec:show?arg=sh", config=named(show={"argv": argv}))


def test_a_program_beside_the_checkout_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "getpw").write_text("#!/bin/sh\necho theirs\n")
    (tmp_path / "getpw").chmod(0o755)
    for path in (".", "", f":{os.defpath}"):
        with pytest.raises(NotConfiguredError, match="getpw is not on PATH") as caught:
            fetched("exec:show", config=named(show={"argv": ["getpw"]}), environ={"PATH": path})
        assert "show" in caught.value.remedy
    with pytest.raises(NotConfiguredError):
        fetched("exec:show", config=named(show={"argv": ["./getpw"]}))


def test_each_failure_reads_differently_and_shows_no_data(tmp_path: Path) -> None:
    complain = f"import sys, os; sys.stderr.write({CANARY!r}); print({CANARY!r}); "
    (tmp_path / "text").write_text("no program")
    (tmp_path / "text").chmod(0o755)
    config = named(
        three={"argv": python(complain + "sys.stdout.flush(); sys.exit(3)")},
        killed={"argv": python(complain + "sys.stdout.flush(); os.kill(os.getpid(), 15)")},
        nothing={"argv": ["true"]},
        slow={"argv": ["sleep", "60"], "timeout": 0.2},
        text={"argv": [str(tmp_path / "text")]},
        gone={"argv": [str(tmp_path / "gone")]},
    )
    expected = {
        "three": (PluginError, "the command three ended with status 3"),
        "killed": (PluginError, "the command killed was killed by signal 15"),
        "nothing": (SecretNotFoundError, "exec:nothing is empty"),
        "slow": (PluginError, "the command slow did not finish within 0.2 s and was killed"),
        "text": (NotConfiguredError, "the command text cannot be started: Exec format error"),
        "gone": (NotConfiguredError, f"the program {tmp_path}/gone is not on PATH"),
    }
    for name, (kind, message) in expected.items():
        with pytest.raises(kind) as caught:
            fetched(f"exec:{name}", config=config)
        error = caught.value
        assert type(error) is kind
        assert (error.message, error.locator) == (message, f"exec:{name}")
        assert error.remedy
        assert CANARY not in repr(vars(error))
        assert (error.__cause__, error.__context__) == (None, None)
    with pytest.raises(PluginError) as caught:
        fetched("exec:three", config=config)
    assert "(11 bytes, not shown here)" in caught.value.remedy


def test_a_command_that_hangs_is_killed_with_its_children(tmp_path: Path) -> None:
    child = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(60)"
    parent = (
        f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}, sys.argv[1]])"
    )
    command = {"argv": python(parent, str(tmp_path / "pid")), "timeout": 2}
    with pytest.raises(PluginError, match="was killed"):
        fetched("exec:hang", config=named(hang=command))
    pid = int((tmp_path / "pid").read_text())
    end = time.monotonic() + 10
    while _runs(pid) and time.monotonic() < end:
        os.sched_yield()
    assert not _runs(pid)


def _runs(pid: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False


def test_a_command_without_end_is_stopped_at_16_mib() -> None:
    with pytest.raises(PayloadTooLargeError, match="the command yes wrote more than 16 MiB"):
        fetched("exec:yes", config=named(yes={"argv": ["yes"]}))


def test_much_on_stderr_holds_nothing_up() -> None:
    code = (
        "import sys; sys.stderr.write('e' * 3_000_000); print('out'); sys.stdout.flush(); "
        "sys.stderr.write('f' * 9)"
    )
    assert opened(fetched("exec:loud", config=named(loud={"argv": python(code)}))[0]) == b"out\n"
    done = run_program(python(code), "loud", environ={}, timeout=60)
    assert (len(done.errors), done.errors_length) == (64 * 1024, 3_000_009)


def test_a_command_gets_no_input_no_terminal_and_nothing_of_ours() -> None:
    code = """
import json, os, sys
try:
    terminal = os.open("/dev/tty", os.O_RDWR)
except OSError:
    terminal = None
print(json.dumps({"stdin": sys.stdin.read(), "terminal": terminal, "environ": dict(os.environ)}))
"""
    ours = {
        "SEALPIPE_API_KEY": CANARY,
        "SEALPIPE_PLUGIN_VAULT__TOKEN": CANARY,
        "SEALPIPE_ANYTHING": CANARY,
    }
    environ = {"PATH": os.environ["PATH"], "KEPT": "yes", **ours}
    (field,) = fetched("exec:tell", config=named(tell={"argv": python(code)}), environ=environ)
    told = json.loads(opened(field))
    assert (told["stdin"], told["terminal"]) == ("", None)
    assert told["environ"].keys() - {"LC_CTYPE"} == {"PATH", "KEPT"}


def test_two_mentions_start_a_command_once(tmp_path: Path) -> None:
    count = python(
        'import sys; open(sys.argv[1], \'a\').write(\'x\'); print(\'{"a": "1", "b": "2"}\')',
        str(tmp_path / "n"),
    )
    fields = fetched(
        "exec:c?format=json#a", "exec:c?format=json#b", config=named(c={"argv": count})
    )
    assert [opened(field) for field in fields] == [b"1", b"2"]
    assert (tmp_path / "n").read_text() == "x"


def test_doctor_looks_for_the_programs_and_starts_none(tmp_path: Path) -> None:
    touch = {"argv": ["touch", str(tmp_path / "made")]}
    good = Registry(config=lambda: named(touch=touch)).check("source", "exec")
    bad = Registry(config=lambda: named(touch=touch, gone={"argv": ["/no/such"]})).check(
        "source", "exec"
    )
    none = Registry(config=dict).check("source", "exec")
    assert (good.ok, good.detail) == (True, "touch")
    assert (bad.ok, bad.detail) == (False, "gone: the program /no/such is not on PATH")
    assert not none.ok
    assert "[plugins.exec.commands.NAME]" in none.detail
    assert not (tmp_path / "made").exists()
