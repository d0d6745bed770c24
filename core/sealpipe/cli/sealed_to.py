"""Which requests depend on a key: what `requests list --sealed-to` shows, so that a key can be let go of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sealpipe.api.models import RequestInfo
from sealpipe.client import Client
from sealpipe.errors import NotFoundError, PendingError, SettingError
from sealpipe.flows.collect.key import InHand, in_hand
from sealpipe.flows.collect.open import opened
from sealpipe.flows.collect.result import Received


def known_keys(client: Client) -> tuple[InHand, ...]:
    """The key pairs of this environment's credentials; none where they have no custody secret."""
    session = client.session
    has = [each for each in (session.credential, session.previous) if each is not None and each.custody_secret]
    return client.run(in_hand(session, "credential")) if has else ()


def sealed_to(client: Client, which: str, rows: Iterable[RequestInfo]) -> list[RequestInfo]:
    """Those of the rows that need one of our keys. Of one that has ended, what was submitted tells which it is."""
    keys = known_keys(client)
    wanted = next((each for each in keys if each.name == which), None)
    if wanted is None:
        variable = "SEALPIPE_API_KEY_PREVIOUS" if which == "previous" else "SEALPIPE_API_KEY"
        raise SettingError(
            f"{variable} is not set, or has no custody secret: nothing can be sealed to it", remedy=f"set {variable}"
        )
    if len({each.public_key for each in keys}) < len(keys):
        raise SettingError(
            "SEALPIPE_API_KEY and SEALPIPE_API_KEY_PREVIOUS are the same key",
            remedy="set SEALPIPE_API_KEY_PREVIOUS to the one before, or unset it",
        )
    found = []
    for row in rows:
        public_key = row.public_key if row.expires_at is not None else _key_of(client, row.short_code, keys)
        if public_key == wanted.public_key:
            found.append(replace(row, public_key=public_key))
    return found


def check_free(which: str, rows: list[RequestInfo]) -> None:
    """PendingError while anything needs the key before this one."""
    if which == "previous" and rows:
        raise PendingError(
            f"{len(rows)} request(s) still need the key before this one",
            remedy="collect them and end them; or keep SEALPIPE_API_KEY_PREVIOUS, and revoke that key later",
        )


def _key_of(client: Client, short_code: str, keys: tuple[InHand, ...]) -> str | None:
    """The key of one that has ended: the service does not tell it any more. None where nothing there opens."""
    try:
        items = client.list_submissions(short_code).items
    except NotFoundError:
        return None  # purged since it was listed
    for item in items:
        for each in keys:
            if isinstance(opened(item, [each], client.session.credential.tag), Received):
                return each.public_key
    return None
