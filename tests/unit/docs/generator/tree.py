"""The commands of the command line, as click has them, with the table of settings that each option
is from.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import click

from sealpipe.cli.main import cli
from sealpipe.command_settings import COMMANDS
from sealpipe.settings import GLOBAL, Setting


class Option(NamedTuple):
    """An option, and the table of settings that it is from; the empty name is that of the table of
    every command.
    """

    setting: Setting
    table: str


class Node(NamedTuple):
    """A command or a group with its full name, such as `sealpipe requests purge`."""

    name: str
    command: click.Command
    options: tuple[Option, ...]
    arguments: tuple[click.Argument, ...]
    children: tuple[Node, ...]

    @property
    def summary(self) -> str:
        """The first sentence of its help."""
        text = " ".join(self.help.partition("\n\n")[0].split())
        return re.split(r"(?<=[.!?]) (?=[A-Z])", text)[0]

    @property
    def help(self) -> str:
        """Its help, without indentation."""
        return "\n\n".join(
            " ".join(part.split())
            for part in re.split(r"\n\s*\n", (self.command.help or "").strip())
        )

    @property
    def runs(self) -> bool:
        """Whether it does something: all but groups that only have commands."""
        return bool(self.options) or not self.children

    def walk(self) -> Iterator[Node]:
        """Yield this command and all below it."""
        yield self
        for child in self.children:
            yield from child.walk()


_SETTINGS = {
    setting.get_variable(table): Option(setting, table)
    for table, rows in {"": GLOBAL, **COMMANDS}.items()
    for setting in rows
}


@cache
def root() -> Node:
    """Return `sealpipe` with all its commands; those of installed plugins are not among them."""
    return _read(cli, "sealpipe")


@cache
def leaves() -> tuple[Node, ...]:
    """Return every command that does something."""
    return tuple(node for node in root().walk() if node.runs)


def _read(command: click.Command, name: str) -> Node:
    context = click.Context(command, info_name=name)
    given = [param for param in command.params if isinstance(param, click.Option) and param.envvar]
    options = tuple(_SETTINGS[str(param.envvar)] for param in given)
    for option in options:
        assert not option.table or option.table in name.split(), (
            f"{name} cannot read [{option.table}]"
        )
    arguments = tuple(param for param in command.params if isinstance(param, click.Argument))
    group = command if isinstance(command, click.Group) else click.Group()
    below = [(each, group.get_command(context, each)) for each in group.list_commands(context)]
    children = tuple(_read(child, f"{name} {each}") for each, child in below if child is not None)
    return Node(name, command, options, arguments, children)


def usage(node: Node) -> str:
    """Return the synopsis of a command. Written here: versions of click differ in theirs."""
    if isinstance(node.command, click.Group):
        return f"{node.name} {'[COMMAND]' if node.options else 'COMMAND'}"
    return " ".join([node.name, "[OPTIONS]", *map(shown, node.arguments)])


def shown(argument: click.Argument) -> str:
    """Return an argument as the synopsis shows it."""
    choices = getattr(argument.type, "choices", ())
    return argument.metavar or "|".join(choices) or str(argument.name).upper()
