"""`exec:NAME?arg=VALUE`: the standard output of a command from the user's config file.

A reference names a command and may fill in one argument, but cannot choose the program. No shell is
used.
"""

from __future__ import annotations

import re
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from sealpipe.plugin import (
    Context,
    Document,
    Health,
    Locator,
    NotConfiguredError,
    PluginError,
    ReferenceValueError,
    Source,
)
from sealpipe.plugin.settings import PluginSettings
from sealpipe_plugins import program


class Command(BaseModel):
    """A command. In `argv`, `{arg}` is replaced by the reference's `arg=`, except in the first
    word.

    `arg_pattern` is a regular expression that must match the whole `arg=`. `timeout` is in seconds
    (None: the plugin's); with `allow_dash`, `arg=` may begin with a dash.
    """

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True, frozen=True)

    argv: tuple[str, ...] = Field(min_length=1)
    arg_pattern: re.Pattern[str] | None = None
    allow_dash: bool = False
    timeout: float | None = Field(None, gt=0, le=3600)


class ExecSettings(PluginSettings):
    """`commands` by name; `timeout` is in seconds, for commands without their own."""

    commands: dict[str, Command] = Field(default_factory=dict)
    timeout: float = Field(30.0, gt=0, le=3600)

    file_only = frozenset({"commands"})


PLACEHOLDER: Final = "{arg}"
_CONFIGURE: Final = (
    'write [{table}.{store}.commands.NAME] with argv = ["/path/of/program", ...] into the '
    "config file"
)


class ExecSource(Source):
    """The commands in the user's config file."""

    concurrency = 4

    def __init__(self, settings: ExecSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._remedy = _CONFIGURE.format(
            table="stores" if context.named else "plugins", store=context.store
        )
        for name, command in settings.commands.items():
            if (
                not command.argv[0]
                or PLACEHOLDER in command.argv[0]
                or any("\0" in word for word in command.argv)
            ):
                raise NotConfiguredError(
                    (
                        f"{context.store}: the command {name[:40]} has no program: the first "
                        "word of argv is its path"
                    ),
                    remedy=self._remedy,
                )

    def fetch(self, locator: Locator) -> Document:
        """Run the command and return its output."""
        name, command = self._find_command(locator)
        environ = self.context.child_environ()
        argv = _fill_arguments(command, name, locator)
        path = program.find_program(
            argv[0], environ, f"correct argv of the command {name} in the config file"
        )
        is_configured = command.timeout is not None or "timeout" in self.settings.model_fields_set
        timeout = program.effective_timeout(
            command.timeout or self.settings.timeout,
            self.context.deadline,
            is_configured=is_configured,
        )
        try:
            result = program.run_program(
                [path, *argv[1:]], f"the command {name}", environ=environ, timeout=timeout
            )
        except program.ProgramTimeoutError:
            result = None
        if result is None:
            # not UnavailableError, which is retried: the command may not be safe to run twice
            raise PluginError(
                f"the command {name} did not finish within {timeout:g} s and was killed",
                remedy=(
                    "it gets no standard input and no terminal: if it needs none, set a longer "
                    "timeout for it"
                ),
            )
        if result.status:
            stderr_note = (
                f" ({result.errors_length} bytes, not shown here)" if result.errors_length else ""
            )
            raise PluginError(
                f"the command {name} {result.outcome}",
                remedy=f"run it by hand: its stderr says why{stderr_note}",
            )
        return Document(result.out)

    def check(self) -> Health:
        """Check that each command's program exists. Runs none."""
        missing = []
        for name, command in sorted(self.settings.commands.items()):
            try:
                program.find_program(command.argv[0], self.context.child_environ(), "")
            except NotConfiguredError as error:
                missing.append(f"{name}: {error.message}")
        names = (
            ", ".join(sorted(self.settings.commands)) or f"no command is configured; {self._remedy}"
        )
        return Health(
            ok=bool(self.settings.commands) and not missing, detail="; ".join(missing) or names
        )

    def _find_command(self, locator: Locator) -> tuple[str, Command]:
        commands = self.settings.commands
        if locator.body in commands:
            return locator.body, commands[locator.body]
        if not commands:
            raise NotConfiguredError(
                f"{locator.name}: runs only commands from the config file, and it has none",
                locator=f"{locator.name}:",
                remedy=self._remedy,
            )
        # not shown: it may be a whole command line with a secret in it
        raise ReferenceValueError(
            f"{locator.name}: the config file has no such command",
            locator=f"{locator.name}:",
            remedy=(
                f"write {locator.name}:NAME; the commands are {', '.join(sorted(commands)[:20])}"
            ),
        )


def _fill_arguments(command: Command, name: str, locator: Locator) -> list[str]:
    """Return argv.

    `arg=` stays within one argument, and cannot be an option unless the config allows it.
    """
    argv, value = list(command.argv), locator.param("arg")
    takes_argument = any(PLACEHOLDER in word for word in argv)
    if value is None and takes_argument:
        raise ReferenceValueError(
            f"the command {name} needs an argument", remedy=f"write {locator.name}:{name}?arg=VALUE"
        )
    if value is None:
        return argv
    if not takes_argument:
        raise ReferenceValueError(
            f"the command {name} takes no argument", remedy=f"write {locator.name}:{name}"
        )
    if not value:
        raise ReferenceValueError(
            f"the argument of the command {name} is empty", remedy="give arg= a value"
        )
    if value.startswith("-") and not command.allow_dash:
        raise ReferenceValueError(
            f"the argument of the command {name} begins with a dash, as an option does",
            remedy=f"set allow_dash = true for {name} in the config file if this is intended",
        )
    if command.arg_pattern is not None and not command.arg_pattern.fullmatch(value):
        raise ReferenceValueError(
            f"the argument of the command {name} is not allowed by the config file",
            remedy=f"see arg_pattern of {name}",
        )
    return [word.replace(PLACEHOLDER, value) for word in argv]
