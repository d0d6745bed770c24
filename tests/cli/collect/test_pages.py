"""docs/how-to/collect.md and docs/how-to/web-service.md say what the code does."""

from __future__ import annotations

import ast
import asyncio
import re
from pathlib import Path
from typing import Any, get_args

import pytest

from cli.collect.submitter import ask
from sealpipe.collect.results import Event
from sealpipe.command_settings import COMMANDS
from support.job import Job

DOCS = Path(__file__).resolve().parents[3] / "docs"
PAGE = (DOCS / "how-to/collect.md").read_text(encoding="utf-8")
WEB = (DOCS / "how-to/web-service.md").read_text(encoding="utf-8")


def test_it_names_every_option_and_none_that_is_not_there() -> None:
    options = {setting.option for setting in COMMANDS["collect"]}
    assert {option for option in options if option not in PAGE} == set()
    others = {"--name", "--output", "--receipt", "--seed-to"}
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", PAGE)) <= options | others


def test_it_names_every_member_of_the_json(job: Job) -> None:
    asked = ask(job)
    asked.answer()
    words = ["collect", asked.file(), "--output", "json"]
    stored = job.run(*words, "--to", "file:pw#user").json
    failed = job.run(*words, "--to", "file:r.json#user").json
    dry = job.run(*words, "--to", "file:x#user", "--dry-run").json
    for members in (stored, failed, dry):
        assert {name for name in members if f"`{name}`" not in PAGE} <= {"schema"}
    for each in (*stored["stored"], *dry["planned"], *stored["submissions"]):
        assert {name for name in each if f"`{name}`" not in PAGE} == set()


def test_the_lines_that_it_shows_are_those_that_are_printed(job: Job) -> None:
    """Codes, markers and paths are others each time."""
    asked = ask(job)
    asked.answer()
    job.run("collect", asked.file(), "--to", "file:pw#staging_password", "--dry-run")
    shown = [
        _form(line)
        for line in re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)[1].splitlines()[1:]
    ]
    done = job.run("collect", asked.file(), "--to", "file:pw#staging_password", "--dry-run")
    assert [_form(line) for line in done.out.splitlines()] == shown
    job.service.submitter().send(
        asked.link, asked.sealed(b'[{"key": "x", "value": "y", "type": "text"}]')
    )
    done = job.run("collect", asked.file(), "--to", "file:pw#staging_password")
    shown = [
        _form(line)
        for line in re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)[-1].splitlines()[1:]
    ]
    assert [_form(line) for line in (done.out + done.err).splitlines()] == shown


def _form(line: str) -> str:
    line = re.sub(r"/\S+\.jsonl", "PATH", line)
    line = re.sub(r"\b[\w-]*x?\.[0-9a-f]{12,32}\b", "MARKER", line)
    return re.sub(r"(?<![\w-])[\w-]{12}(?![\w-])", "CODE", line)


def blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", WEB, re.DOTALL)


def test_the_web_services_example_runs(
    job: Job, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEALPIPE_CONFIG", str(job.terminal.file("config.toml", "")))
    for name in ("SEALPIPE_BASE_URL", "SEALPIPE_LINK_BASE_URL", "SEALPIPE_API_KEY"):
        monkeypatch.setenv(name, job.terminal.environ[name])
    # On the page the browser disconnects after a moment. A busy machine may not have looked for a
    # submission by then.
    begun, moment = asyncio.Event(), "await asyncio.sleep(0.2)"
    assert moment in blocks()[0]
    names: dict[str, Any] = {"begun": begun}
    source = blocks()[0].replace(moment, "await begun.wait()")
    exec(compile(source, "docs/how-to/web-service.md", "exec"), names)  # noqa: S102 - our own page
    tell = names["tell"]

    async def note(event: str) -> None:
        await tell(event)
        begun.set()

    names["tell"] = note

    async def customer(link: str) -> None:
        typed = {"Staging password": "hunter2", "User name": "bob"}
        await asyncio.to_thread(job.service.submitter().submit, link, typed)

    asyncio.run(names["main"](customer))
    assert capsys.readouterr().out.splitlines() == [
        "progress: waiting",
        "progress: answered",
        "Staging password has 7 characters",
        "User name has 3 characters",
        "collected",
    ]
    assert job.left() == []


def test_its_other_examples_are_python_and_it_names_every_event() -> None:
    for block in blocks()[1:]:
        ast.parse(f"async def it():\n    {block.strip()}".replace("\n", "\n    "))
    assert {event for event in get_args(Event) if f"`{event}`" not in WEB} == set()
