"""Deliver the link of a share or request, and only then remove its outbox entry."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from sealpipe.cli import disclosure, render
from sealpipe.cli.disclosure import Disclosure
from sealpipe.errors import DeliveryError, StateError, UsageError
from sealpipe.parsing import fill_name, format_optional_time, format_time
from sealpipe.permissions import has_content
from sealpipe.plugin import open_file
from sealpipe.session import Session
from sealpipe.state.entry import keep_entry_on_error
from sealpipe.state.files import create_file
from sealpipe.wire.encoding import encoded

if TYPE_CHECKING:  # a share does not need what makes a request, nor the other way round
    from sealpipe.request.create import SecureRequest
    from sealpipe.share.post import Share

Created: TypeAlias = "Share | SecureRequest"

_TEMPLATE_LIMIT = 64 * 1024

_KIND_MEMBERS = {"share": ("custody",), "request": ("public_key", "key")}
"""JSON members of only one of the two kinds."""

Targets = Mapping[str, str | None]
"""Paths of link and receipt: absolute, None for stdout or no file; and the text that binds a sealed
link.
"""


def check_targets(
    link_file: str | None, receipt: str | None, name: str | None = None
) -> dict[str, str | None]:
    """Check both paths, before anything is sent: new files in existing directories.

    Fill in `{name}`.
    """
    paths: dict[str, str | None] = {"link_file": link_file, "receipt": receipt}
    for target, text in paths.items():
        if text is None:
            continue
        option = "--" + target.replace("_", "-")
        path = Path(fill_name(text, name, option)).absolute()
        if os.path.lexists(path):
            raise UsageError(
                f"{option}: {path} already exists", remedy="remove it, or choose another file"
            )
        if not path.parent.is_dir():
            raise UsageError(
                f"{option}: the directory {path.parent} does not exist",
                remedy="create it, or choose another",
            )
        if not os.access(path.parent, os.W_OK | os.X_OK):
            raise UsageError(
                f"{option}: the directory {path.parent} is not writable",
                remedy="choose another file",
            )
        paths[target] = str(path)
    if paths["link_file"] is not None and paths["link_file"] == paths["receipt"]:
        raise UsageError(
            "--link-file and --receipt name the same file", remedy="choose two different files"
        )
    return paths


def describe_seal_target(bind: str | None, *, wanted: bool) -> dict[str, str | None]:
    """Return what the outbox stores about a sealed link; empty unless one is wanted."""
    return {"seal_link": "stdout", "bind": bind} if wanted else {}


def check_seal(session: Session, to: Targets) -> None:
    """Check that the link can be sealed, if --seal-link asks for it.

    UsageError before anything is sent.
    """
    if to.get("seal_link"):
        from sealpipe.share import sealed_link

        sealed_link.check_custody(session.credential)


def read_message_template(path: str | None) -> str | None:
    """Read the text of a message from its file.

    UsageError if it cannot be read, or is not UTF-8.
    """
    if path is None:
        return None
    try:
        with open_file(path, f"--message-template: {path}") as file:
            content = file.read(_TEMPLATE_LIMIT + 1)
        if len(content) > _TEMPLATE_LIMIT:
            raise UsageError(
                f"--message-template: {path} is larger than {_TEMPLATE_LIMIT // 1024} KiB"
            )
        return content.decode("utf-8")
    except OSError as error:
        raise UsageError(f"--message-template: {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(
            f"--message-template: {path} is not UTF-8 text", remedy="save it as UTF-8"
        ) from None


def describe_expiry(expires_at: datetime | None, *, known: bool) -> str:
    """Say when something expires.

    None means never; if it is not `known`, the service did not say.
    """
    if not known:
        return "the service did not say when it expires"
    return "does not expire" if expires_at is None else f"expires {format_time(expires_at)}"


def announce(share: Created) -> None:
    """Print the short code and the expiry as soon as the service has responded."""
    expiry = describe_expiry(share.expires_at, known=share.expiry_known)
    verb = "reminding of" if share.outcome == "reminded" else "created"
    render.print_note(f"{verb} {render.escape(share.short_code)}, {expiry}")
    for remark in share.remarks:
        render.print_note(render.escape(remark))
    for warning in share.warnings:
        render.print_note(f"sealpipe: {warning}")


def write_files(share: Created, to: Targets) -> None:
    """Write receipt and link file.

    DeliveryError if one cannot be written: the entry stays in the outbox.
    """
    contents = {"receipt": _format_receipt(share), "link_file": share.link.reveal() + "\n"}
    for name, content in contents.items():
        path = to.get(name)
        if path is not None:
            _write(Path(path), content, share)


def prints_link(share: Created, to: Targets) -> bool:
    """Whether the link goes to stdout, rather than to a file or a channel, or sealed."""
    return (
        not to.get("link_file")
        and not to.get("seal_link")
        and not (share.deliveries and share.deliveries.sends("link"))
    )


def describe_share(share: Created, to: Targets) -> dict[str, Any]:
    """Return a share or request as JSON members.

    `delivered` names written files and channels that sent.
    """
    sent = (
        [each.recipient.channel for each in share.deliveries.items if each.state == "sent"]
        if share.deliveries
        else []
    )
    files = [name.replace("_", "-") for name in ("link_file", "receipt") if to.get(name)]
    return {
        "link" if share.kind == "share" else "collect_link": share.link.reveal()
        if prints_link(share, to)
        else None,
        "short_code": share.short_code,
        "expires_at": format_optional_time(share.expires_at),
        **{
            name: getattr(share, name)
            for name in _KIND_MEMBERS[share.kind]
            if share.outcome != "reminded"
        },
        **({} if share.expiry_known else {"expiry_known": False}),
        "outcome": share.outcome,
        "title": share.title,
        **({} if share.name is None else {"name": share.name}),
        "delivered": [*files, *dict.fromkeys(sent)],
    }


def finish(
    session: Session,
    share: Created,
    to: Targets,
    leave: Disclosure,
    *,
    created: Path,
    as_json: bool,
    resend: bool = False,
) -> None:
    """Announce, deliver, print, then remove the entry.

    A kill at any moment leads to one share and one link.

    A share's link goes to stdout only through `leave`. A failed delivery does not stop the others;
    its error is raised last, and the entry stays in the outbox. `created` is the folder of what
    this machine created.
    """
    with keep_entry_on_error(share.entry):
        announce(share)
        _note_creation(session, share, created)
        disclosure.set_step_outputs(session.registry, _describe_outputs(share))
        unsent = send_messages(session, share, resend=resend)
        try:
            write_files(share, to)
            _print_result(session, share, to, leave, as_json=as_json)
        except DeliveryError as error:
            entry_id = share.entry.id if share.entry else None
            undelivered = error.copy_with(
                remedy=f"the {share.kind} {share.short_code} exists; "
                f"`{leave.resume_command(entry_id)}` delivers its link"
            )
            undelivered.outbox_id = entry_id
            if unsent is not None:
                render.print_note(f"sealpipe: {unsent.message}")
            raise undelivered from error.__cause__
        if unsent is not None:
            raise unsent
        try:
            share.delivered()
        except StateError as error:
            render.print_note(f"sealpipe: {error.message}")
            render.print_note(f"  {error.remedy}")


def _note_creation(session: Session, share: Created, folder: Path) -> None:
    """Record what this machine knows of it.

    A failure only costs its name in lists, so it is no error.
    """
    is_request, run = share.kind == "request", share.entry.run if share.entry else ""
    if share.outcome == "reminded" or not (is_request or share.name or share.title or run):
        return  # there is nothing new to know
    from sealpipe.state.creations import Creation, Kind, note_creation

    kind: Kind = "request" if is_request else "share"
    links = (share.link.reveal(), getattr(share, "public_key", None)) if is_request else ()
    created_at = datetime.now(UTC) if share.entry is None else share.entry.created_at
    described = (share.expires_at, share.name, share.title, run, *links)
    notes = {} if share.entry is None else share.entry.meta.get("notes", {})
    creation = Creation(
        kind,
        session.base_url,
        share.short_code,
        *described,
        is_used_up_by_opening=_is_used_up_by_opening(share),
        created_at=created_at,
        notes=notes,
    )
    try:
        note_creation(folder, creation)
    except StateError as error:
        render.print_note(f"sealpipe: {error.message}")


def _print_result(
    session: Session, share: Created, to: Targets, leave: Disclosure, *, as_json: bool
) -> None:
    """Print the result on stdout; a share's link only through `leave`."""
    is_secret = share.kind == "share" and prints_link(share, to)
    if is_secret:
        leave.write(
            session.registry,
            disclosure.list_link_parts(share.link),
            lambda: _print_text(session, share, to, as_json=as_json),
        )
        return
    if share.kind == "share" and to.get("link_file"):
        disclosure.mask(session.registry, disclosure.list_link_parts(share.link))
    _print_text(session, share, to, as_json=as_json)


