"""`sealpipe rehearsal key ...` and `sealpipe rehearsal account`: manage API keys and account limits."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from sealpipe.cli import render
from sealpipe.cli.codes import CodeCommand
from sealpipe.cli.command import Command, SettingsGroup, options
from sealpipe.errors import ApiAccessError, KeyAllowanceError, SealpipeError, UsageError
from sealpipe.values import format_time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from sealpipe_rehearsal.control_client import RehearsalError

ALL_SCOPES = "all"
"""Means every scope."""

_PLANS = {98: ApiAccessError, 100: KeyAllowanceError}


@click.group(cls=SettingsGroup)
def key() -> None:
    """Manage the API keys of a running rehearsal service."""


@key.command(cls=Command)
@options("key", common=("output",))
@options("rehearsal", only=("port",), common=())
def create(port: int, name: str, scope: tuple[str, ...], custody: str, no_register: bool, **values: Any) -> None:  # noqa: FBT001
    """Create an API key and print the credential. It is shown only once."""
    from sealpipe_rehearsal.control_client import FORM_SCOPES, list_scopes, register_key

    scopes = tuple(call_service(port, list_scopes)) if ALL_SCOPES in scope else scope or FORM_SCOPES
    credential = call_service(
        port,
        lambda origin: register_key(
            origin,
            name=name,
            scopes=scopes,
            custody=custody,
            register=not no_register,
            account=values["account"],
            organization=values["org"],
        ),
    )
    if values["output"] == "json":
        base_url = f"{_origin(port)}/v1"
        render.print_json({"api_key": credential.reveal(), "base_url": base_url, "scopes": list(scopes)})
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

    _print_members(call_service(port, lambda origin: revoke_key(origin, key_id)), as_json=values["output"] == "json")


@key.command(cls=CodeCommand)
@click.argument("key_id")
@options("rehearsal", only=("port",), common=("output",))
def grant(key_id: str, port: int, **values: Any) -> None:
    """Approve custody `account` for a key that requested it, like one of the holder's devices."""
    from sealpipe_rehearsal.control_client import grant_custody

    _print_members(call_service(port, lambda origin: grant_custody(origin, key_id)), as_json=values["output"] == "json")


@click.command(cls=Command)
@options("account", common=("output",))
@options("rehearsal", only=("port",), common=())
def account(port: int, account: str, org: str | None, output: str, **changes: Any) -> None:
    """Show or change the limits of an account or organisation. A change takes effect within 30 seconds."""
    from sealpipe_rehearsal.control_client import set_account

    name = account if org is None else f"org:{org}"
    given = {_MEMBERS.get(member, member): value for member, value in changes.items() if value is not None}
    given = {member: value == "on" if value in ("on", "off") else value for member, value in given.items()}
    members = call_service(port, lambda origin: set_account(origin, name, at_once=False, **given))
    if output == "json":
        render.print_json(members)
    else:
        render.print_lines(_account_lines(members))


_MEMBERS = {"rate": "requests_per_minute", "keys": "api_keys"}


def _origin(port: int) -> str:
    return f"http://127.0.0.1:{port}"


def call_service(port: int, call: Callable[[str], Any]) -> Any:
    """Call the control API at a port. Raises the error that the user should see."""
    from sealpipe_rehearsal.control_client import RehearsalError

    try:
        return call(_origin(port))
    except RehearsalError as error:
        raise _make_error(error, port) from None
    except (AttributeError, KeyError, TypeError):
        raise UsageError(f"port {port} is not a rehearsal service", remedy="set its port with --port") from None


def _make_error(error: RehearsalError, port: int) -> SealpipeError:
    message = render.escape(str(error))  # any program on that port may have sent it
    if error.error_code in _PLANS:
        return _PLANS[error.error_code](message, status=error.status, error_code=error.error_code)
    if error.status is None:
        return UsageError(message, remedy=f"is `sealpipe rehearsal serve --port {port}` running?")
    if error.status == 404:
        return UsageError(message, remedy="`sealpipe rehearsal key list` and `webhook list` show their ids")
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
    parts = (each["key_id"], each["name"], ",".join(each["scopes"]) or "no scope", each["custody_effective"], state)
    return "\t".join(render.escape(part) for part in parts)


def _account_lines(members: Mapping[str, Any]) -> Iterator[str]:
    limits = members["limits"]
    values = {
        "account": members["name"],
        "plan": members["plan"],
        "API access": members["api_access"],
        "requests per minute": "unset" if limits["requests_per_minute"] is None else limits["requests_per_minute"],
        "API keys": limits["api_keys"],
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
