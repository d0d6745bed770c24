"""The generated parts of docs/reference/settings.md: every variable and key of the config file,
with its commands.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile

from sealpipe.command_settings import COMMANDS
from sealpipe.settings import GLOBAL, Setting
from unit.docs.generator.markdown import code, escape, table
from unit.docs.generator.tree import Option, root


def shared() -> str:
    """Return the settings that are not of one command."""
    rows = (
        (code(row.get_variable()), _about(row) + (" Not in the config file." if row.secret else ""))
        for row in GLOBAL
    )
    return table(("variable", "is"), rows)


def of_commands() -> str:
    """Return the settings of each table, under the full names of the commands that read them."""
    return "\n".join(_section(name, rows) for name, rows in COMMANDS.items())


def _section(name: str, rows: tuple[Setting, ...]) -> str:
    commands = _commands(Option(row, name) for row in rows)
    several = len({tuple(_commands([Option(row, name)])) for row in rows}) > 1
    title = ", ".join(commands) if len(commands) < 3 else _common(commands)
    link = f"[{title}](commands/{commands[0].split()[1]}.md)"
    lines = [
        (
            code(row.get_variable(name)),
            _about(row) + (f" Of {_shorten(_commands([Option(row, name)]))}." if several else ""),
        )
        for row in rows
    ]
    return (
        f"### {title}\n\n`[{name}]` in the config file; options of {link}.\n\n"
        f"{table(('variable', 'is'), lines)}"
    )


def _commands(options: Iterable[Option]) -> list[str]:
    """Return the full names of the commands that have one of these options."""
    wanted = set(options)
    return [node.name for node in root().walk() if wanted & set(node.options)]


def _common(commands: list[str]) -> str:
    columns = zip(*(name.split() for name in commands), strict=False)
    return " ".join(words[0] for words in takewhile(lambda words: len(set(words)) == 1, columns))


def _shorten(commands: list[str]) -> str:
    return ", ".join(code(name.removeprefix("sealpipe ")) for name in commands)


def _about(row: Setting) -> str:
    default = f" Default: {code(row.default)}." if row.default else ""
    choices = f" One of {', '.join(map(code, row.choices))}." if row.choices else ""
    return escape(row.help) + choices + default + (" One per line." if row.multiple else "")
