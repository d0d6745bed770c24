"""`sealpipe run`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import click

from sealpipe.ci_systems import detect_ci_system
from sealpipe.cli import disclosure, render
from sealpipe.cli.local import open_context, work_locally
from sealpipe.errors import PluginError
from sealpipe.plugin.context import COMMAND
from sealpipe.registry import Registry
from sealpipe.run.child import run_command
from sealpipe.run.program import find_command
from sealpipe.run.use_values import use_values
from sealpipe.run.variables import make_environment, read_variables
from sealpipe.sources.resolve import Value
from sealpipe.spellings import Finder, is_searchable


def run(ctx: click.Context, /, command: tuple[str, ...], **values: Any) -> None:
    """Run `sealpipe run`."""
    variables = read_variables(values["env"], values["env_file"])
    program = find_command(command, os.environ)
    if values["no_redact"]:
        disclosure.plan_disclosure(
            "the output", "leave it out", printing=True, option="--no-redact"
        )
    context = open_context(values)
    use = partial(_run, context.registry, program, command, is_redacting=not values["no_redact"])
    ctx.exit(
        work_locally(
            context, lambda: use_values(context, "run", COMMAND, variables, use, _describe_end)
        )
    )


def _describe_end(code: int) -> dict[str, object]:
    return {"outcome": "done", "exit_code": code}


def _run(
    registry: Callable[[], Registry],
    program: str,
    command: tuple[str, ...],
    values: Mapping[str, Value],
    *,
    is_redacting: bool,
) -> int:

    environ = make_environment(
        os.environ, {name: value.data.reveal_bytes() for name, value in values.items()}
    )
    secrets = {name: value.data for name, value in values.items() if value.is_secret}
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
    return run_command(program, command, environ, finder)
