"""`sealpipe server webhook`."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

from sealpipe.cli import render
from sealpipe.cli.server.keys import check_account
from sealpipe.cli.server.opening import open_store, plan_printing, print_secrets
from sealpipe.errors import QuotaExceededError, UsageError
from sealpipe.secret import Secret
from sealpipe_service import webhooks


def add(url: str, **values: Any) -> None:
    """Run `sealpipe server webhook add`."""
    if reason := webhooks.endpoint_url(url):
        raise UsageError(f"the URL {reason}", remedy="write it as https://HOST/PATH")
    gate = plan_printing("the secret", values)
    with open_store(values) as store:
        check_account(store, values["account"])
        try:
            endpoint = webhooks.add(
                store,
                values["account"],
                url,
                secrets.token_bytes(9),
                secrets.token_bytes(32),
            )
        except webhooks.CapacityError as error:
            raise QuotaExceededError(
                str(error),
                status=403,
                error_code=61,
                remedy="remove one, or raise --webhooks with `sealpipe server account plan`",
            ) from None
    _print_secret(endpoint, gate, values)


def rotate(webhook_id: str, **values: Any) -> None:
    """Run `sealpipe server webhook rotate`."""
    gate = plan_printing("the secret", values)
    with open_store(values) as store:
        endpoint = webhooks.rotate(store, webhook_id, secrets.token_bytes(32))
    if endpoint is None:
        raise _make_unknown_error(webhook_id)
    _print_secret(endpoint, gate, values)


def remove(webhook_id: str, **values: Any) -> None:
    """Run `sealpipe server webhook remove`."""
    with open_store(values) as store:
        is_gone = store.remove_webhook(webhook_id)
    if not is_gone:
        raise _make_unknown_error(webhook_id)
    render.print_note(f"removed {render.escape(webhook_id)}")
    if values["output"] == "json":
        render.print_json({"id": webhook_id, "removed": True})


def list_hooks(**values: Any) -> None:
    """Run `sealpipe server webhook list`."""
    with open_store(values) as store:
        states = _count_states(store.deliveries())
        found = [
            {
                "id": each.id,
                "account": each.account,
                "url": each.url,
                "deliveries": states.get(each.id, {}),
            }
            for each in webhooks.endpoints(store)
        ]
    if values["output"] == "json":
        render.print_json({"webhooks": found, "signature_header": webhooks.SIGNATURE_HEADER})
        return
    render.print_table(("ID", "ACCOUNT", "URL", "DELIVERIES"), map(_cells, found))


def _count_states(rows: Any) -> dict[str, dict[str, int]]:
    states: dict[str, dict[str, int]] = {}
    for row in rows:
        of_one = states.setdefault(row["webhook"], {})
        of_one[row["state"]] = of_one.get(row["state"], 0) + 1
    return states


def _cells(each: Mapping[str, Any]) -> tuple[str, ...]:
    told = ", ".join(f"{number} {state}" for state, number in each["deliveries"].items())
    cells = (each["id"], each["account"], each["url"])
    return (*map(render.escape, cells), told or "nothing sent yet")


def _print_secret(endpoint: webhooks.Endpoint, gate: Any, values: Mapping[str, Any]) -> None:
    header = webhooks.SIGNATURE_HEADER
    members = {
        "id": endpoint.id,
        "url": endpoint.url,
        "signature_header": header,
        "secret": endpoint.secret,
    }
    if values["output"] != "json":
        render.print_note(
            f"{render.escape(endpoint.id)} signs in the header {header}; its secret is shown only "
            "once:"
        )
    print_secrets(
        gate,
        [Secret(endpoint.secret)],
        members if values["output"] == "json" else {},
        [endpoint.secret],
    )


def _make_unknown_error(webhook_id: str) -> UsageError:
    return UsageError(
        f"there is no webhook endpoint {render.escape(webhook_id[:60])!r}",
        remedy="`sealpipe server webhook list` shows their ids",
    )
