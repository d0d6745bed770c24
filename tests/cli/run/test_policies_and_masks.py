"""`sealpipe run` and `read` ask policies, are in the audit log, and mask before anything can be
printed.
"""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from support.commands import SEALPIPE
from support.terminal import PATIENCE, Terminal

VALUE = "canary-of-a-policy"


@pytest.fixture(autouse=True)
def _script(bare: Terminal) -> None:
    """A source, `exec:script`, that leaves a trace if it is read."""
    script = bare.file("script", f"#!/bin/sh\ntouch {bare.here}/read\nprintf %s {VALUE}\n", 0o700)
    bare.environ["SEALPIPE_CONFIG"] = str(bare.file("config.toml", COMMAND.format(script)))


COMMAND = '[plugins.exec.commands.script]\nargv = ["{}"]\n'


def allow(user: Terminal, rules: str) -> None:
    """Add a policy and an audit log."""
    before = (user.here / "config.toml").read_text()
    user.file(
        "config.toml", f'{before}[policy]\n{rules}\n[audit]\nfile = "{user.here}/audit.jsonl"\n'
    )


def audit(user: Terminal) -> list[dict[str, Any]]:
    text = (user.here / "audit.jsonl").read_text()
    assert VALUE not in text
    return [json.loads(line) for line in text.splitlines()]


def test_the_audit_log_has_names_sources_and_the_exit_code(bare: Terminal) -> None:
    words = ("run", "-e", "SECRET=exec:script", "-e", "WHO=text:ada", "--", "sh", "-c", "exit 7")
    allow(bare, 'actions = ["run"]')
    done = bare.sealpipe(*words)
    assert done.code == 7
    assert done.err.startswith("audit: ")
    began, ended = audit(bare)
    seen = {
        "event": "run",
        "labels": ["SECRET", "WHO"],
        "sources": ["exec/exec", "text/text"],
        "sinks": ["command/command"],
    }
    assert began.items() >= {**seen, "outcome": "begun"}.items()
    assert ended.items() >= {**seen, "outcome": "done", "exit_code": 7}.items()


def test_the_audit_log_has_what_was_read(bare: Terminal) -> None:
    allow(bare, 'actions = ["read"]')
    done = bare.sealpipe("read", "exec:script")
    assert (done.code, done.out) == (0, VALUE)
    seen = {"event": "read", "sources": ["exec/exec"], "sinks": ["stdout/stdout"]}
    assert [each.items() >= seen.items() for each in audit(bare)] == [True, True]


@pytest.mark.parametrize("rule", ["sinks = []", 'sources = ["env"]', 'actions = ["share"]'])
@pytest.mark.parametrize("command", ["run", "read"])
def test_a_policy_refuses_before_anything_is_read(bare: Terminal, rule: str, command: str) -> None:
    words = {
        "run": ("-e", "SECRET=exec:script", "--", "touch", "started"),
        "read": ("exec:script",),
    }
    allow(bare, rule)
    done = bare.sealpipe(command, *words[command])
    assert (done.code, done.out) == (2, "")
    assert "is not allowed" in done.err
    assert not (bare.here / "read").exists()
    assert not (bare.here / "started").exists()
    assert [each["outcome"] for each in audit(bare)] == ["refused"]


def test_a_policy_may_name_the_types_of_values(bare: Terminal) -> None:
    words = ("run", "-e", "A=text:x", "--", "touch", "started")
    allow(bare, 'types = ["password"]')
    assert bare.sealpipe(*words).code == 2
    assert not (bare.here / "started").exists()
    text = (bare.here / "config.toml").read_text()
    bare.file("config.toml", text.replace("password", "text"))
    assert bare.sealpipe(*words).code == 0


def test_a_failed_command_is_in_the_audit_log(bare: Terminal) -> None:
    bare.file("program", b"\x7fELF nonsense", 0o700)
    allow(bare, "most_views = 1")
    assert bare.sealpipe("run", "-e", "A=exec:script", "--", "./program").code == 2
    assert [each["outcome"] for each in audit(bare)] == ["begun", "UsageError"]


