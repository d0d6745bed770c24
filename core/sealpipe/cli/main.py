"""The command line, on click.

This module imports a command when it is called, and turns errors into exit codes.

Only `render.py` prints.
"""

from __future__ import annotations

import os
import re
import sys
import traceback
from collections.abc import Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

import click

from sealpipe import signals
from sealpipe.ci_systems import detect_ci_system
from sealpipe.cli import render
from sealpipe.cli.commands import COMMANDS, Group
from sealpipe.errors import ConnectError, Note, PluginError, SealpipeError, UsageError
from sealpipe.version import __version__

READING = frozenset(
    {"open", "receive", "get", "view", "show", "reveal", "retrieve", "fetch", "decrypt"}
)
"""Commands that other tools have to read a share."""


_EXPECTED = (SealpipeError, click.UsageError, click.exceptions.Exit)
"""Exceptions that any command may raise, even one of a plugin."""


class LazyGroup(Group):
    """Imports commands when they are called; commands of plugins are looked up by name only."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(
        self,
        ctx: click.Context,  # noqa: ARG002
        cmd_name: str,
    ) -> click.Command | None:
        if cmd_name not in COMMANDS:
            from sealpipe.cli import plugin_commands

            return plugin_commands.find_command(cmd_name)
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if error.possibilities:
                raise
            name = error.option_name
        raise UsageError(
            f"No such option {name!r} before a command",
            remedy=f"write it after the command: sealpipe COMMAND {name}",
        )

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] in READING and self.get_command(ctx, args[0]) is None:
            raise UsageError(
                f"No such command {args[0]!r}: sealpipe reads no share",
                remedy="open its link in a browser: the service has no endpoint that reads one. "
                "`sealpipe collect` reads submissions, `sealpipe unseal` opens a link that another "
                "job sealed",
            )
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except _EXPECTED:
            raise
        except Exception as error:
            if ctx.invoked_subcommand is None or ctx.invoked_subcommand in COMMANDS:
                raise
            failure = _wrap_error(ctx.invoked_subcommand, error)
        raise failure  # raised here, without its context: that may hold a secret

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002
        formatter: click.HelpFormatter,
    ) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])


def _wrap_error(name: str, error: Exception) -> PluginError:
    """Wrap an error of a plugin command.

    With its message if that is meant for users, otherwise with its type.
    """
    if isinstance(error, click.ClickException):
        return PluginError(render.escape(error.format_message()))
    return PluginError(
        f"the plugin command {name} raised an unexpected {type(error).__name__}",
        remedy="report it to the plugin's author; `sealpipe plugins` shows which plugin it is",
    )


@click.group(
    cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]}, no_args_is_help=True
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=lambda c, _p, v: _print_version(c, on=v),
    help="Show the version and exit.",
)
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Hand over secrets between pipelines and people, end-to-end encrypted.

    Name secrets by reference (env:DB_PASSWORD, file:key.pem, stdin:). No option takes a secret's
    value.
    """
    if ctx.invoked_subcommand != "completion":
        from sealpipe.cli import command  # the list of all commands does without

        command.load_config(ctx, COMMANDS)


def run(arguments: Sequence[str]) -> int:
    """Run a command line and return its exit code.

    Afterwards, a signal ends the process at once.
    """
    try:
        signals.raise_on_signals()
        _open_standard_streams()
        if "_SEALPIPE_COMPLETE" in os.environ:  # a shell's script asks
            from sealpipe.cli import completion

            return completion.print_answer(cli, COMMANDS, os.environ)
        as_json = _wants_json(arguments)
        shared: dict[str, Any] = {}  # what commands keep for this run (`command.run_config`)
        try:
            try:
                result = cli.main(
                    list(arguments), prog_name="sealpipe", standalone_mode=False, obj=shared
                )
            finally:
                _print_audit_heads()
            code = result if isinstance(result, int) else 0  # the argument of Context.exit()
        except Exception as error:  # noqa: BLE001 - what is no error of ours or click's is a bug
            code = _report_error(error, shared, as_json=as_json)
        signals.exit_on_signals()
    except SystemExit:  # a plugin's command
        signals.exit_on_signals()
        raise
    except signals.Interrupted as interruption:
        for line in ["sealpipe: interrupted", *Note.on(interruption)]:
            render.print_note(line)
        return 128 + interruption.number
    finally:
        if debug := _find_debug():
            debug.turn_off()
    return code


