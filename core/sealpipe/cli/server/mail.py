"""`sealpipe server mail`."""

from __future__ import annotations

import secrets
from typing import Any

from sealpipe.cli import render
from sealpipe.cli.server.hooks import describe, print_endpoints, remove_endpoint
from sealpipe.cli.server.keys import check_account
from sealpipe.cli.server.opening import open_store
from sealpipe.errors import UsageError
from sealpipe_service import mail, webhooks


def add(address: str, **values: Any) -> None:
    """Run `sealpipe server mail add`."""
    try:
        mail.check_address(address)
    except mail.MailError as error:
        raise UsageError(str(error), remedy="write it as ann@example.com") from None
    with open_store(values) as store:
        check_account(store, values["account"])
        endpoint = webhooks.add_mail(store, values["account"], address, secrets.token_bytes(9))
    if values["output"] == "json":
        render.print_json({"id": endpoint.id, "account": endpoint.account, "address": address})
    else:
        render.print_note(f"{endpoint.id}: notices of {endpoint.account} go to {address}")


def list_addresses(**values: Any) -> None:
    """Run `sealpipe server mail list`."""
    with open_store(values) as store:
        found = describe(webhooks.mail_endpoints(store), store.deliveries())
    for each in found:
        each["address"] = each.pop("url").removeprefix(webhooks.MAIL)
    if values["output"] == "json":
        render.print_json({"addresses": found})
    else:
        print_endpoints("ADDRESS", found)


def remove(mail_id: str, **values: Any) -> None:
    """Run `sealpipe server mail remove`."""
    remove_endpoint(mail_id, "address of e-mail", "mail", values, is_mail=True)
