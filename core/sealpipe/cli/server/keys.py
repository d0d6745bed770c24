"""`sealpipe server key` and `sealpipe server custody`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from sealpipe.cli import render
from sealpipe.cli.server.opening import open_store, plan_printing, print_secrets
from sealpipe.errors import (
    ApiAccessError,
    EncodingError,
    KeyAllowanceError,
    PointError,
    UsageError,
    quote_input,
)
from sealpipe.minting import mint
from sealpipe.parsing import format_time
from sealpipe.secret import Secret
from sealpipe.wire import encoding, keys
from sealpipe_service import administration
from sealpipe_service.credentials import (
    CUSTODY_LEVELS,
    EXTENDED_SCOPES,
    FORM_SCOPES,
    MAX_NAME,
    Key,
    key_from,
)
from sealpipe_service.database.decisions import CompromisedError, QuotaError, Store

ALL_SCOPES = "all"
_LEVELS = {level: name for name, level in CUSTODY_LEVELS.items()}


def create(**values: Any) -> None:
    """Run `sealpipe server key create`."""
    point = check_public_key(values["custody_public_key"])
    scopes = check_scopes(values["scope"])
    name = check_name(values["name"])
    gate = plan_printing("the credential", values)
    with open_store(values) as store:
        check_account(store, values["account"], values["org"])
        credential = add_key(
            store,
            name=name,
            scopes=scopes,
            custody=values["custody"],
            account=values["account"],
            organization=values["org"],
            public_key=point,
        )
    members = {"api_key": credential.reveal(), "scopes": sorted(scopes)}
    print_secrets(gate, values, [credential], members, [credential.reveal()])
    if point:
        render.print_note(
            "it has two parts: append a dot and the custody secret, which only the client has"
        )


def add_key(
    store: Store,
    *,
    name: str,
    scopes: frozenset[str],
    custody: str,
    account: str,
    organization: str | None = None,
    public_key: str | None = None,
    tag: str | None = None,
) -> Secret:
    """Make a key and register it; return the credential, with the service's tag if none is given.

    The service keeps a hash, the level and a public key. With `public_key` the credential has only
    two parts. Raises the errors that the user should see.
    """
    minted = mint(tag or store.tag() or "svc")
    key = Key(
        key_id=minted.key_id,
        account=account,
        name=name,
        auth_sha256=minted.auth_sha256,
        scopes=scopes,
        custody_requested=CUSTODY_LEVELS[custody],
        custody_public_key=None if custody == "none" else public_key or minted.custody_public_key,
        created_at=store.now(),
        last_used_at=None,
        revoked_at=None,
        compromised_at=None,
        organization=organization,
    )
    try:
        administration.add_key(store, key)
    except administration.NoAccessError:
        raise ApiAccessError(
            "the plan of this account has no API access",
            status=403,
            error_code=98,
            remedy="`sealpipe server account plan` gives it another",
        ) from None
    except QuotaError:
        raise KeyAllowanceError(
            "the plan of this account allows no further key",
            status=403,
            error_code=100,
            remedy="revoke one, or raise --keys with `sealpipe server account plan`",
        ) from None
    except CompromisedError:
        raise UsageError(
            "this custody key was compromised: its secret was sent to the service",
            remedy="make a new one with `sealpipe custody new`",
        ) from None
    if public_key:
        return Secret(minted.credential.reveal().rpartition(".")[0])
    return minted.credential


def check_name(name: str) -> str:
    """Check a key's name (gaps: key name)."""
    if not 0 < len(name.strip()) <= MAX_NAME:
        raise UsageError(f"--name: a key's name has 1 to {MAX_NAME} characters")
    return name.strip()


def check_scopes(scopes: tuple[str, ...]) -> frozenset[str]:
    """Return the scopes of a key."""
    if ALL_SCOPES in scopes:
        return frozenset(EXTENDED_SCOPES)
    unknown = [scope for scope in scopes if scope not in EXTENDED_SCOPES]
    if unknown:
        raise UsageError(
            f"--scope: {quote_input(unknown[0])} is no scope",
            remedy=f"choose from {', '.join((ALL_SCOPES, *EXTENDED_SCOPES))}",
        )
    return frozenset(scopes or FORM_SCOPES)