def _print_text(session: Session, share: Created, to: Targets, *, as_json: bool) -> None:
    sealed = _seal_link(session, share, to)
    if as_json:
        render.print_json(
            {**describe_share(share, to), **({} if sealed is None else {"sealed_link": sealed})}
        )
    elif sealed is not None:
        render.print_result(sealed + "\n")
    elif prints_link(share, to):
        render.print_result(share.link.reveal() + "\n")


def _describe_outputs(share: Created) -> dict[str, str]:
    expires_at = format_optional_time(share.expires_at) or ""
    return {"short-code": encoded(share.short_code), "expires-at": expires_at}


def _seal_link(session: Session, share: Created, to: Targets) -> str | None:
    if not to.get("seal_link"):
        return None
    from sealpipe.share import sealed_link

    return sealed_link.seal(share.link, share.short_code, session.credential, to.get("bind"))


def send_messages(session: Session, share: Created, *, resend: bool) -> DeliveryError | None:
    """Send all messages, and print what was sent.

    Return the error of those that failed; None if all were sent.
    """
    if share.deliveries is None:
        return None
    from sealpipe.delivery.send import deliver

    before = {id(each) for each in share.deliveries.items if each.state == "sent"}
    printed = len(share.warnings)
    try:
        deliver(session, share, resend=resend)
        error = None
    except DeliveryError as left:
        error = left
    for each in share.deliveries.items:
        if each.state == "sent" and id(each) not in before:
            render.print_note(
                f"sent the {each.recipient.content} to {render.escape(each.recipient.shown)}"
            )
    for warning in share.warnings[printed:]:
        render.print_note(f"sealpipe: {warning}")
    return error


