"""Who follows a tutorial word for word, and notices where it is wrong."""

from __future__ import annotations

import base64
import difflib
import json
from collections.abc import Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, Self

from e2e.tutorials.page import Block, Command, Page, PageError
from e2e.tutorials.shapes import Shapes
from e2e.tutorials.shell import Shell

if TYPE_CHECKING:
    from e2e.tutorials.assistant import Call


HOME: Final = "/home/ann"
"""The reader's home, on each page."""


class Home(Protocol):
    """What a reader needs of a machine: `e2e.tutorials.machine.Machine`."""

    environ: dict[str, str]

    def recall(self, typed: str) -> bool: ...
    def remember(self, typed: str) -> None: ...


class Reader:
    """A reader at a machine, in a new folder. As a context manager, it closes its terminals."""

    def __init__(self, machine: Home, folder: Path) -> None:
        self._machine, self._folder = machine, folder
        self._shapes = Shapes()
        self._terminals: list[Shell] = []
        self._at = 0
        self._last = ""
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def follow(self, page: Page, steps: Sequence[int] | None = None) -> None:
        """Follow a page, or some of its steps. Raises `PageError` where it is wrong."""
        for block in page.blocks:
            if steps is not None and block.step not in steps:
                continue
            for other, low, high in block.first:
                self.follow(Page.load(other), range(low, high + 1))
            self._take(page.name, block)

    def _take(self, name: str, block: Block) -> None:
        if block.file:
            file = self._folder / block.file
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(self._shapes.filled("\n".join(block.body)) + "\n", encoding="utf-8")
        elif block.tool:
            sent = json.loads(self._shapes.filled("\n".join(block.body)))
            self._last = json.dumps(self.assistant(block.tool, sent), indent=2)
        elif block.is_answer:
            shown = json.dumps(json.loads("\n".join(block.body)), indent=2).splitlines()
            if not self._shapes.match(shown, self._last):
                raise PageError(_difference(name, block.line, "the call before", shown, self._last))
        elif block.language == "text":
            lines = [line for each in block.body for line in (each, "...")]
            if not self._shapes.match(["...", *lines], self._last):
                raise PageError(
                    _difference(name, block.line, "the command before", block.body, self._last)
                )
        else:
            self._at = self._at if block.terminal is None else block.terminal
            commands = list(block.commands())
            for command in commands:
                self._type(name, block, command, is_last=command is commands[-1])

    def _type(self, name: str, block: Block, command: Command, *, is_last: bool) -> None:
        typed, shell = self._shapes.filled(command.typed), self._terminal()
        if is_last and block.is_left_running:
            shown = list(command.printed or ())
            self._last = self._shown(
                shell.leave_running(
                    typed, lambda came: self._shapes.match(shown, self._shown(came))
                )
            )
            if not self._shapes.match(shown, self._last):
                raise PageError(_difference(name, command.line, typed, shown, self._last))
            return
        if self._machine.recall(typed):
            return
        code, came = shell.run(typed)
        self._last = self._shown(came)
        wanted = block.code if is_last else 0
        if code != wanted:
            problem = f"exit code {code}, not {wanted}; it printed:\n{self._last}"
            raise PageError(f"{name}:{command.line}: {typed}\n{problem}")
        shown = command.printed
        if shown is not None and not self._shapes.match(
            shown, self._last, in_any_order=block.in_any_order
        ):
            raise PageError(_difference(name, command.line, typed, shown, self._last))
        self._machine.remember(typed)

    @cached_property
    def assistant(self) -> Call:
        """The reader's assistant, started in this terminal by the configuration in this folder."""
        from e2e.tutorials.assistant import started  # whose import takes a second

        _, text = self._terminal().run("env -0 | base64 --wrap=0")
        environ = dict(
            row.split("=", 1) for row in base64.b64decode(text).decode().split("\0") if row
        )
        return self._stack.enter_context(started(self._folder / ".mcp.json", environ))

    def _shown(self, came: str) -> str:
        """What came, as the page shows it: its reader is Ann."""
        return came.replace(self._machine.environ["HOME"], HOME)

    def _terminal(self) -> Shell:
        """The terminal in front of the reader: a new one begins in the same folder."""
        while len(self._terminals) <= self._at:
            self._terminals.append(
                self._stack.enter_context(Shell(self._machine.environ, self._folder))
            )
        return self._terminals[self._at]


def _difference(name: str, line: int, typed: str, shown: Sequence[str], came: str) -> str:
    lines = difflib.unified_diff(shown, came.splitlines(), "the page", "printed", n=9, lineterm="")
    return "\n".join([f"{name}:{line}: {typed}", *lines])
