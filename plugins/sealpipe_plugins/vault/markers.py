"""The markers of submissions, in the custom metadata of a versioned Vault key, newest last."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from hvac.exceptions import VaultError

from sealpipe.plugin import PluginError, UnavailableError
from sealpipe_plugins.confirm import add_marker, has_marker
from sealpipe_plugins.vault.adapter import Number, VaultAdapter, get_member
from sealpipe_plugins.vault.errors import has_words
from sealpipe_plugins.vault.writing import Kv1Target

ENTRY: Final = "sealpipe"
"""The name of the entry."""
MAX_VALUE: Final = 512
"""Maximum bytes of an entry's value: Vault's own limit."""
MAX_ENTRIES: Final = 64
"""Maximum entries in one key's custom metadata: Vault's own limit.

A patch can exceed it, beyond repair.
"""
TRIES: Final = 8

_MERGE: Final = {"content-type": "application/merge-patch+json"}
_REFUSED: Final = (400, 403, 404, 405, 413, 501)  # 501: a proxy that does not support PATCH


class _Metadata(NamedTuple):
    """The custom metadata.

    `version` is the metadata's own version, if the server counts it (OpenBao does).
    """

    custom: Mapping[str, str]
    version: str | None = None


def add_mark(target: Kv1Target, marker: str, custom: Mapping[str, str]) -> bool:
    """Add a marker; return False if the token may not or if there is no room.

    Raises UnavailableError.

    `custom` is the metadata last read. Uses check-and-set if the server supports it for metadata.
    Otherwise the marker is read back, and two concurrent writers may lose one marker.
    """
    for _ in range(TRIES):
        metadata = _read_metadata(target) or _Metadata(custom)
        if has_marker(metadata.custom.get(ENTRY, ""), marker):
            return True
        if len(metadata.custom.keys() | {ENTRY}) > MAX_ENTRIES:
            return False
        is_written = _write_entry(
            target, metadata, add_marker(metadata.custom.get(ENTRY, ""), marker, MAX_VALUE)
        )
        if is_written is False:
            return False
        if is_written and metadata.version is not None:
            return True
        current = target.read().custom
        if current is None:
            return False  # an old Vault without custom metadata
        if has_marker(current.get(ENTRY, ""), marker):
            return True
        custom = current
    raise UnavailableError(
        (
            f"{target.vault_path.reference}: it is stored, but other writers keep changing its "
            "metadata"
        ),
        remedy="run it again: it is not stored twice",
    )


def _write_entry(target: Kv1Target, metadata: _Metadata, value: str) -> bool | None:
    """Write the entry. Return False if it is refused, None if another writer was faster."""
    cas = {} if metadata.version is None else {"metadata_cas": Number(metadata.version)}
    entry_members = _make_body({ENTRY: value}, cas)
    is_written = _try_call(
        target, lambda adapter, url: adapter.request("PATCH", url, _MERGE, json=entry_members)
    )
    if is_written is not False:
        return is_written
    # Without the capability `patch` or server support for it, write all metadata as just read.
    all_members = {**metadata.custom, ENTRY: value}
    return _try_call(
        target, lambda adapter, url: adapter.post(url, json=_make_body(all_members, cas))
    )


def _make_body(custom: Mapping[str, str], cas: Mapping[str, str]) -> dict[str, Any]:
    return {"custom_metadata": dict(custom), **cas}


def _try_call(target: Kv1Target, call: Callable[[VaultAdapter, str], Any]) -> bool | None:
    url = _metadata_url(target)
    try:
        target.vault.call(
            target.vault_path, "", lambda adapter: call(adapter, url), passed_statuses=_REFUSED
        )
    except VaultError as error:
        return None if has_words(error, "check-and-set parameter does not match") else False
    return True


def _read_metadata(target: Kv1Target) -> _Metadata | None:
    """Read the metadata; None if the token may not."""
    url = _metadata_url(target)
    try:
        response = target.vault.call(
            target.vault_path, "", lambda adapter: adapter.get(url), passed_statuses=_REFUSED
        )
    except VaultError:
        return None
    except UnavailableError:
        raise
    except PluginError:
        return None
    custom = get_member(response, "data", "custom_metadata")
    return _Metadata(
        custom if isinstance(custom, dict) else {},
        get_member(response, "data", "current_metadata_version"),
    )


def _metadata_url(target: Kv1Target) -> str:
    return f"/v1/{quote(target.mount)}/metadata/{quote(target.path)}"
