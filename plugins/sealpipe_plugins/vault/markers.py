"""The marks of submissions beside a versioned key of Vault: one entry of its custom metadata, a list, newest last."""

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
"""The entry's name."""
ROOM: Final = 512
"""Bytes of an entry's value, which is ASCII: Vault's own limit."""
ENTRIES: Final = 64
"""Entries of one key's custom metadata: Vault's own limit, which a patch can break, and nobody afterwards mend."""
TRIES: Final = 8

_MERGE: Final = {"Content-Type": "application/merge-patch+json"}
_REFUSED: Final = (400, 403, 404, 405, 413, 501)  # 501: a proxy that knows no PATCH


class _Seen(NamedTuple):
    """The custom metadata; `version` is the metadata's own, where the server counts it (OpenBao does)."""

    custom: Mapping[str, str]
    version: str | None = None


def mark(target: Kv1Target, marker: str, custom: Mapping[str, str]) -> bool:
    """Put a mark beside what is stored; False where the token may not, or there is no room. Raises UnavailableError.

    `custom` is what was last seen. With check-and-set where the server has it for metadata; elsewhere the mark is
    looked for afterwards, so that of two that write at once one may still lose the other's.
    """
    for _ in range(TRIES):
        seen = _look(target) or _Seen(custom)
        if has_marker(seen.custom.get(ENTRY, ""), marker):
            return True
        if len(seen.custom.keys() | {ENTRY}) > ENTRIES:
            return False
        done = _send(target, seen, add_marker(seen.custom.get(ENTRY, ""), marker, ROOM))
        if done is False:
            return False
        if done and seen.version is not None:
            return True
        now = target.look().custom
        if now is None:
            return False  # a Vault from before there was any custom metadata
        if has_marker(now.get(ENTRY, ""), marker):
            return True
        custom = now
    raise UnavailableError(
        f"{target.place.where}: it is stored, and others change its metadata all the time",
        remedy="run it again: it is not stored twice",
    )


def _send(target: Kv1Target, seen: _Seen, value: str) -> bool | None:
    """Write the entry. False where that is refused, None where another was quicker."""
    cas = {} if seen.version is None else {"metadata_cas": Number(seen.version)}
    only = _body({ENTRY: value}, cas)
    done = _try_call(target, lambda adapter, url: adapter.request("PATCH", url, _MERGE, json=only))
    if done is not False:
        return done
    # Without the capability `patch`, or a server that knows it: all of it, as it was just read.
    whole = {**seen.custom, ENTRY: value}
    return _try_call(target, lambda adapter, url: adapter.post(url, json=_body(whole, cas)))


def _body(custom: Mapping[str, str], cas: Mapping[str, str]) -> dict[str, Any]:
    return {"custom_metadata": dict(custom), **cas}


def _try_call(target: Kv1Target, call: Callable[[VaultAdapter, str], Any]) -> bool | None:
    url = _url(target)
    try:
        target.vault.call(target.place, "", lambda adapter: call(adapter, url), through=_REFUSED)
    except VaultError as error:
        return None if has_words(error, "check-and-set parameter does not match") else False
    return True


def _look(target: Kv1Target) -> _Seen | None:
    """The metadata as its own path tells it; None where the token may not read that."""
    url = _url(target)
    try:
        found = target.vault.call(target.place, "", lambda adapter: adapter.get(url), through=_REFUSED)
    except VaultError:
        return None
    except UnavailableError:
        raise
    except PluginError:
        return None
    custom = get_member(found, "data", "custom_metadata")
    return _Seen(custom if isinstance(custom, dict) else {}, get_member(found, "data", "current_metadata_version"))


def _url(target: Kv1Target) -> str:
    return f"/v1/{quote(target.mount)}/metadata/{quote(target.path)}"
