"""`sealpipe server webhook`."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from sealpipe.cli import render
from sealpipe.cli.server.keys import check_account
from sealpipe.cli.server.opening import (
    open_store,
    plan_printing,
    print_secrets,
    read_webhook_key,
)
from sealpipe.errors import QuotaExceededError, UsageError, quote_input
from sealpipe.secret import Secret
from sealpipe_service import webhooks
from sealpipe_service.database.access import Row
from sealpipe_service.sealing import WebhookSeals


def add(url: str, **values: Any) -> None:
    """Run `sealpipe server webhook add`."""
    reason = webhooks.endpoint_url(url)
    if reason or not url.startswith("https:"):  # a rehearsal's may be http on its machine
        raise UsageError(
            f"the URL {reason or 'must be https'}", remedy="write it as https://HOST/PATH"
        )
    seals = _read_seals(values)
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
                seals,
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
    seals = _read_seals(values)
    gate = plan_printing("the secret", values)
    with open_store(values) as store:
        endpoint = webhooks.rotate(store, webhook_id, secrets.token_bytes(32), seals)
    if endpoint is None:
        raise make_unknown_error("webhook endpoint", webhook_id, "webhook")
    _print_secret(endpoint, gate, values)


def _read_seals(values: Mapping[str, Any]) -> WebhookSeals:
    key = read_webhook_key(values)
    if key is None:
        raise UsageError(
            "no key is named that the secrets of webhooks are sealed under",
            remedy="add --webhook-key file:PATH, as for `sealpipe server run`; "
            "`sealpipe read gen:hex?bytes=32` makes one",
        )
    return WebhookSeals(key.reveal())


def remove(webhook_id: str, **values: Any) -> None:
    """Run `sealpipe server webhook remove`."""
    remove_endpoint(webhook_id, "webhook endpoint", "webhook", values, is_mail=False)


def remove_endpoint(
    given: str, what: str, group: str, values: Mapping[str, Any], *, is_mail: bool
) -> None:
    """Remove a webhook endpoint, or an address of e-mail. UsageError if there is none such."""
    with open_store(values) as store:
        found = webhooks.find(store, given)
        is_one = found is not None and (found.mail_address is not None) == is_mail
        is_gone = is_one and store.remove_webhook(given)
    if not is_gone:
        raise make_unknown_error(what, given, group)
    render.print_note(f"removed {render.escape(given)}")
    if values["output"] == "json":
        render.print_json({"id": given, "removed": True})


def list_hooks(**values: Any) -> None:
    """Run `sealpipe server webhook list`."""
    with open_store(values) as store:
        found = describe(webhooks.endpoints(store), store.deliveries())
    if values["output"] == "json":
        render.print_json({"webhooks": found, "signature_header": webhooks.SIGNATURE_HEADER})
    else:
        print_endpoints("URL", found)


def describe(
    endpoints: Sequence[webhooks.Endpoint], deliveries: Sequence[Row]
) -> list[dict[str, Any]]:
    """Return what a list has of endpoints."""
    states, answers = _count_states(deliveries), _find_answers(deliveries)
    return [
        {
            "id": each.id,
            "account": each.account,
            "url": each.url,
            "deliveries": states.get(each.id, {}),
            "last_answer": answers.get(each.id),
        }
        for each in endpoints
    ]


def print_endpoints(where: str, found: Sequence[Mapping[str, Any]]) -> None:
    """Print a list of endpoints, whose member named `where` says where its deliveries go."""
    rows = [_cells(each, each[where.lower()]) for each in found]
    render.print_table(("ID", "ACCOUNT", where, "DELIVERIES"), rows)


def _count_states(rows: Sequence[Row]) -> dict[str, dict[str, int]]:
    states: dict[str, dict[str, int]] = {}
    for row in rows:
        of_one = states.setdefault(row["webhook"], {})
        of_one[row["state"]] = of_one.get(row["state"], 0) + 1
    return states


def _find_answers(rows: Sequence[Row]) -> dict[str, str]:
    """Return the status or the error of each endpoint's latest delivery that was tried."""
    return {row["webhook"]: row["answered"] for row in rows if row["answered"] is not None}


def _cells(each: Mapping[str, Any], where: str) -> tuple[str, ...]:
    told = ", ".join(f"{number} {state}" for state, number in each["deliveries"].items())
    if each["last_answer"] is not None:
        told = f"{told}; last answer: {each['last_answer']}"
    cells = (each["id"], each["account"], where, told or "nothing sent yet")
    return tuple(map(render.escape, cells))


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
    print_secrets(gate, values, [Secret(endpoint.secret)], members, [endpoint.secret])


def make_unknown_error(what: str, given: str, group: str) -> UsageError:
    """Return the error for an id that no endpoint has."""
    return UsageError(
        f"there is no {what} {quote_input(given)}",
        remedy=f"`sealpipe server {group} list` shows their ids",
    )
