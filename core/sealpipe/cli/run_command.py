"""`sealpipe run`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any, Final

import click

from sealpipe.ci_systems import detect_ci_system
from sealpipe.cli import disclosure, render
from sealpipe.cli.local import open_context, work_locally
from sealpipe.errors import PluginError
from sealpipe.plugin.context import COMMAND
from sealpipe.registry import Registry
from sealpipe.run.child import run_command
from sealpipe.run.program import find_command
from sealpipe.run.use_values import Checked, check_values, raise_unreadable, use_values
from sealpipe.run.value_files import make_files, remove_left_over
from sealpipe.run.variables import Variable, make_environment, read_variables
from sealpipe.secret import Secret
from sealpipe.sources.resolve import Value
from sealpipe.spellings import Finder, is_searchable

_MOST_OF_A_FILE: Final = 8 * 1024
"""Bytes of a file's value that are looked for in the output: to find all spellings of a value takes
much more memory than the value.
"""


def run(ctx: click.Context, /, command: tuple[str, ...], **values: Any) -> None:
    """Run `sealpipe run`."""
    variables = read_variables(values["env"], values["env_file"], values["file"])
    if values["check"]:
        _check(variables, values)
        return
    files = {each.name for each in variables if each.is_file}
    remove_left_over(os.environ)
    program = find_command(command, os.environ)
    if values["no_redact"]:
        disclosure.plan_disclosure(
            "the output", "leave it out", printing=True, option="--no-redact"
        )
    context = open_context(values)
    use = partial(
        _run, context.registry, program, command, files, is_redacting=not values["no_redact"]
    )
    ctx.exit(
        work_locally(
            context, lambda: use_values(context, "run", COMMAND, variables, use, _describe_end)
        )
    )


def _check(variables: Sequence[Variable], values: Mapping[str, Any]) -> None:
    """Print the state of each variable, never its value. Raises what cannot be read."""
    context = open_context(values)
    checked = work_locally(context, lambda: check_values(context, COMMAND, variables))
    if values["output"] == "json":
        render.print_json({"variables": [_describe_checked(each) for each in checked]})
    else:
        render.print_table(
            ("NAME", "STATE", "COMMENT"),
            [
                (each.variable.name, _find_state(each), render.escape(each.variable.comment or "-"))
                for each in checked
            ],
        )
    raise_unreadable(checked)


def _find_state(checked: Checked) -> str:
    if checked.error is not None:
        return "unreadable"
    return "there" if checked.has_value else "left out"


def _describe_checked(checked: Checked) -> dict[str, object]:
    return {
        "name": checked.variable.name,
        "state": _find_state(checked),
        "comment": checked.variable.comment or None,
        "error": None if checked.error is None else render.describe_error(checked.error),
    }


def _describe_end(code: int) -> dict[str, object]:
    return {"outcome": "done", "exit_code": code}


def _run(
    registry: Callable[[], Registry],
    program: str,
    command: tuple[str, ...],
    files: AbstractSet[str],
    values: Mapping[str, Value],
    *,
    is_redacting: bool,
) -> int:
    data = {name: value.data.reveal_bytes() for name, value in values.items()}
    environ = make_environment(
        os.environ, {name: value for name, value in data.items() if name not in files}
    )
    secrets = {name: value.data for name, value in values.items() if value.is_secret}
    large = [name for name in files & secrets.keys() if len(data[name]) > _MOST_OF_A_FILE]
    secrets |= {name: Secret(data[name][:_MOST_OF_A_FILE]) for name in large}
    if large and is_redacting:
        render.print_note(
            "sealpipe: too large to be redacted whole, only its first 8 KiB are: "
            f"{', '.join(sorted(large))}"
        )
    short = [name for name, secret in secrets.items() if not is_searchable(secret.reveal_bytes())]
    if short and is_redacting:
        render.print_note(
            f"sealpipe: too short to be redacted (less than 4 characters): {', '.join(short)}"
        )
    reason = disclosure.mask_ahead(
        detect_ci_system(os.environ), registry, disclosure.list_masks(secrets)
    )
    if reason and not is_redacting:
        raise PluginError(
            f"the secrets could not be masked: {reason}", remedy="leave out --no-redact"
        )
    registry().close()
    finder = Finder(secret.reveal_bytes() for secret in secrets.values()) if is_redacting else None
    if not files:
        return run_command(program, command, environ, finder)
    with make_files(
        os.environ, {name: value for name, value in data.items() if name in files}
    ) as made:
        paths = {name.encode(): path for name, path in made.paths.items()}
        return run_command(program, command, environ | paths, finder, made.lock)
