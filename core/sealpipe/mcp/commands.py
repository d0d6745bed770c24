"""The tool `run_with_secrets`: a command of the policy's list, with secrets in its environment.

There is no shell and no input. The command gets this server's environment without SEALPIPE_*
variables and relative folders in PATH, and the secrets; what it writes is redacted. When the call
is cancelled or its time is up, it ends with all of its children.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Annotated, Final, Literal, NamedTuple

from pydantic import Field

from sealpipe.cancellation import current
from sealpipe.errors import UsageError
from sealpipe.mcp.models import MAX_TEXT, Model, Untrusted
from sealpipe.mcp.secret_guard import neutralize
from sealpipe.mcp.tools import Answer, Call, Tool, Use
from sealpipe.plugin.context import COMMAND
from sealpipe.run.capture import Captured, Excerpt, Stop, capture_command
from sealpipe.run.program import find_command
from sealpipe.run.use_values import use_values
from sealpipe.run.variables import Variable, make_environment, parse_variable
from sealpipe.sources.resolve import Value
from sealpipe.spellings import Finder, is_searchable

_LONGEST: Final = 20_000
"""Characters of output that are returned, of both streams together."""
_DEFAULT_SECONDS: Final = 60
_REPORT_INTERVAL: Final = 5.0
"""Seconds between progress notifications."""


class RunArguments(Model):
    """The arguments of `run_with_secrets`."""

    command: list[Annotated[str, Field(max_length=MAX_TEXT)]] = Field(
        min_length=1, max_length=100, description="The program and its arguments."
    )
    environment: dict[
        Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}$")],
        Annotated[str, Field(min_length=1, max_length=500)],
    ] = Field(
        max_length=50,
        description="For each variable, where its secret is, such as vault:secret/app/db#password.",
        json_schema_extra={"additionalProperties": False},
    )
    seconds: int = Field(
        _DEFAULT_SECONDS,
        ge=1,
        le=900,
        description=f"Seconds after which the command is ended. Default: {_DEFAULT_SECONDS}.",
    )


class RunAnswer(Model):
    """The answer of `run_with_secrets`."""

    exit_code: int | None = Field(
        description="Its exit code; 128+N after signal N. Null: it could not be ended."
    )
    ended: Literal["exited", "timeout", "too much output"] = Field(
        description="`exited` by itself, or why it was ended."
    )
    stdout: Untrusted = Field(
        description="What it wrote to stdout, redacted: at most 10,000 characters."
    )
    stderr: Untrusted = Field(
        description="What it wrote to stderr, redacted: at most 10,000 characters."
    )
    truncated: bool = Field(description="Whether something was left out, at [...].")


class Wanted(NamedTuple):
    """What to run: the arguments of a call, parsed."""

    command: tuple[str, ...]
    variables: tuple[Variable, ...]
    seconds: int


async def run_command(call: Call, wanted: Wanted) -> Answer:
    """Run the command. Raises UsageError, PolicyError and PluginError: then it was not started."""

    program = find_command(wanted.command, _make_environ())

    def work(values: Mapping[str, Value]) -> Captured:
        done: list[Captured] = []

        async def follow() -> None:
            done.append(await _follow(call, program, wanted, values))

        current().notify(follow)
        return done[0]

    session = call.client.session
    captured = await call.client.run(
        lambda: use_values(session, "run", COMMAND, wanted.variables, work, _describe_end)
    )
    assert captured.ending != "stopped"  # noqa: S101 - then this task is cancelled
    texts = [_make_harmless(text) for text in (captured.stdout, captured.stderr)]
    return Answer(
        RunAnswer(
            exit_code=captured.exit_code,
            ended=captured.ending,
            stdout=Untrusted(untrusted=texts[0][0]),
            stderr=Untrusted(untrusted=texts[1][0]),
            truncated=captured.is_truncated or any(is_cut for _, is_cut in texts),
        )
    )


def _make_environ() -> dict[str, str]:
    """Return our environment, with a PATH that does not depend on the working directory.

    Assistants write there.
    """
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return {**os.environ, "PATH": os.pathsep.join(filter(os.path.isabs, folders))}


def _make_harmless(text: str) -> tuple[str, bool]:
    """Return output that nothing obeys, and whether some of it was left out.

    What is escaped is longer.
    """
    excerpt = Excerpt(_LONGEST // 2)
    excerpt.add(neutralize(text, 10 * _LONGEST).encode())
    return excerpt.read()


def _describe_end(captured: Captured) -> dict[str, object]:
    outcome = "done" if captured.ending == "exited" else captured.ending
    return {"outcome": outcome, "exit_code": captured.exit_code}


async def _follow(
    call: Call, program: str, wanted: Wanted, values: Mapping[str, Value]
) -> Captured:
    """Run it in a thread of its own, report its progress, and stop it if we are cancelled."""
    with Stop() as stop, ThreadPoolExecutor(1) as pool:
        work = partial(_capture, program, wanted, values, stop)
        running = asyncio.get_running_loop().run_in_executor(pool, work)
        began = time.monotonic()
        try:
            while not (await asyncio.wait({running}, timeout=_REPORT_INTERVAL))[0]:
                await call.report(
                    time.monotonic() - began, wanted.seconds, "The command is running."
                )
        finally:
            if not running.done():
                stop()
            while not running.done():
                try:
                    await asyncio.wait({running})
                except (
                    asyncio.CancelledError
                ):  # a task may be cancelled again and again, and the command ends soon
                    continue
        return running.result()


def _capture(program: str, wanted: Wanted, values: Mapping[str, Value], stop: Stop) -> Captured:

    environ = make_environment(
        _make_environ(), {name: value.data.reveal_bytes() for name, value in values.items()}
    )
    secrets = {name: value.data.reveal_bytes() for name, value in values.items() if value.is_secret}
    if short := [name for name, secret in secrets.items() if not is_searchable(secret)]:
        raise UsageError(
            f"too short to be redacted (less than 4 characters): {', '.join(short)}",
            remedy="use a longer secret, or leave it out",
        )
    finder = Finder(secrets.values())
    limits = {"seconds": wanted.seconds, "longest": _LONGEST // 2}
    return capture_command(program, wanted.command, environ, finder, stop=stop, **limits)


def _parse(given: RunArguments) -> Wanted:
    if any("\0" in word for word in given.command):
        raise UsageError(
            "the command has a NUL character, which no argument can hold", remedy="leave it out"
        )
    if not given.environment:
        raise UsageError(
            "environment names no secret", remedy="name one at least, or run the command yourself"
        )
    variables = tuple(
        parse_variable(f"{name}={reference}") for name, reference in given.environment.items()
    )
    return Wanted(tuple(given.command), variables, given.seconds)


def _describe(wanted: Wanted) -> Use:
    return Use(
        "run_with_secrets",
        sources=tuple(each.ref for each in wanted.variables),
        command=wanted.command,
        variables=tuple(each.name for each in wanted.variables),
    )


RUN_WITH_SECRETS: Final = Tool(
    "run_with_secrets",
    "Run a command with secrets",
    "Run a command that the policy allows, without a shell and without input, with secrets in its "
    "environment. Returns its exit code and its output, in which secrets are replaced by ***. When "
    "it ends, so do its children.",
    RunArguments,
    RunAnswer,
    _parse,
    _describe,
    run_command,
    is_destructive=True,
)