def _report_error(error: Exception, shared: Mapping[str, Any], *, as_json: bool) -> int:
    """Print the error that ended a command, and return its exit code."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        render.print_note(error.ctx.get_help() if error.ctx else "")
        return 2
    if isinstance(error, click.UsageError):
        hint = (
            f"{_describe_missing(error)}see "
            f"`{error.ctx.command_path if error.ctx else 'sealpipe COMMAND'} --help`"
        )
        # click spreads the message about a missing choice over several lines: join them.
        error = UsageError(
            render.escape(re.sub(r"\s*\n\s*", " ", error.format_message())), remedy=hint
        )
    if isinstance(error, ConnectError) and "base_url" in shared:
        error.add_note(Note(f"the base URL is {shared['base_url']}"))
    if isinstance(error, SealpipeError):
        _show_in_ci(error, shared)
        render.print_error(error, as_json=as_json)
        return error.exit_code
    _print_bug(error, as_json=as_json)
    return 1


_EXAMPLES: Mapping[str, str] = {
    "REF": "write where the value lives, such as env:DB_PASSWORD",
    "CODE": "write a short code: `sealpipe shares list` and `sealpipe requests list` print them",
    "CODE|LINK|RECEIPT...": (
        "write a short code, a collect link, or the file that `sealpipe request --receipt` wrote"
    ),
    "FILE": "write a file's path",
    "ARGUMENTS": "write the call's arguments as JSON, such as '{}'",
    "TOOL": "write a tool's name: `sealpipe tools list` prints them",
    "NAME": "write a batch's name: `sealpipe batch list` prints them",
}
"""What stands for an argument, by its name in `--help`."""


def _describe_missing(error: click.UsageError) -> str:
    """Return what to write for a missing argument; empty for any other or a named error."""
    if (
        isinstance(error, click.MissingParameter)
        and isinstance(error.param, click.Argument)
        and error.ctx
    ):
        example = _EXAMPLES.get(error.param.make_metavar(error.ctx))
        return f"{example}; " if example else ""
    return ""


def _print_audit_heads() -> None:
    """Print the head of each audit log that was written, and what its webhook has not got yet.

    Stored elsewhere, a head can prove that the log is complete.
    """
    policies = sys.modules.get("sealpipe.registry.policies")
    if policies is not None:
        for file, head in policies.get_audit_heads().items():
            render.print_note(f"audit: {render.escape(str(file))} head {head}")
        for file, why in policies.get_unsent_audit().items():
            render.print_note(
                f"audit: {render.escape(str(file))} is not sent yet: {why}; the next command or "
                "`sealpipe audit send` sends it"
            )


def _show_in_ci(error: SealpipeError, shared: Mapping[str, Any]) -> None:
    if detect_ci_system(os.environ) is not None:
        from sealpipe.cli import disclosure

        disclosure.annotate_error(error, shared.get("config"))


def _find_debug() -> ModuleType | None:
    """Return the module of --debug, which alone imports it, while it is on."""
    debug = sys.modules.get("sealpipe.cli.debug")
    return debug if debug is not None and debug.is_on() else None


def _print_version(ctx: click.Context, *, on: bool) -> None:
    if on and not ctx.resilient_parsing:
        render.print_result(f"sealpipe {__version__}\n")
        ctx.exit()


def _wants_json(arguments: Sequence[str]) -> bool:
    """Whether --output json is set. Errors of the command line's parser depend on it, too."""
    for word, values in zip(arguments, [*arguments[1:], ""], strict=False):
        if word == "--output" or word.startswith("--output="):
            return (values if word == "--output" else word.partition("=")[2]) == "json"
        if word == "--":
            break
    return os.environ.get("SEALPIPE_OUTPUT") == "json"


def _open_standard_streams() -> None:
    """Open the null device on closed standard streams, so that no file gets their numbers."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)


def _print_bug(error: Exception, *, as_json: bool) -> None:
    """Print the type and the place of an unexpected error, not its message or values.

    They may hold a secret.
    """

    places = [
        f"{frame.filename}:{frame.lineno} {frame.name}"
        for frame in traceback.extract_tb(error.__traceback__)
    ]
    if not as_json or _find_debug():  # JSON is the last line
        for place in places:
            render.print_note(f"  {place}")
    bug = SealpipeError(
        f"internal error: {type(error).__name__} at {places[-1] if places else 'an unknown place'}",
        remedy=(
            "this is a bug in sealpipe: please report it with these lines, which contain no secret"
        ),
    )
    for line in Note.on(error):
        bug.add_note(line)
    render.print_error(bug, as_json=as_json)