def check_public_key(text: str | None) -> str | None:
    """Check a custody public key: a point of P-256, by the library."""
    if text is None:
        return None
    try:
        keys.public_key(encoding.decode_base64url(text))
    except (EncodingError, PointError):
        pass
    else:
        return text
    raise UsageError(
        "--custody-public-key: the value is no public key",
        remedy="`sealpipe custody new` prints one on its second line",
    )


def check_account(store: Store, account: str, organization: str | None = None) -> None:
    """Raise UsageError for an account that was not added."""
    name = account if organization is None else f"org:{organization}"
    if store.account(name) is None:
        raise UsageError(
            f"there is no account {quote_input(name)}",
            remedy=f"`sealpipe server account add {render.escape(name)}` adds it",
        )


def list_keys(**values: Any) -> None:
    """Run `sealpipe server key list`."""
    with open_store(values) as store:
        found = [_describe(key_from(row)) for row in store.list_keys()]
    if values["output"] == "json":
        render.print_json({"keys": found})
        return
    render.print_table(
        ("KEY ID", "NAME", "ACCOUNT", "SCOPES", "CUSTODY", "STATE"), map(_cells, found)
    )


def revoke(key_id: str, **values: Any) -> None:
    """Run `sealpipe server key revoke`."""
    with open_store(values) as store:
        if store.key(key_id) is None:
            raise _make_unknown_error(key_id)
        is_new = store.revoke(key_id)
    words = "revoked" if is_new else "was revoked before"
    render.print_note(f"{words}: {render.escape(key_id)}")
    if values["output"] == "json":
        render.print_json({"key_id": key_id, "revoked": True})


def approve(key_id: str, **values: Any) -> None:
    """Run `sealpipe server custody approve`."""
    with open_store(values) as store:
        try:
            key = administration.approve_custody(store, key_id)
        except administration.NotRequestedError:
            raise UsageError(
                "the key did not ask for custody account, or has no public key",
                remedy="create one with --custody account",
            ) from None
    if key is None:
        raise _make_unknown_error(key_id)
    if values["output"] == "json":
        render.print_json(_describe(key))
    else:
        render.print_note(f"approved: {render.escape(key_id)} can read all shares of its account")


def _make_unknown_error(key_id: str) -> UsageError:
    return UsageError(
        f"there is no key {quote_input(key_id)}",
        remedy="`sealpipe server key list` shows their ids",
    )


def _describe(key: Key) -> dict[str, Any]:
    def at(seconds: float | None) -> str | None:
        return None if seconds is None else format_time(datetime.fromtimestamp(seconds, UTC))

    return {
        "key_id": key.key_id,
        "name": key.name,
        "account": key.account,
        "organization": key.organization,
        "scopes": sorted(key.scopes),
        "custody_requested": _LEVELS[key.custody_requested],
        "custody_effective": _LEVELS[key.custody_level],
        "created_at": at(key.created_at),
        "last_used_at": at(key.last_used_at),
        "revoked_at": at(key.revoked_at),
        "compromised_at": at(key.compromised_at),
    }


def _cells(key: Mapping[str, Any]) -> tuple[str, ...]:
    state = f"last used {key['last_used_at']}" if key["last_used_at"] else "never used"
    if key["compromised_at"]:
        state = f"compromised {key['compromised_at']}: revoke it"
    if key["revoked_at"]:
        state = f"revoked {key['revoked_at']}"
    owner = f"org:{key['organization']}" if key["organization"] else key["account"]
    cells = (key["key_id"], key["name"], owner, ",".join(key["scopes"]))
    return (*map(render.escape, cells), _describe_custody(key), state)


def _describe_custody(key: Mapping[str, Any]) -> str:
    has, asked = key["custody_effective"], key["custody_requested"]
    can_wait = has != _LEVELS[0] and key["revoked_at"] is None  # without a public key it cannot
    return f"{has} ({asked} waits for approval)" if can_wait and has != asked else has
