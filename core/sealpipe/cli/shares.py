"""`sealpipe shares list | show | expire | log`, and `sealpipe unseal`."""

from __future__ import annotations

import sys
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from sealpipe.cli import render
from sealpipe.cli.codes import CodeCommand, fetch_page, print_page, resolve_share_code
from sealpipe.cli.command import (
    COMMON,
    Command,
    SettingsGroup,
    list_nearest,
    make_registry,
    open_client,
    options,
    run_config,
)
from sealpipe.cli.expire import expire_shares
from sealpipe.cli.known_names import KnownNames, find_state
from sealpipe.errors import UsageError
from sealpipe.parsing import format_time

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from sealpipe.api.account import Access, AccessLog, ShareInfo
    from sealpipe.custody_gate import CustodyGate
    from sealpipe.registry import Registry
    from sealpipe.secret import Secret


@click.group(cls=SettingsGroup)
def shares() -> None:
    """List, show and expire shares, and show who opened one.

    The service only has metadata: it cannot read a share.
    """


@shares.command("list", cls=Command)
@options("shares", common=COMMON)
def list_(**values: Any) -> None:
    """List active shares, newest first."""
    with open_client(values) as client:
        found = fetch_page(
            values,
            lambda page, limit: client.list_shares(page=page, limit=limit),
            lambda limit: client.iter_shares(limit=limit),
        )
        names = KnownNames(values, "share", client.session.base_url)
    print_page(
        "shares",
        found,
        values,
        members=lambda row: _to_members(row, names, find_state(row.expires_at)),
        columns=_COLUMNS,
        cells=lambda row: _list_cells(row, names, find_state(row.expires_at)),
    )


@shares.command(cls=CodeCommand)
@click.argument("code")
@options("", common=COMMON)
def show(code: str, **values: Any) -> None:
    """Show what the service knows about a share. Uses no view."""
    with open_client(values) as client:
        row = client.get_share(resolve_share_code(client, code))
        names = KnownNames(values, "share", client.session.base_url)
    # The service does not say whether its views are used up.
    is_expired = find_state(row.expires_at) == "expired"
    if values["output"] == "json":
        render.print_json(_to_members(row, names, "expired" if is_expired else None))
    else:
        render.print_table(
            _COLUMNS, [_list_cells(row, names, "expired" if is_expired else "not expired")]
        )


shares.add_command(expire_shares)


@shares.command(cls=CodeCommand)
@click.argument("code")
@options("log", common=COMMON)
def log(code: str, **values: Any) -> None:
    """Show who opened a share, or tried to.

    Not every service has this log; without it, the command prints nothing.
    """
    from sealpipe.lookup import walk_share_log

    entries: list[Access] = []
    with open_client(values) as client:
        code = resolve_share_code(client, code)
        pages = walk_share_log(client.session, code, values["since"], values["until"])
        while not pages.is_done and (values["limit"] is None or len(entries) < values["limit"]):
            entries += pages.fetch_next()
        entries = entries[: values["limit"]]
    if pages.first is None:
        render.print_note("this service has no access log")
    if values["output"] == "json":
        render.print_json(_describe_log(code, pages.first, entries))
    else:
        render.print_lines(map(_format_access, entries))


def _to_members(row: ShareInfo, names: KnownNames, state: str | None) -> dict[str, Any]:
    expires_at = None if row.expires_at is None else format_time(row.expires_at)
    unknown = {} if row.expiry_known else {"expiry_known": False}
    members = {"short_code": row.short_code, "expires_at": expires_at, **unknown}
    return {**row.extra, **members, **names.describe(row.short_code, state)}


_COLUMNS = ("CODE", "EXPIRES", "STATE", "NAME", "TITLE")


def _list_cells(row: ShareInfo, names: KnownNames, state: str) -> list[str]:
    expires_at = render.describe_expiry(row.expires_at, known=row.expiry_known).removeprefix(
        "expires "
    )
    return [render.escape(row.short_code), expires_at, *names.list_cells(row.short_code, state)]


def _describe_log(code: str, first: AccessLog | None, entries: list[Access]) -> dict[str, Any]:
    if first is None:
        return {"offered": False, "short_code": code, "entries": []}
    return {
        "offered": True,
        "short_code": first.short_code,
        "entries": [_describe_access(entry) for entry in entries],
        "retention_days": first.retention_days,
        "effective_from": _format_time(first.effective_from),
        "effective_to": _format_time(first.effective_to),
    }


def _describe_access(entry: Access) -> dict[str, Any]:
    names = ("accessed_ip", "platform", "user_agent", "failed_passcode", "signed_in")
    members = {name: getattr(entry, name) for name in names}
    return {**entry.extra, "accessed_at": _format_time(entry.accessed_at), **members}


def _format_access(entry: Access) -> str:
    event = "failed passcode" if entry.failed_passcode else "opened"
    cells = (
        _format_time(entry.accessed_at),
        event,
        entry.accessed_ip,
        entry.platform,
        entry.user_agent,
    )
    return "\t".join("-" if cell is None else render.escape(cell) for cell in cells)


