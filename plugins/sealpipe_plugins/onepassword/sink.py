"""`op://Vault/Item#field=PROMPT`: fields of a 1Password item, through a Connect server or a service
account.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from sealpipe.plugin import (
    Context,
    Health,
    Locator,
    Mode,
    ReferenceValueError,
    Sink,
    SinkField,
    WriteResult,
)
from sealpipe_plugins.confirm import Snapshot, add_marker, require_same, store_and_confirm
from sealpipe_plugins.onepassword.changes import (
    Changes,
    NewField,
    check_key,
    plan_changes,
    plan_item,
    read_item,
)
from sealpipe_plugins.onepassword.source import (
    OnePasswordSettings,
    make_sdk,
    parse_path,
    uses_connect,
)
from sealpipe_plugins.sink_values import decode_text, values_by_key

_MARKERS_LIMIT: Final = 2000
_DESCRIPTIONS: Final[Mapping[Mode, str]] = {
    "create": "make the 1Password item {item} of the vault {vault}",
    "replace": "write the 1Password item {item} of the vault {vault}, replacing its fields",
    "merge": "set fields of the 1Password item {item} of the vault {vault}",
}


class Items(Protocol):
    """The items of an account, by a login. An item is a mapping in Connect's form."""

    def find(self, vault: str, title: str) -> Mapping[str, Any] | None:
        """Return an item as it is now, by names or ids.

        Raises ReferenceValueError (ambiguous name).
        """

    def create(self, vault: str, title: str, fields: Sequence[NewField]) -> bool:
        """Make a login. Returns False if others changed the vault. Raises UnknownOutcomeError."""

    def update_item(self, item: Mapping[str, Any], changes: Changes) -> bool:
        """Change an item's fields at once.

        Returns False if others changed it. Raises UnknownOutcomeError.
        """

    def check(self) -> str:
        """Log in, and describe the login."""


def make_sink(settings: OnePasswordSettings, context: Context) -> Sink:
    """Return the sink for the configured login: the same one as for reading."""
    if uses_connect(settings, context):
        from sealpipe_plugins.onepassword.connect import Connect

        host, token = settings.connect_host, settings.connect_token
        connect = Connect(context, host, token)  # type: ignore[arg-type]
        return OnePasswordSink(settings, context, connect)
    from sealpipe_plugins.onepassword.sdk_items import SdkItems

    return OnePasswordSink(settings, context, SdkItems(make_sdk(settings, context)))


class OnePasswordSink(Sink):
    """Items of the account.

    Only the fields that change are written; 1Password keeps what an item was.
    """

    def __init__(self, settings: OnePasswordSettings, context: Context, items: Items) -> None:
        super().__init__(settings, context)
        self._items = items

    def describe(self, locator: Locator, mode: Mode) -> str:
        """Describe the write."""
        vault, item = parse_path(locator, shortest=2)[:2]
        return _DESCRIPTIONS[mode].format(vault=vault, item=item)

    def put(
        self, locator: Locator, fields: Sequence[SinkField], *, mode: Mode, marker: str
    ) -> WriteResult:
        """Write the fields that differ, with the marker, and read the item back."""
        vault, title, *field = parse_path(locator, shortest=2)
        wanted = _parse_fields(locator, field, fields)

        def read() -> Snapshot:
            item = self._items.find(vault, title)
            return Snapshot(None) if item is None else read_item(item, wanted)

        def write(snapshot: Snapshot, after: Mapping[str, bytes], _: int) -> str | None:
            markers = add_marker(snapshot.markers, marker, _MARKERS_LIMIT)
            if snapshot.values is None:
                is_written = self._items.create(vault, title, plan_item(after, markers))
            else:
                is_written = self._items.update_item(
                    snapshot.raw, plan_changes(snapshot.raw, wanted, after, markers)
                )
            return "" if is_written else None

        outcome = store_and_confirm(read, write, wanted, locator, mode, marker)
        found = read() if outcome.is_written else outcome.snapshot
        if outcome.is_written:
            held = found.values or {}
            require_same({key: held.get(key) for key in wanted}, wanted, locator)
        return WriteResult(locator, found.version, already=not outcome.is_written)

    def check(self) -> Health:
        """Check whether 1Password accepts the login. Changes nothing."""
        return Health(ok=True, detail=self._items.check())


def _parse_fields(
    locator: Locator, path: Sequence[str], fields: Sequence[SinkField]
) -> dict[str, bytes]:
    """Return the values by key: a field in the path, or the keys of the target."""
    if path:
        if [each.key for each in fields] != [""]:
            raise ReferenceValueError(
                f"{locator} names a field, and so do its keys", remedy="name it in one place"
            )
        fields = [SinkField("/".join(path), fields[0].value)]
    wanted = values_by_key(fields, locator)
    for key, value in wanted.items():
        check_key(key, locator)
        decode_text(value, locator)
    return wanted
