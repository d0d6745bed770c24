"""`age:PATH`: a new value as a 0600 file, encrypted with age to the recipients of the settings."""

from __future__ import annotations

from collections.abc import Sequence

import pyrage

from sealpipe.plugin import (
    Context,
    Health,
    Locator,
    Mode,
    NotConfiguredError,
    PayloadTooLargeError,
    PluginError,
    ReferenceValueError,
    Sink,
    SinkField,
    WriteConflictError,
    WriteResult,
    merge_fields,
)
from sealpipe_plugins.age.decrypt import decrypt
from sealpipe_plugins.age.file_format import SIZE_LIMIT
from sealpipe_plugins.age.keys import load_identities, load_recipients
from sealpipe_plugins.age.settings import AgeSettings
from sealpipe_plugins.local import files
from sealpipe_plugins.local.file_sinks import confirm_content

_UNREADABLE = {"another file": b""}
"""Stands for what a file holds that cannot be decrypted here."""


class AgeSink(Sink):
    """Encrypted files on this machine. They have no room for a marker.

    A machine that can only encrypt sees that a file exists, not what it holds. With an identity,
    equal content counts as stored.
    """

    def __init__(self, settings: AgeSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._recipients = load_recipients(settings, context)
        self._identities = load_identities(settings, context)
        if not self._recipients and not self._identities:
            raise self._lacks_recipients()

    def describe(self, locator: Locator, mode: Mode) -> str:
        """Describe the write."""
        path = files.parse_path(locator)
        _parse_armor(locator)
        what = (
            f"write the new file {path}"
            if mode == "create"
            else f"write {path}, replacing what is there"
        )
        return f"{what}, encrypted by age"

    def put(
        self,
        locator: Locator,
        fields: Sequence[SinkField],
        *,
        mode: Mode,
        marker: str,  # noqa: ARG002
    ) -> WriteResult:
        """Encrypt the value, write the file and read it back."""
        path, armored = files.parse_path(locator), _parse_armor(locator)
        if len(fields) != 1:
            raise ReferenceValueError(
                f"{locator} holds one value", remedy="name one prompt, and a file for each"
            )
        value = files.encode_value(fields[0])
        if not self._recipients:
            raise self._lacks_recipients()
        written: list[bytes] = []

        def decide(existing: bytes | None) -> bytes | None:
            held = None if existing is None else self._read_held(existing, locator)
            if merge_fields(held, {"": value}, mode=mode, marked=False) is None:
                return None
            written.append(pyrage.encrypt(value, self._recipients, armored))
            return written[-1]

        already = files.write_when_needed(
            self.context, locator, path, mode, decide, limit=SIZE_LIMIT
        )
        file = files.read_state(locator, path, limit=SIZE_LIMIT)
        if written:
            # All that a machine without an identity can confirm.
            confirm_content(locator, file, written[-1])
        held = {} if file is None else self._read_held(file.content, locator)
        if held != {"": value} and not (written and held == _UNREADABLE):
            raise WriteConflictError(
                f"{locator} does not decrypt to what was stored",
                remedy="check what else writes to it",
            )
        return WriteResult(locator, already=already)

    def check(self) -> Health:
        """Check the recipients, and say whether this machine can read what it writes."""
        if not self._recipients:
            return Health(ok=True, detail="no recipients: this machine only decrypts")
        can = "can" if self._identities else "cannot"
        return Health(
            ok=True, detail=f"recipients: {len(self._recipients)}; this machine {can} decrypt"
        )

    def _lacks_recipients(self) -> NotConfiguredError:
        return NotConfiguredError(
            f"{self.context.store} has no recipients to encrypt to",
            remedy="set recipients (the age1... of each reader), or recipients_file",
        )

    def _read_held(self, content: bytes, locator: Locator) -> dict[str, bytes]:
        """Return a file's value, as far as this machine can read it."""
        try:
            return {"": decrypt(content, self._identities, locator)}
        except (PluginError, PayloadTooLargeError):
            return dict(_UNREADABLE)


def _parse_armor(locator: Locator) -> bool:
    armor = locator.param("armor") or "0"
    if armor not in ("0", "1"):
        raise ReferenceValueError(f"{locator.name}: armor= must be 0 or 1", remedy="correct armor=")
    return armor == "1"
