"""`sealpipe rehearsal open | answer`: open a share's link or fill in a request, from a script."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, TypeVar

import click

from sealpipe.cli import render
from sealpipe.cli.command import Command, options
from sealpipe.errors import SecretNotFoundError, UsageError

if TYPE_CHECKING:
    pass

T = TypeVar("T")


class _OpenCommand(Command):
    unexpected_remedy = (
        "a share's link is a secret: pipe it in, or name a variable with --link env:LINK"
    )


@click.command("open", cls=_OpenCommand)
@options("open", common=("output",))
def open_link(link: str, passcode_from: str | None, **values: Any) -> None:
    """Open a share's link as its recipient and print the fields. This uses a view.

    The link is a secret, so it is read from stdin or from a reference:

    sealpipe share -f env:DB_PASSWORD | sealpipe rehearsal open
    """
    from sealpipe.wire.fields import revealed
    from sealpipe_rehearsal.people import Recipient

    address, passcode = _resolve("--link", link), _passcode(passcode_from)
    fields = _use_link(lambda: Recipient().open_link(address.strip(), passcode))
    if values["output"] == "json":
        rows = [{"key": each.key, "value": revealed(each), "type": each.type} for each in fields]
        render.print_json({"fields": rows})
        return
    render.print_lines(
        f"{render.escape(each.key)}: {render.escape(revealed(each))}" for each in fields
    )


@click.command(cls=Command)
@click.argument("collect_link", metavar="LINK")
@options("answer", common=("output",))
def answer(
    collect_link: str, field: Sequence[str], passcode_from: str | None, **values: Any
) -> None:
    """Submit to a request at its collect link, like a vendor on the page.

    Prints the submission's code.

    Each prompt gets the value of a reference; prompts without one stay empty:

    sealpipe rehearsal answer "$LINK" -f 'Password=gen:password' -f 'User name=text:acme'
    """
    from sealpipe import resolve
    from sealpipe.wire.fields import revealed
    from sealpipe_rehearsal.people import Submitter

    if "://" not in collect_link:
        raise UsageError(
            "this is not a collect link", remedy="give the link that `sealpipe request` printed"
        )
    if "#" in collect_link:
        raise UsageError(
            "this is an access link, which opens submissions; nothing was sent",
            remedy="use the collect link: only the part before the #",
        )
    values_by_label = {each.key: revealed(each) for each in resolve(list(field))} if field else {}
    submitter, passcode = Submitter(), _passcode(passcode_from)
    identity = {} if passcode is None else {"passcode": passcode}
    form = _use_link(lambda: submitter.open_form(collect_link, **identity))
    prompts = [each["item"] for each in form["fields"]]
    if unknown := [key for key in values_by_label if key not in prompts]:
        raise UsageError(
            f"the request does not ask for {_quoted(unknown)}",
            remedy=f"use its prompts as labels: {_quoted(prompts)}",
        )
    code = _use_link(
        lambda: submitter.fill_in(
            collect_link, form, values_by_label, tag=submitter.tag(collect_link), **identity
        )
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
        raise UsageError(
            message, remedy="these commands are for links of `sealpipe rehearsal serve`"
        ) from None


def _passcode(reference: str | None) -> str | None:
    return None if reference is None else _resolve("--passcode-from", reference)


def _resolve(option: str, reference: str) -> str:
    from sealpipe.client_base import registry
    from sealpipe.reference import parse
    from sealpipe.sources.resolve import resolve_value

    with closing(registry(None)) as plugins:
        try:
            value = resolve_value(parse(reference), lambda: plugins)
        except SecretNotFoundError as error:
            if reference != "stdin:":
                raise
            raise error.copy_with(
                remedy='pipe it in, as in `echo "$LINK" | sealpipe rehearsal open`, or name it '
                "with --link env:LINK"
            ) from error.__cause__
    if value is None:
        raise UsageError(
            f"{option}: {reference} has no value", remedy="set it, or remove ?optional=1"
        )
    return value.reveal()


def _quoted(labels: Sequence[str]) -> str:
    return ", ".join(f'"{render.escape(label)}"' for label in labels)
