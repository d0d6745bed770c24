"""`sealpipe server`: options and help."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click

from sealpipe.cli.codes import CodeCommand
from sealpipe.cli.command import Command, SettingsGroup, options
from sealpipe.errors import UsageError
from sealpipe.installation import format_command

_PACKAGES = ("alembic", "psycopg", "sqlalchemy", "starlette", "uvicorn")
COMMON = ("ca_file", "deadline", "output")
"""Global options of all these commands: the first two are for the reference to the database."""


def _run(module: str, function: str, *arguments: str, **values: Any) -> None:
    """Run a command, whose packages may be missing."""
    try:
        room = import_module(f"sealpipe.cli.server.{module}")
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in _PACKAGES:
            raise
        raise UsageError(
            f"a service of your own needs {error.name}, which is not installed",
            remedy=format_command(["sealpipe[server]"]),
        ) from None
    getattr(room, function)(*arguments, **values)


@click.group(cls=SettingsGroup)
def server() -> None:
    """Run a service of your own, and manage its keys and accounts in its database."""


@server.command(cls=Command)
@options("server", only=("database", "public_url", "tag", "account", "name", "plan"), common=COMMON)
@options("server", only=("print",), common=())
def init(**values: Any) -> None:
    """Make the tables, the first account and its key, and print what a client sets.

    The account has Enterprise limits unless --plan says otherwise; the key has every scope. The
    three lines are printed once: the database has no secret of the key.
    """
    _run("serving", "init", **values)


@server.command(cls=Command)
@options(
    "server",
    only=(
        "database",
        "public_url",
        "workers",
        "listen",
        "socket",
        "tls_cert",
        "tls_key",
        "trusted_proxy",
        "webhook_key",
        "webhook_network",
        "log_addresses",
        "smtp",
        "mail_from",
        "metrics",
        "shutdown_delay",
    ),
    common=COMMON,
)
def run(**values: Any) -> None:
    """Serve until it is told to stop (SIGTERM), then finish open calls, for 30 seconds at most.

    Without TLS it listens on this machine only, or answers the proxy that --trusted-proxy names.
    """
    _run("serving", "run", **values)


@server.group(cls=SettingsGroup)
def account() -> None:
    """Accounts and organisations, and their limits."""


@account.command("list", cls=Command)
@options("server", only=("database",), common=COMMON)
def list_accounts(**values: Any) -> None:
    """List accounts and organisations with their limits."""
    _run("accounts", "list_accounts", **values)


@account.command("add", cls=Command)
@click.argument("name")
@options("server", only=("database", "plan"), common=COMMON)
def add_account(name: str, **values: Any) -> None:
    """Add an account, or an organisation as org:NAME. It has Enterprise limits unless --plan."""
    _run("accounts", "add", name, **values)


@account.command("plan", cls=Command)
@click.argument("name")
@options(
    "server",
    only=(
        "database",
        "plan",
        "rate",
        "keys",
        "shares",
        "webhooks",
        "view_protection",
        "zero_knowledge",
    ),
    common=COMMON,
)
def change_plan(name: str, **values: Any) -> None:
    """Show or change the limits of an account. A change takes effect within 30 seconds."""
    _run("accounts", "change_plan", name, **values)


@server.group(cls=SettingsGroup)
def key() -> None:
    """API keys."""


@key.command("create", cls=Command)
@options(
    "server",
    only=("database", "account", "org", "name", "scope", "custody", "custody_public_key", "print"),
    common=COMMON,
)
def create_key(**values: Any) -> None:
    """Create an API key and print the credential, once. The database has no secret of it.

    Whoever makes a custody secret can read what is sealed to it. With --custody-public-key the
    client has made its own, and this machine never has it.
    """
    _run("keys", "create", **values)


@key.command("list", cls=Command)
@options("server", only=("database",), common=COMMON)
def list_keys(**values: Any) -> None:
    """List API keys, oldest first, including revoked ones."""
    _run("keys", "list_keys", **values)


@key.command("revoke", cls=CodeCommand)
@click.argument("key_id")
@options("server", only=("database",), common=COMMON)
def revoke_key(key_id: str, **values: Any) -> None:
    """Revoke an API key. Its next call is refused, and its slot becomes free at once."""
    _run("keys", "revoke", key_id, **values)


@server.group(cls=SettingsGroup)
def custody() -> None:
    """Custody of API keys."""


@custody.command(cls=CodeCommand)
@click.argument("key_id")
@options("server", only=("database",), common=COMMON)
def approve(key_id: str, **values: Any) -> None:
    """Approve custody `account` for a key that asked for it."""
    _run("keys", "approve", key_id, **values)


@server.group(cls=SettingsGroup)
def webhook() -> None:
    """Webhook endpoints of accounts."""


@webhook.command("add", cls=Command)
@click.argument("url")
@options("server", only=("database", "account", "webhook_key", "print"), common=COMMON)
def add_webhook(url: str, **values: Any) -> None:
    """Send an account's events to a URL, and print the secret that signs them, once."""
    _run("hooks", "add", url, **values)


