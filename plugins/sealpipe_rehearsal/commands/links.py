"""`sealpipe rehearsal open | answer`: what the people at the other end of a link do, for a script that rehearses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from sealpipe.cli import render
from sealpipe.cli.options import Command, options
from sealpipe.errors import UsageError

T = TypeVar("T")


@click.command("open", cls=Command)
@options("open", common=("output",))
def open_link(link: str, passcode_from: str | None, **values: Any) -> None:
    """Open a share's link as its recipient, and print what is in it. It spends a view.

    The link is a secret, so it is read from stdin, or from a reference:

    sealpipe share -f env:DB_PASSWORD | sealpipe rehearsal open
    """
    from sealpipe.wire.fields import revealed
    from sealpipe_rehearsal.people import Recipient

    address, passcode = _one("--link", link), _passcode(passcode_from)
    fields = _use_link(lambda: Recipient().open_link(address.strip(), passcode))
    if values["output"] == "json":
        rows = [{"key": each.key, "value": revealed(each), "type": each.type} for each in fields]
        render.print_json({"fields": rows})
        return
    render.print_lines(f"{render.escape(each.key)}: {render.escape(revealed(each))}" for each in fields)


@click.command(cls=Command)
@click.argument("collect_link", metavar="LINK")
@options("answer", common=("output",))
def answer(collect_link: str, field: Sequence[str], passcode_from: str | None, **values: Any) -> None:
    """Answer a request at its collect link, as a vendor does on the page. The submission's code is the result.

    Each prompt gets what a reference names; one that is not named stays empty:

    sealpipe rehearsal answer "$LINK" -f 'Password=gen:password' -f 'User name=text:acme'
    """
    from sealpipe import resolve
    from sealpipe.wire.fields import revealed
    from sealpipe_rehearsal.people import Submitter

    if "#" in collect_link:
        raise UsageError(
            "that is an access link, which opens the answers: nothing was sent",
            remedy="give the collect link alone: what stands before the #",
        )
    values_by_label = {each.key: revealed(each) for each in resolve(list(field))} if field else {}
    submitter, passcode = Submitter(), _passcode(passcode_from)
    identity = {} if passcode is None else {"passcode": passcode}
    form = _use_link(lambda: submitter.open_form(collect_link, **identity))
    prompts = [each["item"] for each in form["fields"]]
    if unknown := [key for key in values_by_label if key not in prompts]:
        raise UsageError(
            f"the request does not ask for {_quoted(unknown)}",
            remedy=f"it asks for {_quoted(prompts)}: use those labels",
        )
    code = _use_link(
        lambda: submitter.fill_in(collect_link, form, values_by_label, tag=submitter.tag(collect_link), **identity)
    )
    if values["output"] == "json":
        render.print_json({"short_code": code})
    else:
        render.print_lines([render.escape(code)])


def _use_link(call: Callable[[], T]) -> T:
    from sealpipe_rehearsal.control_client import RehearsalError

    try:
        return call()
    except RehearsalError as error:
        message = render.escape(str(error))
        raise UsageError(message, remedy="these commands are for links of `sealpipe rehearsal serve`") from None


def _passcode(reference: str | None) -> str | None:
    return None if reference is None else _one("--passcode-from", reference)


def _one(option: str, reference: str) -> str:
    from sealpipe import resolve
    from sealpipe.wire.fields import revealed

    fields = resolve([reference])
    if len(fields) != 1:
        raise UsageError(f"{option} names {len(fields)} values where one belongs", remedy="name one key: #KEY")
    return revealed(fields[0])


def _quoted(labels: Sequence[str]) -> str:
    return ", ".join(f'"{render.escape(label)}"' for label in labels)
