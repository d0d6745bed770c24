"""`sealpipe requests link` and `remind`: a request's collect link, printed or sent once more."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from sealpipe.cli import deliver, disclosure, render
from sealpipe.cli.codes import names_receipt
from sealpipe.cli.local import find_state_folder
from sealpipe.cli.opening import make_session, open_outbox
from sealpipe.client_base import connect
from sealpipe.delivery.recipients import plan_delivery
from sealpipe.errors import DeliveryError, SettingError, UsageError
from sealpipe.request.create import SecureRequest
from sealpipe.request.remind import Answered, OpenRequest
from sealpipe.request.remind import remind as reminding
from sealpipe.state.creations import Creation, list_creations
from sealpipe.state.outbox import Outbox
from sealpipe.state.receipt import read_receipt
from sealpipe.wire.encoding import names
from sealpipe.wire.link import collect_link, refuse_link


def link(request: str | None, **values: Any) -> None:
    """Run `sealpipe requests link`."""
    found = _find_request(request, values["name"], values["base_url"], values)
    collect_link = found.link or _build_link(found.short_code, values["link_base_url"])
    if values["output"] == "json":
        names = {"name": found.name, "title": found.title}
        render.print_json({"collect_link": collect_link, "short_code": found.short_code, **names})
    else:
        render.print_lines([collect_link])


def remind(request: str | None, **values: Any) -> None:
    """Run `sealpipe requests remind`."""
    if not values["send"]:
        raise UsageError("there is no recipient", remedy="name a channel: --send CHANNEL")
    plan = plan_delivery(values["send"], (), values["param"], None, with_passcode=False)
    session = make_session(values)
    found = _find_request(request, values["name"], session.base_url, values)
    disclosure.get_ci(session.registry)  # if it cannot be used, nothing is sent
    outbox = open_outbox(values, session.credential)
    _refuse_second(outbox, found.short_code)
    with closing(connect(session)):
        prepared = reminding(session, found, plan, outbox)
        if isinstance(prepared, SecureRequest):
            created = find_state_folder(values, "created")
            gate, as_json = disclosure.NO_DISCLOSURE, values["output"] == "json"
            deliver.finish(session, prepared, {}, gate, created=created, as_json=as_json)
            return
    _print_answered(found, prepared, as_json=values["output"] == "json")


def _print_answered(request: OpenRequest, answered: Answered, *, as_json: bool) -> None:
    count, code = (
        render.count(answered.submissions, "submission"),
        render.escape(request.short_code),
    )
    render.print_note(
        f"{code} has {count}{' and has expired' if answered.is_over else ''}: no reminder was sent"
    )
    if as_json:
        members = {
            "short_code": request.short_code,
            "outcome": "answered",
            "submissions": answered.submissions,
        }
        render.print_json(
            {"collect_link": None, **members, "title": request.title, "delivered": []}
        )


def _find_request(
    word: str | None, name: str | None, base_url: str | None, values: Mapping[str, Any]
) -> OpenRequest:
    """Return the request that a receipt, a short code or a name stands for. Raises UsageError."""

    if (word is None) is (name is None):
        raise UsageError(
            "give a request or a name, one of the two",
            remedy="give a receipt, a short code, or --name",
        )
    if word is not None:
        refuse_link(word)
    if word is not None and names_receipt(word):
        return _read_receipt(Path(word))
    return _choose(word, name, base_url, values)


def _read_receipt(path: Path) -> OpenRequest:
    receipt = read_receipt(path)
    labels = tuple((each.text, each.type) for each in receipt.prompts)
    return OpenRequest(
        receipt.short_code, receipt.public_key, receipt.link, receipt.name, receipt.title, labels
    )


def _choose(
    word: str | None, name: str | None, base_url: str | None, values: Mapping[str, Any]
) -> OpenRequest:
    """Return the request that this machine's ledger has under a short code or a name."""

    known = list_creations(find_state_folder(values, "created"), "request", base_url)
    found = [
        each
        for each in known
        if (each.name == name if word is None else names(_plain(word), each.short_code))
    ]
    if len(found) != 1 or not found[0].public_key:
        raise _make_choice_error("that code" if word is not None else f"the name {name}", found)
    (one,) = found
    return OpenRequest(one.short_code, one.public_key or "", one.link, one.name, one.title)


def _plain(word: str) -> str:
    return word.removeprefix("code:")


def _make_choice_error(what: str, found: list[Creation]) -> UsageError:
    if not found:
        return UsageError(
            f"this machine knows no request of {what}",
            remedy="give its receipt; or run this on the machine that created it",
        )
    codes = ", ".join(render.escape(each.short_code) for each in found)
    return UsageError(
        f"this machine knows several requests of {what}: {codes}", remedy="give a code or a receipt"
    )


def _build_link(short_code: str, link_base_url: str | None) -> str:
    """Build the link of a receipt that does not have it."""

    if link_base_url is None:
        raise SettingError(
            "the receipt has no link, and SEALPIPE_LINK_BASE_URL is not set, or empty",
            remedy="set SEALPIPE_LINK_BASE_URL to the address that the service's links start with",
        )
    return collect_link(link_base_url, short_code)


def _refuse_second(outbox: Outbox, short_code: str) -> None:
    """Raise DeliveryError if an earlier reminder of the request is not finished.

    Its message may have arrived.
    """
    for listed in outbox.list(every_run=True):
        if listed.damage or listed.key_id != outbox.credential.key_id:
            continue
        entry = outbox.open(listed.id)
        if isinstance(entry, str):
            continue  # another command is working on it
        try:
            if (
                entry.meta.get("is_reminder")
                and (entry.response or {}).get("short_code") == short_code
            ):
                raise DeliveryError(
                    (
                        f"an earlier reminder of {render.escape(short_code)} is not finished: "
                        f"{entry.label}"
                    ),
                    remedy=f"finish it with `{entry.commands.finish}`, or drop it with --discard",
                    outbox_id=entry.id,
                )
        finally:
            entry.close()
