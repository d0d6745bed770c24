"""Checks submissions with the user's own command before they are stored (`collect --check`).

The command gets the submission's fields as JSON on standard input, and the environment without
SEALPIPE_* variables. Only its exit status counts. Nothing that it prints is shown: it may print
values.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any, Final, NamedTuple

from sealpipe.collect.open import name_fields
from sealpipe.collect.options import CollectJob, SubmissionCheck
from sealpipe.collect.results import OpenedSubmission
from sealpipe.errors import CheckError, SealpipeError, SettingError, UsageError, quote_input
from sealpipe.parsing import format_optional_time
from sealpipe.plugin import Context
from sealpipe.registry import Registry
from sealpipe.registry.stores import read_tables
from sealpipe.wire.fields import printable, revealed

_DEFAULT_TIMEOUT: Final = 30.0
_MAX_TIMEOUT: Final = 3600.0
_PROGRAM: Final = "sealpipe_plugins.program"
"""What starts programs; a submission without a check does not need it."""
_HOW: Final = 'write [checks.NAME] with argv = ["/path/of/program", ...] into the config file'


class _Check(NamedTuple):
    """The name, program, arguments, environment and time limit (seconds) of a check."""

    name: str
    argv: tuple[str, ...]
    environ: Mapping[str, str]
    timeout: float


def load_check(get_registry: Callable[[], Registry], name: str) -> SubmissionCheck:
    """Return the check of a name, which blocks, and returns an error if a submission does not pass.

    Runs nothing yet.

    Raises UsageError if the config file has no such check, SettingError if its table is wrong,
    NotConfiguredError if its program is not found.
    """
    registry = get_registry()
    tables = read_tables(registry.config, "checks")
    if name not in tables:  # the name is not shown: it may be a misplaced secret
        known = ", ".join(sorted(tables)[:20])
        raise UsageError(
            "the config file has no check of that name",
            remedy=f"choose from {known}" if known else _HOW,
        )
    table = tables[name]
    argv, timeout = _read_table(name, table if isinstance(table, Mapping) else {})
    environ = Context("checks", environ=registry.environ).child_environ()
    remedy = f"correct argv of [checks.{name}] in the config file"
    program = import_module(_PROGRAM).find_program(argv[0], environ, remedy)
    return partial(_check, _Check(name, (program, *argv[1:]), environ, timeout))


def _check(check: _Check, job: CollectJob, submission: OpenedSubmission) -> CheckError | None:
    problem = _run(check, _describe_submission(job, submission))
    if not problem:
        return None
    error = CheckError(
        f"the check {check.name} {problem}: nothing of the submission {submission.marker} "
        f"to {job.short_code} was "
        "stored",
        short_code=job.short_code,
    )
    error.submission = submission.marker
    return error


def _run(check: _Check, content: bytes) -> str:
    """Run the command, and return what is wrong; empty if it passed."""
    program: Any = import_module(_PROGRAM)
    try:
        result = program.run_program(
            check.argv,
            f"the check {check.name}",
            environ=check.environ,
            timeout=check.timeout,
            stdin=content,
        )
    except program.ProgramTimeoutError:
        return f"did not finish within {check.timeout:g} s and was killed"
    except SealpipeError as error:  # it cannot be started, or its output has no end
        return f"failed ({error.message})"
    return str(result.outcome) if result.status else ""


def _describe_submission(job: CollectJob, submission: OpenedSubmission) -> bytes:
    """Return what the command gets: the fields, each with the id of its prompt, else its number."""
    names = name_fields(submission.fields, job.prompts)
    # The submitter chooses the members of a field: ours come last.
    rows = [
        {**printable(field), "id": name, "value": revealed(field)}
        for name, field in zip(names, submission.fields, strict=True)
    ]
    members = {
        "schema": 1,
        "request": job.short_code,
        "submission": submission.marker,
        "created_at": format_optional_time(submission.created_at),
        "fields": rows,
    }
    return json.dumps(members).encode()


def _read_table(name: str, table: Mapping[str, Any]) -> tuple[tuple[str, ...], float]:
    """Return the command and its time limit in seconds.

    Raises SettingError, which shows no value.
    """
    argv, timeout = table.get("argv"), table.get("timeout", _DEFAULT_TIMEOUT)
    is_list = isinstance(argv, list) and all(
        isinstance(word, str) and "\0" not in word for word in argv
    )
    if not is_list or not argv or not argv[0]:
        raise SettingError(f"checks.{name} has no list of words as argv", remedy=_HOW)
    if (
        isinstance(timeout, bool)
        or not isinstance(timeout, int | float)
        or not 0 < timeout <= _MAX_TIMEOUT
    ):
        raise SettingError(
            f"checks.{name}.timeout is not a number of seconds",
            remedy=f"write a number from 1 to {_MAX_TIMEOUT:g}",
        )
    if unknown := sorted(table.keys() - {"argv", "timeout"}):
        raise SettingError(
            f"checks.{name} sets {quote_input(unknown[0])}, which is not a setting",
            remedy="remove it",
        )
    return tuple(argv), float(timeout)
