"""Parts of every command: options from the table in `settings.py`, and this run's configuration."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from sealpipe.cli import render
from sealpipe.cli.commands import Group
from sealpipe.command_settings import COMMANDS, get_command_table
from sealpipe.config import Config
from sealpipe.errors import UsageError
from sealpipe.settings import ARGUMENTS, GLOBAL, Setting

Function = TypeVar("Function", bound=Callable[..., Any])

COMMON = (
    "api_key_file",
    "base_url",
    "link_base_url",
    "service_tag",
    "state_dir",
    "ca_file",
    "deadline",
    "output",
)
"""Global options of commands that call the service."""

DEBUG = "debug"
"""The global option of every command."""

OFFLINE = ("output",)
"""Global options of commands that never call the service."""


class Command(click.Command):
    """A command that does not echo an unexpected argument.

    It may be a secret whose option is missing.
    """

    allow_extra_args = True
    unexpected_remedy = ""
    """What to do about an unexpected argument, for a command that knows."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Refuse an option that takes one value and is given twice.

        click would take the last without a word.

        An unknown option is told those that begin like it, and every error of the parser which
        command it is about.
        """
        try:
            _, _, given = self.make_parser(ctx).parse_args(list(args))
        except click.NoSuchOption as error:
            begun = len(error.option_name) > len("--")
            names = [name for each in self.params for name in each.opts]
            longer = [name for name in names if begun and name.startswith(error.option_name)]
            if error.option_name == "--json" and "--output" in names:  # as other tools have it
                longer = ["--output json"]
            if not longer:
                raise
            message = f"No such option {error.option_name!r}. Did you mean {' or '.join(longer)}?"
            raise click.NoSuchOption(error.option_name, message, ctx=ctx) from None
        except click.UsageError as error:
            error.ctx = ctx
            raise
        single = [
            each
            for each in given
            if isinstance(each, click.Option) and not (each.multiple or each.is_flag)
        ]
        for option in single:
            # such as --help.
            if single.count(option) > 1 and not any(each.is_eager for each in given):
                name = max(option.opts, key=len)
                raise UsageError(
                    f"{name} is given twice", remedy="give it once: it takes one value"
                )
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        if ctx.args:
            raise UsageError(
                "unexpected argument"
                if len(ctx.args) == 1
                else f"{len(ctx.args)} unexpected arguments",
                remedy=self.unexpected_remedy or self._describe_taken(ctx),
            )
        return super().invoke(ctx)

    def _describe_taken(self, ctx: click.Context) -> str:
        """Say what the command takes, for one that got more."""
        taken = " ".join(
            each.make_metavar(ctx) for each in self.params if isinstance(each, click.Argument)
        )
        what = f"it takes {taken} once; " if taken else ""
        return f"{what}pass every value with its option: see `{ctx.command_path} --help`"


class SettingsGroup(Group):
    """A group whose commands read its table in the config file, and their own if they have one."""

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        ctx = super().make_context(*args, **extra)
        if ctx.default_map is not None:
            user, group = run_config().user, ctx.default_map
            ctx.default_map = {
                name: {**group, **get_command_table(user, name)} for name in self.list_commands(ctx)
            }
        return ctx


if TYPE_CHECKING:
    AnyType = click.ParamType[Any]
else:
    AnyType = click.ParamType  # not subscriptable in the oldest supported click


class OneOf(click.Choice[str]):
    """One of a few words.

    An invalid value is not echoed: it may be a secret, such as a seed after `request --key`.
    """

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting.choices)
        self._setting = setting

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            pass
        error = UsageError(
            "the value is not one of the choices", remedy=f"choose from {', '.join(self.choices)}"
        )
        raise _name_origin(error, self._setting, param, ctx)


class SettingType(AnyType):
    """Parses a value with the setting's own parser.

    Errors name the option, variable or config file entry.
    """

    def __init__(self, setting: Setting) -> None:
        self.name = setting.metavar
        self._setting = setting

    def split_envvar_value(self, rv: str) -> list[str]:
        """Split at newlines: references may contain spaces.

        Skip empty lines: YAML blocks end with a newline.
        """
        return [line for line in rv.split("\n") if line.strip()]

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str | int | float):
            return value
        try:
            return self._setting.parse(str(value))
        except UsageError as error:
            raise _name_origin(error, self._setting, param, ctx) from None


def _name_origin(
    error: UsageError, setting: Setting, param: click.Parameter | None, ctx: click.Context | None
) -> UsageError:
    """Name where a value comes from.

    The option, the variable or the config file, with its other mistakes.
    """
    source = (
        ctx.get_parameter_source(param.name)
        if ctx is not None and param is not None and param.name
        else None
    )
    origin = "an argument" if isinstance(param, click.Argument) else setting.option
    if (
        source is ParameterSource.ENVIRONMENT
        and param is not None
        and isinstance(param.envvar, str)
    ):
        origin = param.envvar
    if source is not ParameterSource.DEFAULT_MAP or ctx is None:
        return type(error)(f"{origin}: {error.message}", remedy=error.remedy)
    # A command's settings are in its table, or in that of its group: `requests`, `batch`.
    tables = [f"{name}." for name in ctx.command_path.split()[1:]]
    is_global = setting in GLOBAL
    known = [
        f"the config file's {table}{setting.name}" for table in ([""] if is_global else tables)
    ]
    named = type(error)(f"{known[0]}: {error.message}", remedy=error.remedy)
    return run_config().add_mistakes(named, tuple(f"{each}:" for each in known))


def options(
    command: str, only: Sequence[str] | None = None, common: Sequence[str] | None = None
) -> Callable[[Function], Function]:
    """Add a command's options (`only` these, or all) and global options (`common`, or all)."""
    command_settings = [
        setting for setting in COMMANDS.get(command, ()) if only is None or setting.name in only
    ]
    names = None if common is None else (*common, DEBUG) if common else ()
    shared = [
        setting
        for setting in GLOBAL
        if not setting.secret and (names is None or setting.name in names)
    ]

    def decorate(function: Function) -> Function:
        for setting in reversed(shared):
            function = _make_option(setting, "")(function)
        for setting in reversed(command_settings):
            function = _make_option(setting, command)(function)
        return function

    return decorate


