"""Runs the programs that a CI system gives to its jobs.

They get the job's variables, without sealpipe's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from sealpipe.plugin import BackendAuthError, Context, NotConfiguredError, PluginError, Secret
from sealpipe_plugins import program

_TIMEOUT: Final = 15.0
"""Seconds. Such programs retry for minutes while their service is down; a job's result must not
wait for that.
"""

_MAX_TOKEN: Final = 64 * 1024


class JobProgramResult(NamedTuple):
    """Output of a program; `reason` is why it failed, for messages, otherwise empty."""

    out: bytes
    reason: str


def is_missing(context: Context, name: str) -> bool:
    """Whether a program is not on PATH."""
    try:
        program.find_program(name, context.environ, "")
    except NotConfiguredError:
        return True
    return False


def run_job_program(
    context: Context, argv: Sequence[str], stdin: bytes | None = None
) -> JobProgramResult:
    """Run a program of the job.

    Never raises PluginError: the caller decides what a failure means.
    """
    words = " ".join(argv[:3])
    timeout = min(_TIMEOUT, context.deadline)
    try:
        environ = context.child_environ()
        path = program.find_program(argv[0], environ, "")
        result = program.run_program(
            [path, *argv[1:]], argv[0], environ=environ, timeout=timeout, stdin=stdin
        )
    except program.ProgramTimeoutError:
        return JobProgramResult(b"", f"{words} did not finish within {timeout:g} s")
    except PluginError as error:
        return JobProgramResult(b"", error.message)
    return JobProgramResult(result.out, f"{words} {result.outcome}" if result.status else "")


def request_token(context: Context, argv: Sequence[str], remedy: str) -> Secret:
    """Return the OIDC token that a program prints.

    Raises NotConfiguredError without the program, BackendAuthError.
    """
    if is_missing(context, argv[0]):
        raise NotConfiguredError(
            f"no OIDC token: the program {argv[0]} is not on PATH", remedy=remedy
        )
    result = run_job_program(context, argv)
    if result.reason:
        raise BackendAuthError(
            f"no OIDC token: {result.reason}", remedy="run it in the job to see why"
        )
    token = result.out.strip()
    if (
        not token
        or len(token) > _MAX_TOKEN
        or not token.isascii()
        or b" " in token
        or not token.decode().isprintable()
    ):
        raise PluginError(f"no OIDC token: {' '.join(argv[:3])} printed something else")
    return Secret(token.decode())
