"""`sealpipe rehearsal key ...` and `sealpipe rehearsal account`: manage API keys and account
limits.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import click
from click.core import ParameterSource

from sealpipe.cli import render
from sealpipe.cli.codes import CodeCommand
from sealpipe.cli.command import Command, SettingsGroup, options, run_config
from sealpipe.errors import ApiAccessError, KeyAllowanceError, SealpipeError, UsageError
from sealpipe.parsing import format_time, parse_base_url

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from sealpipe.secret import Secret
    from sealpipe_rehearsal.control_client import RehearsalError

T = TypeVar("T")

ALL_SCOPES = "all"
"""Means every scope."""

_PLANS = {98: ApiAccessError, 100: KeyAllowanceError}


@click.group(cls=SettingsGroup)
def key() -> None:
    """Manage the API keys of a running rehearsal service."""


@key.command(cls=Command)
@options("key", common=("output",))
@options("rehearsal", only=("port",), common=())
def create(
    port: int,
    name: str,
    scope: tuple[str, ...],
    custody: str,
    no_register: bool,  # noqa: FBT001
    **values: Any,
) -> None:
    """Create an API key and print the credential. It is shown only once."""
    from sealpipe_rehearsal.control_client import FORM_SCOPES, list_scopes, register_key

    def register(origin: str) -> tuple[Secret, tuple[str, ...]]:
        scopes = tuple(list_scopes(origin)) if ALL_SCOPES in scope else scope or FORM_SCOPES
        credential = register_key(
            origin,
            name=name,
            scopes=scopes,
            custody=custody,
            register=not no_register,
            account=values["account"],
            organization=values["org"],
        )
        return credential, scopes

    credential, scopes = call_service(port, register)
    if values["output"] == "json":
        base_url = f"{find_origin(port)}/v1"
        render.print_json(
            {"api_key": credential.reveal(), "base_url": base_url, "scopes": list(scopes)}
        )
    else:
        render.print_result(f"{credential.reveal()}\n")


@key.command("list", cls=Command)
@options("rehearsal", only=("port",), common=("output",))
def list_(port: int, **values: Any) -> None:
    """List API keys, oldest first, including revoked ones."""
    from sealpipe_rehearsal.control_client import list_keys

    keys = [_format_times(each) for each in call_service(port, list_keys)]
    if values["output"] == "json":
        render.print_json({"keys": keys})
        return
    render.print_lines(map(_line, keys))


@key.command(cls=CodeCommand)
@click.argument("key_id")
@options("rehearsal", only=("port",), common=("output",))
def revoke(key_id: str, port: int, **values: Any) -> None:
    """Revoke an API key. Its next call is refused, and its slot becomes free at once."""
    from sealpipe_rehearsal.control_client import revoke_key

    _print_members(
        call_service(port, lambda origin: revoke_key(origin, key_id)),
        as_json=values["output"] == "json",
    )


@key.command(cls=CodeCommand)
@click.argument("key_id")
@options("rehearsal", only=("port",), common=("output",))
def grant(key_id: str, port: int, **values: Any) -> None:
    """Approve custody `account` for a key that requested it, like one of the holder's devices."""
    from sealpipe_rehearsal.control_client import grant_custody

    _print_members(
        call_service(port, lambda origin: grant_custody(origin, key_id)),
        as_json=values["output"] == "json",
    )


@click.command(cls=Command)
@options("account", common=("output",))
@options("rehearsal", only=("port",), common=())
def account(port: int, account: str, org: str | None, output: str, **changes: Any) -> None:
    """Show or change the limits of an account or organisation.

    A change takes effect within 30 seconds.
    """
    from sealpipe_rehearsal.control_client import set_account

    name = account if org is None else f"org:{org}"
    given = {
        _MEMBERS.get(member, member): value
        for member, value in changes.items()
        if value is not None
    }
    given = {
        member: value == "on" if value in ("on", "off") else value
        for member, value in given.items()
    }
    members = call_service(port, lambda origin: set_account(origin, name, at_once=False, **given))
    if output == "json":
        render.print_json(members)
    else:
        render.print_lines(_account_lines(members))


_MEMBERS = {"rate": "requests_per_minute", "keys": "api_keys"}


def call_service(port: int, call: Callable[[str], T]) -> T:
    """Call the control API of the rehearsal that the user means.

    Raises the error that the user should see.
    """
    from sealpipe_rehearsal.control_client import RehearsalError

    origin = find_origin(port)
    try:
        _check_rehearsal(origin)
        return call(origin)
    except RehearsalError as error:
        raise _make_error(error, origin) from None
    except (AttributeError, KeyError, TypeError):
        raise _make_stranger_error(origin) from None


