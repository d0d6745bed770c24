"""`sealpipe rehearsal webhook add | list | remove | rotate`: manage webhook endpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from sealpipe.cli import render
from sealpipe.cli.codes import CodeCommand
from sealpipe.cli.command import Command, SettingsGroup, options
from sealpipe_rehearsal.commands.keys import call_service

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sealpipe_rehearsal.control_client import Webhook


@click.group(cls=SettingsGroup)
def webhook() -> None:
    """Manage the webhook endpoints of a running rehearsal service."""


@webhook.command(cls=Command)
@click.argument("url")
@options("webhook", common=("output",))
@options("rehearsal", only=("port",), common=())
def add(url: str, port: int, account: str, **values: Any) -> None:
    """Send an account's events to a URL: https, or http on this machine.

    Prints the secret that signs them. It is shown only once.
    """
    from sealpipe_rehearsal.control_client import add_webhook

    _print_secret(
        call_service(port, lambda origin: add_webhook(origin, url, account=account)),
        as_json=values["output"] == "json",
    )


@webhook.command("list", cls=Command)
@options("rehearsal", only=("port",), common=("output",))
def list_(port: int, **values: Any) -> None:
    """List endpoints, oldest first: id, account, URL and the state of their deliveries."""
    from sealpipe_rehearsal.control_client import list_webhooks

    members = call_service(port, list_webhooks)
    if values["output"] == "json":
        render.print_json(members)
        return
    render.print_lines(map(_line, members["webhooks"]))


@webhook.command(cls=CodeCommand)
@click.argument("webhook_id")
@options("rehearsal", only=("port",), common=("output",))
def remove(webhook_id: str, port: int, **values: Any) -> None:
    """Remove an endpoint. Nothing more is sent to it, and its slot is free at once."""
    from sealpipe_rehearsal.control_client import remove_webhook

    call_service(port, lambda origin: remove_webhook(origin, webhook_id))
    render.print_note(f"removed {render.escape(webhook_id)}")
    if values["output"] == "json":
        render.print_json({"id": webhook_id, "removed": True})


@webhook.command(cls=CodeCommand)
@click.argument("webhook_id")
@options("rehearsal", only=("port",), common=("output",))
def rotate(webhook_id: str, port: int, **values: Any) -> None:
    """Create a new secret for an endpoint and print it. For 24 hours both secrets sign."""
    from sealpipe_rehearsal.control_client import rotate_webhook

    _print_secret(
        call_service(port, lambda origin: rotate_webhook(origin, webhook_id)),
        as_json=values["output"] == "json",
    )


def _print_secret(hook: Webhook, *, as_json: bool) -> None:
    if as_json:
        members = {
            "id": hook.id,
            "url": hook.url,
            "signature_header": hook.header,
            "secret": hook.secret.reveal(),
        }
        render.print_json(members)
        return
    render.print_note(
        f"{render.escape(hook.id)} signs in the header {render.escape(hook.header)}; its "
        "secret is shown only once:"
    )
    render.print_result(f"{render.escape(hook.secret.reveal())}\n")


def _line(each: Mapping[str, Any]) -> str:
    states = (
        ", ".join(f"{number} {state}" for state, number in each["deliveries"].items())
        or "nothing sent yet"
    )
    return "\t".join(
        render.escape(part) for part in (each["id"], each["account"], each["url"], states)
    )