def _format_time(moment: datetime | None) -> str | None:
    return None if moment is None else format_time(moment)


_UNSEAL_OPTIONS = ("api_key_file", "service_tag", "ca_file", "output")


@click.command(cls=Command)
@click.argument("sealed", metavar="[SEALED]", required=False, envvar="SEALPIPE_SEALED_LINK")
@options("unseal", common=_UNSEAL_OPTIONS)
def unseal(sealed: str | None, **values: Any) -> None:
    """Open a link that `share --seal-link` sealed, with the same credential. Makes no connection.

    SEALED is the sealed link, or - for stdin. Without it and --sealed-file, reads
    SEALPIPE_SEALED_LINK. It needs the credential, and the text given to --bind, if any. The actions
    and templates bind it to their run: github:OWNER/REPO:RUN_ID, gitlab:PROJECT_PATH:PIPELINE_ID.
    In CI, printing the link on stdout needs --print; it is masked first if possible.
    """
    from sealpipe.cli import deliver, disclosure
    from sealpipe.custody_gate import CustodyGate
    from sealpipe.errors import DeliveryError, EnvelopeError
    from sealpipe.session import open_credential, open_previous
    from sealpipe.share import sealed_link
    from sealpipe.wire.encoding import names

    gate_to_stdout = disclosure.plan_disclosure(
        "the link",
        "write it to a file with --link-file",
        printing=values["print"],
        elsewhere=values["link_file"] is not None,
    )
    to = deliver.check_targets(values["link_file"], None)
    config = run_config()
    credential = open_credential(config.read_api_key(values["api_key_file"]), values["service_tag"])
    previous = config.previous_api_key
    text = _read_sealed_link({"sealed": sealed, **values})
    code = sealed_link.read_short_code(text)
    keys = [credential, *([open_previous(previous)] if previous else [])]

    def opening() -> Secret:
        if values["expect"] is not None and not names(values["expect"], code):
            raise EnvelopeError(
                "other-share",
                (
                    f"this sealed link belongs to {render.escape(code)}, not to the share "
                    "given to --expect"
                ),
                remedy=(
                    "check which job passed it on; the code is the output short-code of the "
                    "step that sealed it"
                ),
            )
        return sealed_link.unseal(text, *keys, bind=values["bind"])

    gate = CustodyGate(*keys)
    registry = partial(make_registry, values["ca_file"])
    link = _unseal_under_policy(registry, gate, code, opening)
    path = to["link_file"]
    if path is not None:
        disclosure.mask(registry, disclosure.list_link_parts(link))
        try:
            deliver.write_file(path, link.reveal() + "\n")
        except OSError as error:
            raise DeliveryError(
                f"{path} cannot be written: {error.strerror}",
                remedy="run it again with another --link-file",
            ) from None
        if values["output"] == "json":
            render.print_json({"link": None, "link_file": path})
        return
    gate_to_stdout.write(
        registry,
        disclosure.list_link_parts(link),
        lambda: _print_link(link, as_json=values["output"] == "json"),
    )


_MAX_SEALED: Final = 64 * 1024
_STDIN: Final = "-"


def _read_sealed_link(values: Mapping[str, Any]) -> str:
    """Return the sealed link that is given: as text, as a file, or on stdin. Raises UsageError."""
    given = list_nearest(click.get_current_context(), values, ("sealed", "sealed_file"))
    if len(given) != 1:
        raise UsageError(
            "there are two sealed links: an argument and --sealed-file"
            if given
            else "there is no sealed link",
            remedy=(
                "give one: --sealed-file FILE, - for stdin, or the variable SEALPIPE_SEALED_LINK"
            ),
        )
    word: str = values[given[0]]
    if given == ["sealed_file"]:
        try:
            with Path(word).open("rb") as stream:
                content = stream.read(_MAX_SEALED)
        except OSError as error:
            problem = f"--sealed-file: {word} cannot be read: {error.strerror}"
            raise UsageError(problem, remedy="check the path") from None
    elif word == _STDIN:
        content = b"" if sys.stdin is None else sys.stdin.buffer.read(_MAX_SEALED)
    else:
        return word
    return content.decode("ascii", "replace")


def _unseal_under_policy(
    registry: Callable[[], Registry],
    custody_gate: CustodyGate,
    code: str,
    unseal: Callable[[], Secret],
) -> Secret:
    """Open the link if policies allow it.

    Observers get an event before and after, with the short code.
    """
    from sealpipe import policy
    from sealpipe.plugin import OutgoingAction
    from sealpipe.registry.stores import read_policy_hooks

    config = run_config()
    hooks = read_policy_hooks(config.user, config.machine)
    if not hooks:
        return unseal()

    session = policy.LocalContext(hooks, cache(registry), custody_gate)
    return policy.run_under_policy(
        session, OutgoingAction("unseal", short_codes=(code,)), lambda _: unseal()
    )


def _print_link(link: Secret, *, as_json: bool) -> None:
    if as_json:
        render.print_json({"link": link.reveal(), "link_file": None})
    else:
        render.print_result(link.reveal() + "\n")