def find_origin(port: int) -> str:
    """Return the address of the rehearsal that the user means.

    At --port, else at SEALPIPE_BASE_URL, else at 8765.

    A key of any other rehearsal could not be used at SEALPIPE_BASE_URL.
    """
    base_url = run_config().environ.get("SEALPIPE_BASE_URL")
    if _is_port_given() or not base_url:
        return f"http://127.0.0.1:{port}"
    address = urlsplit(parse_base_url(base_url))
    if address.scheme != "http":  # plain http is accepted for loopback only
        raise UsageError(
            (
                "SEALPIPE_BASE_URL is the address of a service that is no rehearsal: nothing "
                "was called"
            ),
            remedy=(
                "name the rehearsal's port with --port; `sealpipe rehearsal serve` prints the "
                "address to set"
            ),
        )
    return f"http://{address.netloc}"


def _is_port_given() -> bool:
    return click.get_current_context().get_parameter_source("port") is not ParameterSource.DEFAULT


def _check_rehearsal(origin: str) -> None:
    """Raise UsageError for another program, or another user's rehearsal that is not named.

    Says on stderr which rehearsal it is, unless --port says so.
    """
    from sealpipe_rehearsal.control_client import SERVICE_NAME, send_request

    status, about = send_request(origin, "GET", "/rehearsal")
    if status != 200 or not isinstance(about, dict) or about.get("service") != SERVICE_NAME:
        raise _make_stranger_error(origin)
    if _is_port_given():
        return
    if not run_config().environ.get("SEALPIPE_BASE_URL") and about.get("user_id") != os.getuid():
        raise UsageError(
            f"the rehearsal at {origin} was started by another user: nothing was changed in it",
            remedy=(
                "start your own with `sealpipe rehearsal serve --port N`, or name this one "
                "with --port"
            ),
        )
    render.print_note(f"using the rehearsal at {origin}")


def _make_stranger_error(origin: str) -> UsageError:
    return UsageError(
        f"the program at {origin} is no rehearsal of this version: nothing was changed there",
        remedy="name the rehearsal's port with --port; `sealpipe rehearsal serve` prints it",
    )


def _make_error(error: RehearsalError, origin: str) -> SealpipeError:
    message = render.escape(str(error))  # any program on that port may have sent it
    if error.error_code in _PLANS:
        return _PLANS[error.error_code](message, status=error.status, error_code=error.error_code)
    if error.status is None:
        return UsageError(
            message, remedy=f"is `sealpipe rehearsal serve --port {urlsplit(origin).port}` running?"
        )
    if error.status == 404:
        return UsageError(
            message, remedy="`sealpipe rehearsal key list` and `webhook list` show their ids"
        )
    return UsageError(message)


def _format_times(each: Mapping[str, Any]) -> dict[str, Any]:
    """Return a key with its times as text."""
    times = {name: value for name, value in each.items() if name.endswith("_at")}
    texts = {
        name: None if timestamp is None else format_time(datetime.fromtimestamp(timestamp, UTC))
        for name, timestamp in times.items()
    }
    return {**each, **texts, "last_used_at": texts["last_used_at"] or "never used"}


def _line(each: Mapping[str, Any]) -> str:
    state = "revoked" if each["revoked_at"] else f"last used {each['last_used_at']}"
    if each["compromised_at"] and not each["revoked_at"]:
        state = "compromised: revoke"
    parts = (
        each["key_id"],
        each["name"],
        ",".join(each["scopes"]) or "no scope",
        each["custody_effective"],
        state,
    )
    return "\t".join(render.escape(part) for part in parts)


_RATES: Mapping[int | None, str] = {None: "unset", -1: "no limit"}


def _account_lines(members: Mapping[str, Any]) -> Iterator[str]:
    limits = members["limits"]
    values = {
        "account": members["name"],
        "plan": members["plan"],
        "API access": members["api_access"],
        "requests per minute": _RATES.get(
            limits["requests_per_minute"], limits["requests_per_minute"]
        ),
        "API keys": "no limit" if limits["api_keys"] is None else limits["api_keys"],
        "webhook endpoints": limits["webhooks"],
        "active shares": "no limit" if limits["shares"] is None else limits["shares"],
        "view protection": limits["view_protection"],
        "access log": render.count(limits["access_log_days"], "day"),
        "zero-knowledge enrolled": members["zero_knowledge_enrolled"],
        "zero-knowledge feature": members["zero_knowledge_feature"],
    }
    for name, value in values.items():
        text = ("yes" if value else "no") if isinstance(value, bool) else str(value)
        yield f"{name}: {render.escape(text)}"


def _print_members(members: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        render.print_json(members)
        return
    render.print_lines(f"{name}: {render.escape(value)}" for name, value in members.items())
