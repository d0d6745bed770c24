"""click's options, made from the one table in `settings.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from sealpipe.errors import UsageError
from sealpipe.settings import COMMANDS, GLOBAL, Setting

Function = TypeVar("Function", bound=Callable[..., Any])

OFFLINE = ("output",)
"""The global settings of commands that never call the service."""


class Command(click.Command):
    """A command that does not echo a word too many: it may be a secret that lost its option."""

    allow_extra_args = True

    def invoke(self, ctx: click.Context) -> Any:
        if ctx.args:
            raise UsageError(
                f"{len(ctx.args)} word(s) too many",
                remedy=f"every value has an option: see `{ctx.command_path} --help`",
            )
        return super().invoke(ctx)


class Family(click.Group):
    """A group whose commands share its table of the config file."""

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        ctx = super().make_context(*args, **extra)
        if ctx.default_map is not None:
            ctx.default_map = dict.fromkeys(self.list_commands(ctx), ctx.default_map)
        return ctx


OPAQUE = {"ignore_unknown_options": True, "help_option_names": ["--help"]}
"""Context settings of a command that takes a short code: it is opaque, and may begin with a dash."""


class OpaqueWords(Command):
    """A command of several words, codes and receipts: one that begins with a single dash is none of its options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        with_value = {
            name for each in self.params if isinstance(each, click.Option) and not each.is_flag for name in each.opts
        }
        free = args.index("--") if "--" in args else len(args)
        for at, word in enumerate(args[:free]):
            is_value = at > 0 and args[at - 1] in with_value
            if len(word) > 2 and word[0] == "-" != word[1] and not is_value:
                args[at] = f"./{word}" if word.endswith(".json") or "/" in word else f"code:{word}"
        return super().parse_args(ctx, args)


class OneOf(click.Choice[str]):
    """One of a few words. Anything else is not echoed: it may be a secret, such as a seed behind `request --key`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            raise click.BadParameter(f"it is none of {', '.join(self.choices)}.", ctx, param) from None


class SettingType(click.ParamType[Any]):
    """Parses with the setting's own function; its errors are ours, and name the option."""

    def __init__(self, setting: Setting) -> None:
        self.name = setting.metavar
        self._setting = setting

    def split_envvar_value(self, rv: str) -> list[str]:
        """One a line, for a reference may hold blanks. Empty lines are none: a block of YAML ends with a newline."""
        return [line for line in rv.split("\n") if line.strip()]

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ARG002
        if not isinstance(value, str | int | float):
            return value
        try:
            return self._setting.parse(str(value))
        except UsageError as error:
            raise type(error)(f"{self._setting.option}: {error.message}", remedy=error.remedy) from None


def options(
    command: str, only: Sequence[str] | None = None, common: Sequence[str] | None = None
) -> Callable[[Function], Function]:
    """The options of a command (or only some of its table), and the global ones (or only some of them)."""
    own = [setting for setting in COMMANDS.get(command, ()) if only is None or setting.name in only]
    shared = [setting for setting in GLOBAL if not setting.secret and (common is None or setting.name in common)]

    def decorate(function: Function) -> Function:
        for setting in reversed(shared):
            function = _option(setting, "")(function)
        for setting in reversed(own):
            function = _option(setting, command)(function)
        return function

    return decorate


def _option(setting: Setting, command: str) -> Callable[[Function], Function]:
    names = [setting.name, setting.option, *([setting.short] if setting.short else [])]
    shown: dict[str, Any] = {"help": setting.help, "envvar": setting.variable(command)}
    if setting.flag:
        return click.option(*names, is_flag=True, **shown)
    if setting.choices:
        kind: click.ParamType[Any] = OneOf(setting.choices)
    else:
        kind = SettingType(setting)
        shown["metavar"] = setting.metavar
    if setting.default is not None:
        shown |= {"default": setting.default, "show_default": True}
    return click.option(*names, type=kind, multiple=setting.multiple, **shown)
