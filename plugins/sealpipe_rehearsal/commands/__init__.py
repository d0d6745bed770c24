"""`sealpipe rehearse` and `sealpipe rehearsal serve | key | account | webhook | open | answer`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sealpipe.cli import render
from sealpipe.cli.command import Command, SettingsGroup, options
from sealpipe.errors import SettingError, UsageError
from sealpipe_rehearsal.commands.child_process import keep_serving, print_exports, run_command
from sealpipe_rehearsal.commands.keys import account, key
from sealpipe_rehearsal.commands.links import answer, open_link
from sealpipe_rehearsal.commands.webhooks import webhook

if TYPE_CHECKING:
    from sealpipe_rehearsal.running_service import RunningService
    from sealpipe_rehearsal.uvicorn_server import Address


@click.command(
    cls=Command,
    context_settings={"ignore_unknown_options": False, "allow_interspersed_args": False},
)
@options("rehearse", common=("service_tag", "output"))
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND ...]")
def rehearse(
    command: tuple[str, ...],
    service_tag: str | None,
    output: str,
    keep: bool,  # noqa: FBT001
    faults: str | None,
    extended: bool,  # noqa: FBT001
    job: bool,  # noqa: FBT001
    **values: Any,
) -> None:
    """Rehearse on a local service, without an account.

    Without a COMMAND, take a tour: share a secret over real HTTP, open its link, and see what each
    side saw. With a COMMAND, run it with SEALPIPE_* pointing at a fresh service and exit with its
    exit code. With --faults, inject faults. With --open, the tour ends in a browser: it shows what
    the recipient of the link sees.

    With --job, COMMAND is a sealpipe command of a CI job, such as `sealpipe collect -- CODE`. Its
    SEALPIPE_* options stay, except those that send or store; variables that are empty and the
    share, request or sealed link that it names are made up; collect only shows what it would store.
    SEALPIPE_REQUEST_ASK has more prompts of what it collects.
    """
    if job and not command:
        raise UsageError(
            "--job needs a command", remedy="sealpipe rehearse --job -- sealpipe share"
        )
    if values["open"]:
        _check_open(command)
    link: str | None = None
    with _start(service_tag or "svc", faults, extended=extended) as running:
        if command:
            code = run_command(running, command, is_job=job)
        else:
            from sealpipe_rehearsal.commands.guided_tour import tour

            # the tour's recipient uses one view, and who opens the link afterwards another
            code, link = tour(
                running, as_json=output == "json", views=2 if keep or values["open"] else 1
            )
        if faults:
            from sealpipe_rehearsal.commands.fault_file import report_unused

            report_unused(running.faults())
        if values["open"] and link:
            from sealpipe_rehearsal.commands.browser import show_link, wait_for_person

            with show_link(link):
                (partial(keep_serving, running) if keep else wait_for_person)()
        elif keep:
            keep_serving(running)
    click.get_current_context().exit(code)


def _check_open(command: Sequence[str]) -> None:
    """Raise UsageError if there is nothing to open, or nothing to open it with."""
    from sealpipe_rehearsal.commands.browser import check_browser

    if command:
        raise UsageError(
            "--open is for the tour, which has no command", remedy="sealpipe rehearse --open"
        )
    check_browser()


@click.group(cls=SettingsGroup)
def rehearsal() -> None:
    """Run and manage a local copy of the service. Loopback only."""


@rehearsal.command(cls=Command)
@options(
    "rehearsal",
    only=("port", "state", "faults", "extended", "signature_header"),
    common=("service_tag",),
)
def serve(
    port: int, state: str | None, service_tag: str | None, faults: str | None, **settings: Any
) -> None:
    """Run the service until it is interrupted. With --state, its data survives restarts."""
    server = _import_server()
    try:
        file = Path(state) if state else None
        signal_number = server.serve(
            port, file, service_tag or "svc", _announce, faults=_plan(faults), **settings
        )
    except server.StateFileError as error:
        raise SettingError(
            f"the state file cannot be used: {error}", remedy="choose another with --state"
        ) from None
    except OSError as error:
        raise SettingError(
            f"cannot listen on 127.0.0.1:{port}: {error.strerror}",
            remedy="choose another with --port",
        ) from None
    click.get_current_context().exit(0 if signal_number == 0 else 128 + signal_number)


rehearsal.add_command(key)
rehearsal.add_command(account)
rehearsal.add_command(webhook)
rehearsal.add_command(open_link)
rehearsal.add_command(answer)


def _announce(address: Address) -> None:
    render.print_note(f"serving on {address.origin} until interrupted; in another shell:")
    print_exports(address)


def _start(service_tag: str, faults: str | None, *, extended: bool) -> RunningService:
    server = _import_server()
    try:
        running: RunningService = server.start(
            service_tag=service_tag, faults=_plan(faults), extended=extended
        )
    except OSError as error:
        raise SettingError(f"cannot listen on 127.0.0.1: {error.strerror}") from None
    return running


def _plan(file: str | None) -> list[dict[str, object]]:
    if not file:
        return []
    from sealpipe_rehearsal.commands.fault_file import read_plan

    return read_plan(file)


def _import_server() -> Any:
    try:
        from sealpipe_rehearsal import server
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("starlette", "uvicorn"):
            raise
        from sealpipe.installation import format_command  # for an error only

        remedy = format_command(["sealpipe[rehearsal]"])
        raise UsageError(
            f"the rehearsal needs {error.name}, which is not installed", remedy=remedy
        ) from None
    return server
