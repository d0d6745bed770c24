"""Short codes as arguments of commands."""

from __future__ import annotations

import click

from sealpipe.cli import render
from sealpipe.cli.command import Command
from sealpipe.errors import UsageError


class CodeCommand(Command):
    """A command that takes short codes or ids, which are opaque and may begin with a dash.

    Its options begin with two dashes, and `-h` is help. So a longer word with one dash is a code,
    and so is every word after `--`.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, self._move_codes_last(args))
        except click.NoSuchOption as error:
            message = error.format_message()
        raise UsageError(
            render.escape(message),
            remedy=f"see `{ctx.command_path} --help`; put a short code that begins with a dash "
            "after --: "
            f"`{ctx.command_path} -- CODE`",
        )

    def _move_codes_last(self, args: list[str]) -> list[str]:
        """Move all words that are neither options nor their values after `--`."""
        with_value = {
            name
            for each in self.params
            if isinstance(each, click.Option) and not each.is_flag
            for name in each.opts
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
                        return args  # click reports it
                    options.append(value)
        return [*options, "--", *codes]


def _is_option(word: str) -> bool:
    """Whether a word is an option of a `CodeCommand`: `--any`, `-h` and `-x` are, `-any` is not."""
    return word.startswith("-") and (word[1:2] == "-" or len(word) == 2)


def names_receipt(word: str) -> bool:
    """Return whether a word is the path of a receipt file rather than a short code.

    It has a slash or a dot.
    """
    return not word.startswith("code:") and ("/" in word or "." in word.strip("."))
