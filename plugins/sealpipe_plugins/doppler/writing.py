"""Writes secrets of one config in one request, confirms them, and keeps the marker in their notes.

The request names the value that each secret has had, and Doppler refuses it whole if one has
changed since. For a secret that does not exist yet Doppler documents no such condition. A project's
configs share a secret's note, so the marker stands there with the config's name; notes are written
without a condition, after the values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sealpipe.plugin import (
    AccessDeniedError,
    Locator,
    Mode,
    PluginError,
    SecretNotFoundError,
    UnsupportedError,
)
from sealpipe_plugins.confirm import Snapshot, entries_snapshot, require_same, store_and_confirm
from sealpipe_plugins.doppler.api import Doppler
from sealpipe_plugins.doppler.configs import (
    SECRETS,
    ConfigContent,
    ConfigName,
    ConfigSecret,
    explain_refusals,
    read_config,
)
from sealpipe_plugins.http_errors import Refusals
from sealpipe_plugins.text_markers import append_marker, split_markers

MAX_NOTE: Final = 1000
"""Maximum characters of a note with markers. Doppler documents no limit."""

_HIDDEN: Final = b"\0hidden"
_EXPANDED: Final = b"\0expanded"
"""Stand for values that are not known, or not what was stored: no value to store equals them."""

_REJECTED: Final = (
    UnsupportedError,
    "rejects the change",
    "check there whether the config is locked, or its project wants changes to be reviewed",
)


class ConfigWrite:
    """A write of some secrets of a config, by name."""

    def __init__(
        self, doppler: Doppler, name: ConfigName, values: Mapping[str, str], marker: str
    ) -> None:
        self._doppler = doppler
        self._name = name
        self._values = values
        self._wanted = {key: value.encode() for key, value in values.items()}
        self._marker = marker

    def store(self, target: Locator, mode: Mode) -> tuple[ConfigContent, bool, bool]:
        """Return the config as last read, whether the values were read back, and whether they were
        there before.
        """
        outcome = store_and_confirm(
            self._read, self._write, self._wanted, target, mode, self._marker
        )
        if not outcome.is_written:
            return outcome.snapshot.raw, True, True
        content = read_config(self._doppler, self._name)
        read_back = self._present_values(content)
        hidden = {key for key, value in read_back.items() if value == _HIDDEN}
        expected = {key: _HIDDEN if key in hidden else value for key, value in self._wanted.items()}
        require_same(read_back, expected, target)
        return content, not hidden, False

    def add_markers(self, content: ConfigContent) -> bool:
        """Add the marker to each secret's note.

        Return False if the token may not, or a note has no room.
        """
        mark, refusals = self._mark(content), explain_refusals(self._name, "write the notes of")
        for key in self._values:
            note = content.secrets[key].note
            marked = append_marker(note, mark, MAX_NOTE)
            if mark in split_markers(note)[1]:
                continue
            if marked == note:
                return False
            try:
                self._doppler.request(
                    "POST", "/v3/projects/project/note",
                    {"project": self._name.project or content.project},
                    {"secret": key, "note": marked}, {**_explain_rejections(), **refusals},
                )  # fmt: skip
            except (AccessDeniedError, SecretNotFoundError, UnsupportedError):
                return False
        return True

    def _read(self) -> Snapshot:
        content = read_config(self._doppler, self._name)
        return entries_snapshot(self._present_values(content), self._wanted, content)

    def _write(self, snapshot: Snapshot, _after: Mapping[str, bytes], _tries: int) -> str | None:
        content: ConfigContent = snapshot.raw
        present = self._present_values(content)
        changes = [
            _make_change(key, value, content.secrets.get(key))
            for key, value in self._values.items()
            if present.get(key) != self._wanted[key]
        ]
        refusals = {**_explain_rejections(), **explain_refusals(self._name, "write")}
        members = {**self._name.members, "change_requests": changes}
        rejection: PluginError
        try:
            self._doppler.request("POST", SECRETS, members=members, refusals=refusals, writes=True)
            return ""
        except UnsupportedError as error:
            rejection = error
        # Doppler also refuses a change of a secret that has changed since it was read.
        if self._present_values(read_config(self._doppler, self._name)) == present:
            raise rejection
        return None

    def _present_values(self, content: ConfigContent) -> dict[str, bytes]:
        """Return the values of those secrets that exist.

        One with the marker counts as having the value to store.
        """
        mark = self._mark(content)
        return {
            key: value
            if mark in split_markers(content.secrets[key].note)[1]
            else _comparable(content.secrets[key])
            for key, value in self._wanted.items()
            if key in content.secrets
        }

    def _mark(self, content: ConfigContent) -> str:
        return f"{self._name.config or content.config}/{self._marker}"


def _explain_rejections() -> Refusals:
    return dict.fromkeys((400, 409, 412, 422), _REJECTED)


def _comparable(secret: ConfigSecret) -> bytes:
    if secret.raw is None:
        return _HIDDEN
    return (
        secret.raw.encode("utf-8", "surrogatepass")
        if secret.computed in (None, secret.raw)
        else _EXPANDED
    )


def _make_change(key: str, value: str, existing: ConfigSecret | None) -> dict[str, Any]:
    if existing is None:
        return {"name": key, "originalName": None, "value": value}
    condition = {} if existing.raw is None else {"originalValue": existing.raw}
    return {"name": key, "originalName": key, "value": value, **condition}