# -- masks --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("environ", "mask"),
    [({"GITHUB_ACTIONS": "true"}, "::add-mask::"), ({"TF_BUILD": "True"}, "##vso[task.setsecret]")],
)
def test_masks_come_before_the_command(bare: Terminal, environ: dict[str, str], mask: str) -> None:
    done = bare.run(
        [*SEALPIPE, "run", "-e", "A=exec:script", "--", "sh", "-c", "echo begun $A >&2; echo $A"],
        environ=environ,
    )
    assert (done.code, done.out) == (0, "***\n"), done
    assert done.err == f"{mask}{VALUE}\nbegun ***\n"


def test_only_secrets_are_masked(bare: Terminal) -> None:
    done = bare.sealpipe(
        "run", "-e", "A=text:deploy", "--", "sh", "-c", "echo $A", GITHUB_ACTIONS="true"
    )
    assert (done.out, done.err) == ("deploy\n", "")


@pytest.mark.parametrize(
    ("sign", "title"), [("GITHUB_ACTIONS", "GitHub Actions"), ("BUILDKITE", "Buildkite")]
)
def test_a_value_that_is_no_text_is_told_as_not_masked(
    bare: Terminal, sign: str, title: str
) -> None:
    bare.file("value", b"\xff\xfe" + VALUE.encode())
    done = bare.sealpipe("run", "-e", "A=file:value", "--", "sh", "-c", "echo $A", **{sign: "true"})
    assert done.out == "***\n"
    assert done.err == f"sealpipe: not UTF-8 text, so {title} cannot mask it: A\n"


@pytest.mark.parametrize("words", [[], ["--no-redact"]], ids=" ".join)
def test_masks_are_never_written_to_a_file(bare: Terminal, words: list[str]) -> None:
    """Without redaction they are the only protection: then nothing is read."""
    environ = bare.with_environ({"GITHUB_ACTIONS": "true"})
    with (bare.here / "errors").open("wb") as errors:
        done = subprocess.run(
            [*SEALPIPE, "run", *words, "-e", "A=exec:script", "--", "sh", "-c", "echo $A"],
            stdout=subprocess.PIPE, stderr=errors, env=environ, cwd=bare.here, timeout=PATIENCE,
            check=False,
        )  # fmt: skip
    told = (bare.here / "errors").read_text()
    assert VALUE not in told
    assert (done.returncode, done.stdout) == ((2, b"") if words else (0, b"***\n"))
    assert (bare.here / "read").exists() != bool(words)
    assert ("--no-redact: the output cannot be masked" in told) == bool(words)


def test_without_redaction_the_masks_hold(bare: Terminal) -> None:
    words = ("run", "--no-redact", "-e", "A=exec:script", "--", "sh", "-c", "echo $A")
    done = bare.sealpipe(*words, GITHUB_ACTIONS="true")
    assert (done.code, done.out, done.err) == (0, f"{VALUE}\n", f"::add-mask::{VALUE}\n")


def test_a_value_that_is_no_text_is_read_as_base64_in_json(bare: Terminal) -> None:
    bare.file("value", b"\xff\0\n")
    assert bare.run([*SEALPIPE, "read", "file:value", "--output", "json"]).json["value"] == "/wAK"
    done = subprocess.run(
        [*SEALPIPE, "read", "file:value"],
        env=bare.environ,
        cwd=bare.here,
        capture_output=True,
        timeout=PATIENCE,
        check=True,
    )
    assert done.stdout == b"\xff\0\n"


def test_a_value_that_is_no_text_is_read_and_told_as_not_masked(bare: Terminal) -> None:
    bare.file("value", b"\xff\0\n")
    words = [*SEALPIPE, "read", "file:value", "--print"]
    environ = bare.with_environ({"GITHUB_ACTIONS": "true"})
    done = subprocess.run(
        words, env=environ, cwd=bare.here, capture_output=True, timeout=PATIENCE, check=True
    )
    assert done.stdout == b"\xff\0\n"
    assert done.stderr == b"sealpipe: not UTF-8 text, so GitHub Actions cannot mask it: REF\n"


@pytest.mark.parametrize(
    "words", [("run", "-e", "A=exec:script", "--", "true"), ("read", "exec:script", "--print")]
)
def test_nothing_is_read_where_the_ci_system_cannot_be_used(
    bare: Terminal, words: tuple[str, ...]
) -> None:
    done = bare.sealpipe(*words, GITLAB_CI="true", SEALPIPE_PLUGIN_GITLAB__NONSENSE="x")
    assert (done.code, done.out) == (2, "")
    assert "nonsense" in done.err.lower()
    assert not (bare.here / "read").exists()
