"""An assistant runs a command with secrets: it learns the exit code and the redacted output, and
nothing is left.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from support.job import Job
from support.terminal import ends

VALUE = "canary-of-a-tools-command"


@pytest.fixture
def assistant(connect: Any, job: Job, monkeypatch: pytest.MonkeyPatch) -> Any:
    for name in ("SEALPIPE_API_KEY", "SEALPIPE_API_KEY_PREVIOUS"):
        monkeypatch.setenv(name, job.api_key)
    monkeypatch.setenv("GIVEN", VALUE)
    return connect()


def ran(assistant: Any, *command: str, seconds: int = 60, reference: str = "env:GIVEN") -> Any:
    return assistant.call(
        "run_with_secrets", command=command, environment={"TOKEN": reference}, seconds=seconds
    )


def python(assistant: Any, script: str) -> Any:
    return ran(assistant, sys.executable, "-Ic", script)


@pytest.mark.parametrize("reference", ["env:GIVEN", "dotenv:{here}/.env#TOKEN"])
def test_it_returns_the_exit_code_and_redacted_output(
    assistant: Any, tmp_path: Path, reference: str
) -> None:
    (tmp_path / ".env").write_text(f"TOKEN={VALUE}\n")
    script = 'echo "token: $TOKEN"; echo "$TOKEN" | base64 >&2; exit 3'
    done = ran(assistant, "sh", "-c", script, reference=reference.format(here=tmp_path))
    assert done == {
        "exit_code": 3,
        "ended": "exited",
        "stdout": {"untrusted": "token: ***\n"},
        "stderr": {"untrusted": "***\n"},
        "truncated": False,
    }
    assert VALUE not in "".join(assistant.received)


def test_the_command_gets_the_environment_without_the_credential(assistant: Any) -> None:
    done = python(assistant, "import json, os; print(json.dumps(sorted(os.environ)))")
    names = json.loads(done["stdout"]["untrusted"])
    ours = {name for name in os.environ if not name.startswith("SEALPIPE_")}
    assert set(names) == ours | {"TOKEN"}


@pytest.mark.parametrize("folder", [".", "", "bin"])
def test_no_program_of_the_working_directory_is_run(
    assistant: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    for place in (tmp_path, tmp_path / "bin"):
        place.mkdir(exist_ok=True)
        (place / "true").write_text("#!/bin/sh\necho hijacked\n")
        (place / "true").chmod(0o700)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    assert ran(assistant, "true")["stdout"] == {"untrusted": ""}
    assert ran(assistant, "sh", "-c", "env true")["stdout"] == {"untrusted": ""}


def test_there_is_no_shell_and_no_input(assistant: Any) -> None:
    assert ran(assistant, "echo", "$TOKEN; ls $(id)")["stdout"] == {
        "untrusted": "$TOKEN; ls $(id)\n"
    }
    assert ran(assistant, "cat")["stdout"] == {"untrusted": ""}


def test_output_is_harmless_and_limited(assistant: Any) -> None:
    done = python(assistant, r"print('\x1b[31m<b>\u202e', 'x' * 30_000, 'the end')")
    text = done["stdout"]["untrusted"]
    assert done["truncated"]
    assert text.startswith(r"\u{1b}[31m\u{3c}b>\u{202e} xxx")
    assert text.endswith("xxx the end\n")
    assert len(text) <= 10_010


def test_it_ends_at_its_time_limit(assistant: Any) -> None:
    done = ran(assistant, "sleep", "600", seconds=1)
    assert (done["ended"], done["exit_code"]) == ("timeout", 143)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_cancelled_call_ends_its_command(
    assistant: Any, connect: Any, tmp_path: Path, mode: str
) -> None:
    assistant = connect(mode)
    note = tmp_path / "pid"
    command = ["sh", "-c", f"sleep 600 & echo $! $$ > {note}.new; mv {note}.new {note}; wait"]

    async def cancel() -> None:
        async with anyio.create_task_group() as group:
            arguments = {"command": command, "environment": {"TOKEN": "env:GIVEN"}}
            group.start_soon(assistant.client.call_tool, "run_with_secrets", arguments)
            while not note.exists():
                await anyio.sleep(0.02)
            group.cancel_scope.cancel()

    assistant.portal.call(cancel)
    assert all(ends(int(pid)) for pid in note.read_text().split())
    assert ran(assistant, "true")["exit_code"] == 0


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"command": []}, "UsageError"),
        ({"command": ["no-such-program"]}, "UsageError"),
        ({"command": ["a\0b"]}, "UsageError"),
        ({"command": "ls"}, "UsageError"),
        ({"environment": {}}, "UsageError"),
        ({"environment": {"LD_PRELOAD": "env:GIVEN"}}, "UsageError"),
        ({"environment": {"SEALPIPE_API_KEY": "env:GIVEN"}}, "UsageError"),
        ({"environment": {"A=B": "env:GIVEN"}}, "UsageError"),
        ({"environment": {"A": VALUE}}, "ReferenceSyntaxError"),
        ({"environment": {"A": "env:NOT_SET"}}, "SecretNotFoundError"),
        ({"environment": {"A": "env:SHORT"}}, "UsageError"),
        ({"environment": {"A": "env:SEALPIPE_API_KEY"}}, None),
        ({"environment": {"A": "env:COPY"}}, "UsageError"),  # of the credential
        ({"seconds": 0}, "UsageError"),
        ({"seconds": 10**9}, "UsageError"),
        ({"shell": True}, "UsageError"),
    ],
)
def test_what_is_wrong_starts_nothing(
    assistant: Any,
    job: Job,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: dict[str, Any],
    kind: str | None,
) -> None:
    monkeypatch.setenv("SHORT", "abc")
    monkeypatch.setenv("COPY", job.api_key)
    started = tmp_path / "started"
    words = {"command": ["touch", str(started)], "environment": {"A": "env:GIVEN"}}
    failed = assistant.fail("run_with_secrets", **{**words, **change})
    assert kind in (None, failed["kind"])
    assert not started.exists()
    assert VALUE not in str(failed)
