"""The database that `--database` names, and errors about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import click
from click.core import ParameterSource

from sealpipe.cli import render
from sealpipe.cli.disclosure import Disclosure, plan_disclosure
from sealpipe.cli.local import make_registry
from sealpipe.errors import (
    ReferenceSyntaxError,
    SealpipeError,
    SettingError,
    StateError,
    UsageError,
)
from sealpipe.reference import Reference
from sealpipe.secret import Secret
from sealpipe.sources.resolve import resolve_secret
from sealpipe_service.database.access import AddressError, DatabaseError
from sealpipe_service.database.backing_up import CopyError
from sealpipe_service.database.decisions import Store
from sealpipe_service.database.opening import has_password, open_database
from sealpipe_service.mail import MailError, read_server


def read_database(values: Mapping[str, Any]) -> Secret:
    """Return the address of the database. Raises UsageError, and the errors of its source."""
    given = values["database"]
    if given is None:
        raise UsageError(
            "no database is named",
            remedy="add --database sqlite:///FILE, or set SEALPIPE_SERVER_DATABASE",
        )
    if not isinstance(given, Reference):
        _refuse_password(given)
        return Secret(given)
    try:
        return _resolve(given, "the address of a database", values)
    except ReferenceSyntaxError as error:
        raise ReferenceSyntaxError(
            f"--database: {error}",
            remedy="an address is sqlite:///FILE or postgresql://USER@HOST/NAME; for a reference: "
            f"{error.remedy}",
        ) from None


def read_webhook_key(values: Mapping[str, Any]) -> Secret | None:
    """Return the key that webhooks' secrets are sealed under, if one is named.

    Raises UsageError for one that could be guessed, and the errors of its source.
    """
    if values["webhook_key"] is None:
        return None
    key = _resolve(values["webhook_key"], "the key of webhooks", values)
    if len(key.reveal()) < KEY_LENGTH:
        raise UsageError(
            f"--webhook-key: the key has fewer than {KEY_LENGTH} characters",
            remedy="store 32 random bytes, such as `sealpipe read gen:hex?bytes=32` prints",
        )
    return key


def read_mail_server(values: Mapping[str, Any]) -> tuple[Secret, str] | None:
    """Return the mail server's address and whom mails are from, if there is one.

    Raises UsageError, and the errors of its source.
    """
    given, sender = values["smtp"], values["mail_from"]
    if given is None and sender is None:
        return None
    if given is None or sender is None:
        raise UsageError("--smtp and --mail-from belong together", remedy="give both")
    is_reference = isinstance(given, Reference)
    address = _resolve(given, "the mail server", values) if is_reference else Secret(given)
    try:
        server = read_server(address.reveal(), sender)
    except MailError as error:
        raise SettingError(
            f"--smtp, --mail-from: {error}",
            remedy="write smtp://HOST[:PORT] or smtps://HOST[:PORT], and ann@example.com",
        ) from None
    source = click.get_current_context().get_parameter_source("smtp")
    if server.password and not is_reference and source is ParameterSource.COMMANDLINE:
        raise UsageError(
            "--smtp: the address holds a password, and arguments are for others to read",
            remedy="put it in a variable and write its reference: --smtp env:SMTP",
        )
    return address, sender


def _resolve(reference: Reference, what: str, values: Mapping[str, Any]) -> Secret:
    registry = make_registry(values["ca_file"], None, values["deadline"])
    try:
        found = resolve_secret(reference, what, lambda: registry)
    finally:
        registry.close()
    if found is None:
        raise SettingError(f"{reference} has no value", remedy=f"set {what}")
    return found


KEY_LENGTH = 32


def _refuse_password(address: str) -> None:
    """Raise UsageError for a password in arguments, which other users of the machine can read."""
    source = click.get_current_context().get_parameter_source("database")
    if source is ParameterSource.COMMANDLINE and has_password(address):
        raise UsageError(
            "--database: the address holds a password, and arguments are for others to read",
            remedy="put it in a variable and write its reference: --database env:DBURL",
        )


@contextmanager
def told_in_our_words() -> Iterator[None]:
    """Turn errors of the service's database into those that the user should see."""
    try:
        yield
    except DatabaseError as error:
        kind, beginning = next(told for known, told in _TOLD.items() if isinstance(error, known))
        failure = kind(f"{beginning}: {error}", remedy=error.remedy)
    else:
        return
    raise failure


_TOLD: Mapping[type[DatabaseError], tuple[type[SealpipeError], str]] = {
    AddressError: (SettingError, "--database"),
    CopyError: (StateError, "the database was not copied"),
    DatabaseError: (StateError, "the database cannot be used"),
}
"""Our error for each of the service's, and how it begins; the first that fits."""


def open_store(values: Mapping[str, Any]) -> AbstractContextManager[Store]:
    """Open the service's data for a command."""
    return open_store_at(read_database(values))


@contextmanager
def open_store_at(address: Secret) -> Iterator[Store]:
    """Open the service's data in a database whose address was read."""
    with told_in_our_words():
        store = Store(open_database(address.reveal()))
        try:
            yield store
        finally:
            store.close()


def plan_printing(what: str, values: Mapping[str, Any]) -> Disclosure:
    """Decide, before anything is changed, whether a new secret may go to stdout."""
    return plan_disclosure(
        what, "run this on the service's machine, by hand", printing=values["print"]
    )


def print_secrets(
    gate: Disclosure,
    values: Mapping[str, Any],
    hidden: Sequence[Secret],
    members: Mapping[str, Any],
    lines: Sequence[str],
) -> None:
    """Print new secrets: `members` as JSON where that is the output, else the lines."""
    is_json = values["output"] == "json"
    spelled = [Secret(render.escape_json(each.reveal())) for each in hidden] if is_json else hidden

    def write() -> None:
        if is_json:
            render.print_json(members)
        else:
            render.print_result("".join(f"{line}\n" for line in lines))

    gate.write(make_registry, spelled, write)