def call_arguments(
    command: str, call: Callable[..., Any], values: Mapping[str, Any], but: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the values of a command's options as arguments of the corresponding call from Python.

    `call` takes them, such as `plan_share`; `but` are names to leave out.
    """
    named = {
        ARGUMENTS.get(setting.name, setting.name): values[setting.name]
        for setting in COMMANDS[command]
    }
    return {
        name: value
        for name, value in named.items()
        if name in call.__annotations__ and name not in but
    }


EXPIRY = ("expires_in", "expires_at")
"""The options that say when something expires."""


def choose_expiry(
    ctx: click.Context, values: Mapping[str, Any], names: Sequence[str] = EXPIRY
) -> dict[str, Any]:
    """Choose one of the expiry settings.

    A flag overrides the environment, which overrides the config file.
    """
    nearest = list_nearest(ctx, values, names)
    if len(nearest) > 1:
        given = " and ".join("--" + name.replace("_", "-") for name in nearest)
        raise UsageError(f"{given} exclude each other", remedy="use only one of them")
    if nearest == ["no_expiry"]:
        return {"expires_in": None}
    return {name: values[name] for name in nearest}


def list_nearest(ctx: click.Context, values: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    """List which of the settings are given by the same, the nearest source.

    Those of sources behind it do not count.
    """
    sources = {name: ctx.get_parameter_source(name) for name in names if values[name]}
    nearest = min(sources.values(), key=SOURCE_PRIORITY.index, default=None)
    return [name for name, source in sources.items() if source is nearest]


SOURCE_PRIORITY = (
    ParameterSource.COMMANDLINE,
    ParameterSource.ENVIRONMENT,
    ParameterSource.DEFAULT_MAP,
    ParameterSource.DEFAULT,
)


def _make_option(setting: Setting, command: str) -> Callable[[Function], Function]:
    names = [setting.name, setting.option, *([setting.short] if setting.short else [])]
    keywords: dict[str, Any] = {"help": setting.help, "envvar": setting.get_variable(command)}
    if setting.name == DEBUG:
        keywords |= {"is_eager": True, "expose_value": False, "callback": _turn_on_debug}
    if setting.flag:
        return click.option(*names, is_flag=True, **keywords)
    if setting.choices:
        kind: AnyType = OneOf(setting)
    else:
        kind = SettingType(setting)
        keywords["metavar"] = setting.metavar
    if setting.default is not None:
        keywords |= {"default": setting.default, "show_default": True}
    return click.option(*names, type=kind, multiple=setting.multiple, **keywords)


def _turn_on_debug(ctx: click.Context, _: click.Parameter, value: bool) -> None:  # noqa: FBT001
    if value and not ctx.resilient_parsing:
        from sealpipe.cli import debug  # few commands print their steps

        debug.turn_on()


def run_config() -> Config:
    """Return the configuration of this run; the first call creates it."""
    run = click.get_current_context().find_root().ensure_object(dict)
    if "config" not in run:
        run["config"] = Config(os.environ)
    config: Config = run["config"]
    return config


def load_config(ctx: click.Context, names: Iterable[str]) -> None:
    """Read the user's config file for commands of these names, and warn of unknown variables."""
    config = run_config()
    for name, suggestion in config.find_unknown_variables():
        render.print_note(
            f"sealpipe: unknown variable {name}"
            + (f"; did you mean {suggestion}?" if suggestion else "")
        )
    # The doctor reports errors itself, and continues.
    user = config.usable_user if ctx.invoked_subcommand == "doctor" else config.user
    if user:
        common = {name: value for name, value in user.items() if not isinstance(value, dict)}
        ctx.default_map = {name: {**common, **get_command_table(user, name)} for name in names}
