"""The table of commands, and groups that suggest one of theirs for another name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

from sealpipe.errors import UsageError, find_similar

COMMANDS: Mapping[str, tuple[str, str]] = {
    "share": ("sealpipe.cli.usage.share:share", "Encrypt secrets and create a share link."),
    "request": (
        "sealpipe.cli.usage.request:request",
        "Create a collect link to ask someone for secrets.",
    ),
    "collect": ("sealpipe.cli.usage.collect:collect", "Decrypt submissions and store them."),
    "batch": ("sealpipe.cli.usage.batch:batch", "Request or share secrets for each row of a file."),
    "unseal": ("sealpipe.cli.usage.unseal:unseal", "Open a link that another job sealed."),
    "run": ("sealpipe.cli.usage.run_command:run", "Run a command with secrets in its environment."),
    "read": ("sealpipe.cli.usage.read:read", "Print one value, byte for byte."),
    "copy": (
        "sealpipe.cli.usage.copy:copy",
        "Copy secrets from store to store, or rotate one in all its places.",
    ),
    "shares": ("sealpipe.cli.usage.shares:shares", "List, show and expire shares."),
    "stats": (
        "sealpipe.cli.usage.account:stats",
        "Show how many shares exist and how often they were viewed.",
    ),
    "tools": (
        "sealpipe.cli.usage.account:tools",
        "List and call the tools of the hosted MCP endpoint.",
    ),
    "mcp": ("sealpipe.cli.usage.mcp:mcp", "Serve tools to assistants, as a local MCP server."),
    "webhooks": (
        "sealpipe.cli.usage.webhooks:webhooks",
        "Verify the signature of the service's webhooks.",
    ),
    "requests": (
        "sealpipe.cli.usage.requests:requests",
        "List, show, remind of, expire and purge requests.",
    ),
    "resume": (
        "sealpipe.cli.usage.resume:resume",
        "Finish interrupted shares and requests from the outbox.",
    ),
    "doctor": (
        "sealpipe.cli.usage.doctor:doctor",
        "Diagnose settings, credential, connectivity and scopes.",
    ),
    "plugins": ("sealpipe.cli.usage.plugins:plugins", "List installed plugins."),
    "audit": ("sealpipe.cli.usage.audit:audit", "Verify an audit log."),
    "custody": (
        "sealpipe.cli.usage.custody:custody",
        "Make a custody secret; print the credential's public key.",
    ),
    "rehearse": (
        "sealpipe_rehearsal.commands:rehearse",
        "Take a tour, or run a command, against a local service.",
    ),
    "rehearsal": (
        "sealpipe_rehearsal.commands:rehearsal",
        "Run the local service and manage its keys and accounts.",
    ),
    "server": (
        "sealpipe.cli.usage.server:server",
        "Run a service of your own, and manage it.",
    ),
    "completion": (
        "sealpipe.cli.completion_scripts:completion",
        "Print a shell completion script.",
    ),
}
"""Each command's module and summary: `--help` imports none of them."""


class Group(click.Group):
    """A group that suggests the nearest of its commands, or lists them."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            if args[0].startswith("-"):
                raise
        names = self.list_commands(ctx)
        remedy = f"see `{ctx.command_path} --help`"
        near = self.suggest(args[0].lower(), names)
        if not near and len(names) <= _MAX_LISTED:
            remedy = f"it has {', '.join(names)}: {remedy}"
        raise UsageError(
            f"No such command {args[0]!r}.{f' Did you mean {near!r}?' if near else ''}",
            remedy=remedy,
        )

    def suggest(self, word: str, names: Sequence[str]) -> str | None:
        """Return the nearest name, or what other tools' name stands for; None if there is none."""
        others = [each for each in _OTHER_NAMES.get(word, ()) if each in names]
        return next(iter([*others, *find_similar(word, names)]), None)


_MAX_LISTED = 10
"""More commands are not listed in an error."""
_OTHER_NAMES: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(
        ("delete", "remove", "rm", "del", "end", "stop"), ("expire", "revoke", "cancel", "remove")
    ),
    **dict.fromkeys(("ls", "all"), ("list",)),
    **dict.fromkeys(("get", "info", "view", "describe"), ("show", "status")),
    **dict.fromkeys(("new", "add", "create", "make", "generate"), ("create", "add")),
    **dict.fromkeys(("start", "up", "server"), ("serve", "run")),
    **dict.fromkeys(("login", "auth", "whoami", "configure", "config", "init"), ("doctor",)),
}
"""What other tools call commands, and the names here that mean the same."""