def write_file(path: str | Path, text: str) -> None:
    """Write a new file (mode 0600).

    A file with the same content (from before a kill) is accepted. Raises OSError.
    """
    content = text.encode()
    try:
        create_file(Path(path), lambda: [content])
    except FileExistsError:
        with suppress(OSError):
            if has_content(path, content):
                return
        raise


def _write(path: Path, content: str, share: Created) -> None:
    try:
        write_file(path, content)
    except OSError as error:
        raise DeliveryError(
            f"{path} cannot be written: {error.strerror}",
            outbox_id=share.entry.id if share.entry else None,
        ) from None


def _is_used_up_by_opening(share: Created) -> bool | None:
    """Return whether it is a share that only opening uses up; None for a request."""
    if share.kind == "request" or share.entry is None:
        return None
    meta = share.entry.meta
    return meta["views"] == 1 and meta["passcode"] is None


def _format_receipt(share: Created) -> str:
    receipt = getattr(share, "receipt", None)
    if receipt is not None:
        return str(receipt.dump())
    members = {
        "schema": render.SCHEMA,
        "kind": "share",
        **describe_share(share, {"link_file": "elsewhere"}),
    }
    members["used_up_by_opening"] = _is_used_up_by_opening(share)
    if share.entry is not None:
        members["created_at"] = format_time(share.entry.created_at)
        members |= {"run": share.entry.run} if share.entry.run else {}
    del members["link"], members["delivered"], members["outcome"]
    return json.dumps(members) + "\n"
