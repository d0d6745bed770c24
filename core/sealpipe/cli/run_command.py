"""`sealpipe run` and `sealpipe read`."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeVar

import click

from sealpipe.ci_systems import detect_ci_system
from sealpipe.cli import disclosure, render
from sealpipe.cli.command import Command, make_registry, options, run_config
from sealpipe.errors import PluginError, SettingError
from sealpipe.secret import Secret

if TYPE_CHECKING:
    from sealpipe.api.operation import Credential
    from sealpipe.config import Config
    from sealpipe.policy import LocalContext
    from sealpipe.registry import Registry
    from sealpipe.sources.resolve import Value

T = TypeVar("T")

_COMMON = ("ca_file", "deadline", "output")


@click.command(cls=Command, context_settings={"allow_interspersed_args": False})
@options("run", common=_COMMON)
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="-- COMMAND ...")
@click.pass_context
def run(ctx: click.Context, /, command: tuple[str, ...], **values: Any) -> None:
    """Run a command with secrets in its environment.

    Reads every secret before the command starts, and exits with its exit code. Replaces the secrets
    in its output by ***, in the usual encodings, too; --no-redact leaves the output alone. Needs no
    credential of the service:

    sealpipe run -e DB_PASSWORD=vault:secret/app#password -- ./migrate --verbose
    """
    from sealpipe.plugin.context import COMMAND
    from sealpipe.run.program import find_command
    from sealpipe.run.use_values import use_values
    from sealpipe.run.variables import read_variables

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
    from sealpipe.run.child import run_command
    from sealpipe.run.variables import make_environment
    from sealpipe.spellings import Finder, is_searchable

    environ = make_environment(
        os.environ, {name: value.data.reveal_bytes() for name, value in values.items()}
    )
    secrets = {name: value.data for name, value in values.items() if value.is_secret}
    short = [name for name, secret in secrets.items() if not is_searchable(secret.reveal_bytes())]
    if short and is_redacting:
        render.print_note(
            f"sealpipe: too short to be redacted (less than 4 characters): {', '.join(short)}"
        )
    reason = disclosure.mask_ahead(detect_ci_system(os.environ), registry, _list_masks(secrets))
    if reason and not is_redacting:
        raise PluginError(
            f"the secrets could not be masked: {reason}", remedy="leave out --no-redact"
        )
    registry().close()
    finder = Finder(secret.reveal_bytes() for secret in secrets.values()) if is_redacting else None
    return run_command(program, command, environ, finder)


def _list_masks(secrets: Mapping[str, Secret]) -> list[Secret]:
    """Return what a CI system can mask: its log is text."""
    from sealpipe.sources.select import is_utf8

    binary = [name for name, secret in secrets.items() if not is_utf8(secret.reveal_bytes())]
    system = detect_ci_system(os.environ)
    if binary and system is not None and (system.mask is not None or system.job.mask_program):
        render.print_note(
            f"sealpipe: not UTF-8 text, so {system.title} cannot mask it: {', '.join(binary)}"
        )
    return [secret for name, secret in secrets.items() if name not in binary]


@click.command(cls=Command)
@click.argument("reference", metavar="REF")
@options("read", common=_COMMON)
def read(reference: str, **values: Any) -> None:
    """Print one value, byte for byte, without a newline at its end.

    In CI, that needs --print; the value is masked first if possible. Needs no credential of the
    service.
    """
    from sealpipe.plugin.context import CALLER
    from sealpipe.reference import parse
    from sealpipe.run.use_values import use_values
    from sealpipe.run.variables import Variable, check_single

    ref = parse(reference, "REF")
    check_single(ref, "REF")
    gate = disclosure.plan_disclosure(
        "the value",
        "hand it to the command that needs it with `sealpipe run`",
        printing=values["print"],
    )
    context = open_context(values)

    def show(found: Mapping[str, Value]) -> None:
        as_json = values["output"] == "json"
        data = found["value"].data.reveal_bytes() if found else b""
        text, encoding = _spell(data)
        hidden: list[Secret] = []
        if found and found["value"].is_secret:
            spelled = map(Secret, dict.fromkeys([text, render.escape_json(text)]))
            hidden = list(spelled) if as_json else _list_masks({"REF": found["value"].data})
        members = {"reference": str(ref), "value": text if found else None, "encoding": encoding}
        gate.write(
            context.registry,
            hidden,
            lambda: render.print_json(members) if as_json else render.print_bytes(data),
        )

    done = {"outcome": "done"}
    work_locally(
        context,
        lambda: use_values(context, "read", CALLER, [Variable("value", ref)], show, lambda _: done),
    )


def _spell(data: bytes) -> tuple[str, str]:
    """Return bytes as text for JSON, and how they are encoded."""
    try:
        return data.decode("utf-8"), "utf-8"
    except UnicodeDecodeError:
        return base64.b64encode(data).decode(), "base64"


def open_context(values: Mapping[str, Any]) -> LocalContext:
    """Open what the references are resolved with.

    The credential, if one is set, is only kept out of everything.
    """
    from sealpipe.custody_gate import CustodyGate
    from sealpipe.parsing import as_seconds
    from sealpipe.policy import LocalContext
    from sealpipe.registry.stores import read_policy_hooks

    config = run_config()
    gate = CustodyGate(*_list_credentials(config))
    registry = cache(
        partial(make_registry, values["ca_file"], gate, as_seconds(values["deadline"]))
    )
    disclosure.get_ci(registry)  # if it cannot be used, nothing is read
    return LocalContext(read_policy_hooks(config.user, config.machine), registry, gate)


def _list_credentials(config: Config) -> list[Credential]:
    from sealpipe.api.operation import Credential

    credentials = []
    with suppress(SettingError):  # the service is not called: a wrong credential does no harm
        text = config.read_api_key(os.environ.get("SEALPIPE_API_KEY_FILE"))
        credentials += [Credential.parse(text)] if text else []
    with suppress(SettingError):
        credentials += (
            [Credential.parse(config.previous_api_key)] if config.previous_api_key else []
        )
    return credentials


def work_locally(context: LocalContext, work: Callable[[], T]) -> T:
    """Do work that calls no service, and close the registry."""
    try:
        return work()
    finally:
        context.registry().close()