@webhook.command("list", cls=Command)
@options("server", only=("database",), common=COMMON)
def list_webhooks(**values: Any) -> None:
    """List endpoints, oldest first, and the state of their deliveries."""
    _run("hooks", "list_hooks", **values)


@webhook.command("rotate", cls=CodeCommand)
@click.argument("webhook_id")
@options("server", only=("database", "webhook_key", "print"), common=COMMON)
def rotate_webhook(webhook_id: str, **values: Any) -> None:
    """Create a new secret for an endpoint and print it. For 24 hours both secrets sign."""
    _run("hooks", "rotate", webhook_id, **values)


@webhook.command("remove", cls=CodeCommand)
@click.argument("webhook_id")
@options("server", only=("database",), common=COMMON)
def remove_webhook(webhook_id: str, **values: Any) -> None:
    """Remove an endpoint and its pending deliveries."""
    _run("hooks", "remove", webhook_id, **values)


@server.group(cls=SettingsGroup)
def mail() -> None:
    """Addresses of e-mail that notices of accounts go to."""


@mail.command("add", cls=Command)
@click.argument("address")
@options("server", only=("database", "account"), common=COMMON)
def add_mail(address: str, **values: Any) -> None:
    """Send an account's notices to an address: those that shares ask for, and of submissions."""
    _run("mail", "add", address, **values)


@mail.command("list", cls=Command)
@options("server", only=("database",), common=COMMON)
def list_mail(**values: Any) -> None:
    """List addresses, oldest first, and the state of their mails."""
    _run("mail", "list_addresses", **values)


@mail.command("remove", cls=CodeCommand)
@click.argument("mail_id")
@options("server", only=("database",), common=COMMON)
def remove_mail(mail_id: str, **values: Any) -> None:
    """Remove an address and its pending mails."""
    _run("mail", "remove", mail_id, **values)


@server.group(cls=SettingsGroup)
def database() -> None:
    """The service's database."""


@database.command(cls=Command)
@options("server", only=("database",), common=COMMON)
def upgrade(**values: Any) -> None:
    """Upgrade the tables to this version. On PostgreSQL the version before goes on serving."""
    _run("database", "upgrade", **values)


@database.command(cls=Command)
@options("server", only=("database",), common=COMMON)
def check(**values: Any) -> None:
    """Check that the database answers, and that its tables are of this version."""
    _run("database", "check", **values)


@database.command(cls=Command)
@click.argument("file")
@options("server", only=("database",), common=COMMON)
def backup(file: str, **values: Any) -> None:
    """Copy the database into a new file (mode 0600), also while it is served."""
    _run("database", "backup", file, **values)


@server.command(cls=Command)
@options("server", only=("database", "older_than", "force"), common=COMMON)
def purge(**values: Any) -> None:
    """Delete requests that ended long ago, with their submissions, for good."""
    _run("database", "purge", **values)
