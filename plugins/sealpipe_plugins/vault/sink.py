"""`vault:MOUNT/PATH#KEY=...`: keys of the key-value engines of HashiCorp Vault and OpenBao."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from sealpipe.plugin import (
    Context,
    Health,
    Locator,
    Mode,
    Receipt,
    ReferenceValueError,
    Sink,
    Stored,
    UnsupportedError,
    WriteConflictError,
    missing,
)
from sealpipe_plugins.vault.adapter import Number, spelled
from sealpipe_plugins.vault.client import Vault
from sealpipe_plugins.vault.markers import mark, marks
from sealpipe_plugins.vault.path import Place, place
from sealpipe_plugins.vault.settings import VaultSettings
from sealpipe_plugins.vault.writing import Found, Plain, keeper

_TRIES: Final = 12
"""Looks at a place that others write to: each of them but the last one of us is a write of theirs."""
_LONGEST: Final = 0.5
"""Seconds before another look, at most: so that those who met do not meet again."""

_DONE: Final[Mapping[Mode, str]] = {
    "create": "store {path} in Vault at {host}, where nothing may be yet",
    "replace": "store {path} in Vault at {host}, in place of all keys that are there",
    "merge": "store keys of {path} in Vault at {host}, and keep its other keys",
}


class VaultSink(Sink):
    """Both versions of the key-value engine. One with versions is written with check-and-set, and marked."""

    def __init__(self, settings: VaultSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._vault = Vault(settings, context)

    def describe(self, locator: Locator, mode: Mode) -> str:
        """As the base says."""
        where = self._place(locator)
        inside = f" (namespace {where.namespace})" if where.namespace else ""
        return _DONE[mode].format(path=where.path, host=self._vault.host) + inside

    def put(self, locator: Locator, fields: Sequence[Stored], *, mode: Mode, marker: str) -> Receipt:
        """As the base says. The receipt's version is that of the key; empty in an engine without versions."""
        where = self._place(locator)
        wanted = _wanted(locator, fields)
        kept = keeper(self._vault, where)
        for number in range(_TRIES):
            time.sleep(min(_LONGEST, 0.02 * 2**number) * secrets.randbelow(1000) / 1000 if number else 0)
            found = kept.look()
            after = _after(found, wanted, mode, marker)
            if after is None:
                self._mark(kept, found, marker)
                return Receipt(locator, _told(found.version), already=True)
            _no_api_path(kept, found, locator)
            version = kept.write(found, after)
            if version is not None:
                self._mark(kept, kept.confirm(version, after), marker)
                return Receipt(locator, _told(version))
        raise WriteConflictError(
            f"{locator}: others write there all the time", remedy="run it again when they are done"
        )

    def check(self) -> Health:
        """Whether Vault answers and takes our token, and what this may do."""
        return Health(ok=True, detail=self._vault.state())

    def close(self) -> None:
        """Revoke what we logged in for, and hang up."""
        self._vault.session.close()

    def _place(self, locator: Locator) -> Place:
        return place(locator, self._vault.session.namespace)

    def _mark(self, kept: Plain, found: Found, marker: str) -> None:
        if not kept.marks or marker in marks(found.custom):
            return
        if not mark(kept, marker, found.custom or {}):
            self.context.logger.info("%s: stored, without a mark of its submission", kept.place.where)


def _wanted(locator: Locator, fields: Sequence[Stored]) -> dict[str, str]:
    """What is to be stored, as text. ReferenceValueError for a key that cannot be one, UnsupportedError for such a
    value."""
    wanted: dict[str, str] = {}
    for field in fields:
        if not field.key or not _is_text(field.key.encode("utf-8", "surrogatepass")):
            raise ReferenceValueError(
                f"{locator}: Vault stores each value under a key",
                remedy="name the key to store it under: #password=PROMPT",
            )
        text = _text(field)
        if text is None:
            raise UnsupportedError(
                f"{locator}: Vault stores text, and the value for a key is not UTF-8",
                remedy="have it sent as base64 text, store that, and read it with decode=base64",
            )
        wanted[field.key] = text
    return wanted


def _text(field: Stored) -> str | None:
    try:
        return field.value.reveal_bytes().decode()
    except UnicodeError:
        return None


def _is_text(key: bytes) -> bool:
    try:
        key.decode()
    except UnicodeError:
        return False
    return True


def _after(found: Found, wanted: Mapping[str, str], mode: Mode, marker: str) -> dict[str, Any] | None:
    """What the place must hold from now on, the keys of others as they are; None where it does. Raises
    WriteConflictError."""
    there = None if found.data is None else {key: _exactly(value) for key, value in found.data.items()}
    marked = marker in marks(found.custom)
    after = missing(there, {key: value.encode() for key, value in wanted.items()}, mode=mode, marked=marked)
    return None if after is None else {key: wanted[key] if key in wanted else (found.data or {})[key] for key in after}


def _exactly(value: Any) -> bytes:
    """A value as bytes to compare; one that is no text is none that anybody could want to store."""
    if isinstance(value, str) and not isinstance(value, Number):
        return value.encode("utf-8", "surrogatepass")
    return b"\xff" + spelled(value).encode()


def _no_api_path(kept: Plain, found: Found, locator: Locator) -> None:
    """Nobody means a new key below data/: that belongs to the API's path."""
    if kept.marks and found.version == 0 and kept.path.startswith(("data/", "metadata/")):
        raise ReferenceValueError(
            f"{locator}: begins with data/ or metadata/ behind its mount, which belong to the API's path",
            remedy="leave that part out",
        )


def _told(version: int) -> str:
    return str(version) if version else ""
