"""click's commands and options, made from the one table in `settings.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from sealpipe.cli.render import escape
from sealpipe.errors import UsageError
from sealpipe.settings import COMMANDS, GLOBAL, Setting

Function = TypeVar("Function", bound=Callable[..., Any])

OFFLINE = ("output",)
"""The global settings of commands that never call the service."""


class Command(click.Command):
    """A command that does not echo an unexpected argument: it may be a secret without its option."""

    allow_extra_args = True

    def invoke(self, ctx: click.Context) -> Any:
        if ctx.args:
            raise UsageError(
                "unexpected argument" if len(ctx.args) == 1 else f"{len(ctx.args)} unexpected arguments",
                remedy=f"pass every value with its option: see `{ctx.command_path} --help`",
            )
        return super().invoke(ctx)


class SettingsGroup(click.Group):
    """A group whose commands share the group's table in the config file."""

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        ctx = super().make_context(*args, **extra)
        if ctx.default_map is not None:
            ctx.default_map = dict.fromkeys(self.list_commands(ctx), ctx.default_map)
        return ctx


class CodeCommand(Command):
    """A command that takes short codes or ids, which are opaque and may begin with a dash.

    Its options have two dashes, and `-h` is help. So a longer word with one dash is a code; after `--` any word is.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, self._move_codes_last(args))
        except click.NoSuchOption as error:
            message = error.format_message()
        raise UsageError(
            escape(message),
            remedy=f"see `{ctx.command_path} --help`; put a short code that begins with a dash after --: "
            f"`{ctx.command_path} -- CODE`",
        )

    def _move_codes_last(self, args: list[str]) -> list[str]:
        """Move all words that are no options, and no values of options, behind `--`."""
        with_value = {
            name for each in self.params if isinstance(each, click.Option) and not each.is_flag for name in each.opts
        }
        options: list[str] = []
        codes: list[str] = []
        remaining = iter(args)
        for word in remaining:
            if word == "--":
                codes += remaining
            elif not _is_option(word):
                codes.append(word)
            else:
                options.append(word)
                if word in with_value:
                    value = next(remaining, None)
                    if value is None:
                        return args  # click says so
                    options.append(value)
        return [*options, "--", *codes]


def _is_option(word: str) -> bool:
    """Whether it stands for an option in a `CodeCommand`: `--any`, `-h`, `-x`, and no `-any`."""
    return word.startswith("-") and (word[1:2] == "-" or len(word) == 2)


def names_receipt(word: str) -> bool:
    """Whether a word is a receipt's file, and no short code."""
    return "/" in word or word.endswith(".json")


if TYPE_CHECKING:
    AnyType = click.ParamType[Any]
else:
    AnyType = click.ParamType  # the oldest click that we take has no brackets for it


class OneOf(click.Choice[str]):
    """One of a few words. Anything else is not echoed: it may be a secret, such as a seed after `request --key`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            raise click.BadParameter(f"choose from {', '.join(self.choices)}.", ctx, param) from None


class SettingType(AnyType):
    """Parses with the setting's own function; errors name the option, variable or config file entry."""

    def __init__(self, setting: Setting) -> None:
        self.name = setting.metavar
        self._setting = setting

    def split_envvar_value(self, rv: str) -> list[str]:
        """One a line, for a reference may hold blanks. Empty lines are none: a block of YAML ends with a newline."""
        return [line for line in rv.split("\n") if line.strip()]

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str | int | float):
            return value
        try:
            return self._setting.parse(str(value))
        except UsageError as error:
            raise type(error)(f"{self._name_origin(param, ctx)}: {error.message}", remedy=error.remedy) from None

    def _name_origin(self, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The option, or the variable or the config file's name that stands for it."""
        source = ctx.get_parameter_source(param.name) if ctx is not None and param is not None and param.name else None
        if source is ParameterSource.ENVIRONMENT and param is not None and isinstance(param.envvar, str):
            return param.envvar
        if source is ParameterSource.DEFAULT_MAP:
            return f"the config file's {self._setting.name}"
        return self._setting.option


def options(
    command: str, only: Sequence[str] | None = None, common: Sequence[str] | None = None
) -> Callable[[Function], Function]:
    """Add the options of a command (all of its table, or `only` some), and the global ones (all, or `common`)."""
    command_settings = [setting for setting in COMMANDS.get(command, ()) if only is None or setting.name in only]
    shared = [setting for setting in GLOBAL if not setting.secret and (common is None or setting.name in common)]

    def decorate(function: Function) -> Function:
        for setting in reversed(shared):
            function = _make_option(setting, "")(function)
        for setting in reversed(command_settings):
            function = _make_option(setting, command)(function)
        return function

    return decorate


ARGUMENTS = {
    "ask": "prompts",
    "dir": "folder",
    "field": "fields",
    "param": "params",
    "passcode_from": "passcode",
    "restrict_address": "ip_whitelist",
    "restrict_domain": "restricted_domains",
}
"""Options that are named otherwise in a call from Python."""


def call_arguments(command: str, call: type[Any], values: Mapping[str, Any], but: Sequence[str] = ()) -> dict[str, Any]:
    """Return the values of a command's options that a call from Python takes, too, by its names (all but some).

    `call` is the dataclass of the call's arguments, such as `ShareOptions`.
    """
    named = {ARGUMENTS.get(setting.name, setting.name): values[setting.name] for setting in COMMANDS[command]}
    return {name: value for name, value in named.items() if name in call.__dataclass_fields__ and name not in but}


def _make_option(setting: Setting, command: str) -> Callable[[Function], Function]:
    names = [setting.name, setting.option, *([setting.short] if setting.short else [])]
    default_text: dict[str, Any] = {"help": setting.help, "envvar": setting.get_variable(command)}
    if setting.flag:
        return click.option(*names, is_flag=True, **default_text)
    if setting.choices:
        kind: AnyType = OneOf(setting.choices)
    else:
        kind = SettingType(setting)
        default_text["metavar"] = setting.metavar
    if setting.default is not None:
        default_text |= {"default": setting.default, "show_default": True}
    return click.option(*names, type=kind, multiple=setting.multiple, **default_text)
