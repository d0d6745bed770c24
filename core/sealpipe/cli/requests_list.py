"""`sealpipe requests list`, also of those that still need a key (`--sealed-to`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sealpipe.api.pages import Page, Pagination
from sealpipe.api.requests import RequestInfo
from sealpipe.cli import render
from sealpipe.cli.code_lists import fetch_page, print_page
from sealpipe.cli.known_names import UNKNOWN, KnownNames
from sealpipe.cli.opening import open_client
from sealpipe.client import Client
from sealpipe.collect.open import OpeningKey, load_keys, open_submission
from sealpipe.collect.results import OpenedSubmission
from sealpipe.errors import NotFoundError, PendingError, SettingError, UsageError
from sealpipe.parsing import format_optional_time

COLUMNS = ("CODE", "EXPIRES", "KEY", "STATE", "NAME", "TITLE")

_UNSUPPORTED = "this service does not list expired requests"


def list_requests(status: str, sealed_to: str | None, **values: Any) -> None:
    """Run `sealpipe requests list`."""
    with open_client(values) as client:
        known = KnownRequests(client, values)
        wanted_page = {**values, "all": values["all"] or sealed_to is not None}
        fetch = _list_active if status == "active" else _list_expired
        listed_page = fetch(client, wanted_page, sealed_to)
    print_page(
        "requests",
        listed_page,
        values,
        members=known.describe,
        columns=COLUMNS,
        cells=known.list_cells,
    )
    if sealed_to == "previous" and listed_page.items:
        count = render.count(len(listed_page.items), "request")
        raise PendingError(
            f"{count} still {'needs' if len(listed_page.items) == 1 else 'need'} the previous key",
            remedy=(
                "collect and expire them; or keep SEALPIPE_API_KEY_PREVIOUS set, and revoke "
                "that key later"
            ),
        )


class KnownRequests:
    """What this environment knows of requests.

    The keys of its credentials, and names that this machine gave.
    """

    def __init__(self, client: Client, values: Mapping[str, Any]) -> None:
        self._keys = {each.public_key: each.name for each in reversed(_key_pairs(client))}
        self._names = KnownNames(values, "request", client.session.base_url)

    def describe(self, row: RequestInfo) -> dict[str, Any]:
        """Return a request as JSON members."""
        expires_at = format_optional_time(row.expires_at)
        members = {
            "short_code": row.short_code,
            "expires_at": expires_at,
            "public_key": row.public_key,
            "key": self._name_key(row),
        }
        return {**row.extra, **members, **self._names.describe(row.short_code, _find_state(row))}

    def list_cells(self, row: RequestInfo) -> list[str]:
        """Return a request as the cells of a line (`COLUMNS`)."""
        expires_at = format_optional_time(row.expires_at) or "expired"
        cells = [render.escape(row.short_code), expires_at, self._name_key(row) or UNKNOWN]
        return [*cells, *self._names.list_cells(row.short_code, _find_state(row))]

    def _name_key(self, row: RequestInfo) -> str | None:
        """Return the name of the key that a request is sealed to; None if it is unknown."""
        return self._keys.get(row.public_key, "other") if row.public_key and self._keys else None


def _find_state(row: RequestInfo) -> str:
    return "expired" if row.expires_at is None else "active"


def _key_pairs(client: Client) -> tuple[OpeningKey, ...]:
    """Return the key pairs of this environment's credentials; none without a custody secret."""

    session = client.session
    has = [
        each
        for each in (session.credential, session.previous)
        if each is not None and each.custody_secret
    ]
    return load_keys(session, "credential") if has else ()


def _list_active(
    client: Client, filters: dict[str, Any], sealed_to: str | None
) -> Page[RequestInfo]:
    return fetch_page(
        filters,
        lambda page, limit: client.list_requests(page=page, limit=limit),
        lambda limit: _select_sealed(client, sealed_to, client.iter_requests(limit=limit)),
    )


def _list_expired(
    client: Client, filters: dict[str, Any], sealed_to: str | None
) -> Page[RequestInfo]:
    expired = _Expired(client)
    listed_page = fetch_page(
        filters,
        lambda page, limit: expired.filter_page(
            client.list_requests(page=page, limit=limit, status="expired")
        ),
        lambda limit: _select_sealed(
            client, sealed_to, expired.filter(client.iter_requests(limit=limit, status="expired"))
        ),
    )
    expired.check(required=sealed_to is not None)
    return listed_page


@dataclass
class _Expired:
    """Filters the list of expired requests, which not every service has.

    The specification does not define `status`: a service may ignore it and list the active
    requests. To take those for expired requests would suggest that no request needs the old key any
    more.
    """

    client: Client
    expired: int = 0
    active: int = 0

    def filter(self, rows: Iterable[RequestInfo]) -> Iterator[RequestInfo]:
        """Yield the expired requests; an active one proves that this is the wrong list."""
        for row in rows:
            if row.expires_at is None:
                self.expired += 1
                yield row
            else:
                self.active += 1

    def filter_page(self, page: Page[RequestInfo]) -> Page[RequestInfo]:
        """Filter a page, and drop its pagination if it belongs to the wrong list."""

        items = tuple(self.filter(page.items))
        return replace(page, items=items, pagination=Pagination()) if self.active else page

    def is_supported(self) -> bool:
        """Whether the service has the list.

        If the list is empty, the service's other capabilities decide.
        """
        if self.active or self.expired:
            return not self.active
        return self.client.get_capabilities() is not None or bool(
            self.client.list_requests(limit=1).items
        )

    def check(self, *, required: bool) -> None:
        """Warn if the service does not have the list; UsageError if the result depends on it."""
        if self.is_supported():
            return
        if required:
            raise UsageError(
                f"{_UNSUPPORTED}: which of them need a key is unknown",
                remedy="collect those that you have a receipt or a code of: sealpipe collect "
                "RECEIPT; nobody can collect others",
            )
        render.print_note(_UNSUPPORTED)


def _select_sealed(
    client: Client, which: str | None, rows: Iterable[RequestInfo]
) -> Iterable[RequestInfo]:
    """Select requests sealed to one of our keys.

    The key of an expired request is found with its submissions.
    """
    if which is None:
        return rows
    keys = _key_pairs(client)
    wanted_keys = next((each for each in keys if each.name == which), None)
    if wanted_keys is None:
        variable = "SEALPIPE_API_KEY_PREVIOUS" if which == "previous" else "SEALPIPE_API_KEY"
        raise SettingError(
            f"{variable} is not set, or has no custody secret", remedy=f"set {variable}"
        )
    if len({each.public_key for each in keys}) < len(keys):
        raise SettingError(
            "SEALPIPE_API_KEY and SEALPIPE_API_KEY_PREVIOUS are the same key",
            remedy="set SEALPIPE_API_KEY_PREVIOUS to the key before it, or unset it",
        )
    key_name = []
    for row in rows:
        public_key = (
            row.public_key
            if row.expires_at is not None
            else _find_key_of_expired(client, row.short_code, keys)
        )
        if public_key == wanted_keys.public_key:
            key_name.append(replace(row, public_key=public_key))
    return key_name


def _find_key_of_expired(
    client: Client, short_code: str, keys: tuple[OpeningKey, ...]
) -> str | None:
    """Return the public key of the pair that opens a submission of a request, or None."""

    try:
        items = client.list_submissions(short_code).items
    except NotFoundError:
        return None  # purged after it was listed
    for submission in items:
        for each in keys:
            if isinstance(
                open_submission(submission, [each], client.session.credential.tag), OpenedSubmission
            ):
                return each.public_key
    return None
