"""Which keys have custody level `none`.

A service says it only by refusing a wrap (gaps: custody none on the client).

Remembered for an hour, because the level rises when a custody public key is registered, and that
nobody tells us.
"""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

from sealpipe.errors import StateError
from sealpipe.state.files import make_private_directory, open_at_once, remove_file, replace_file

REMEMBERED: Final = 3600.0
"""Seconds."""
_MAX_SIZE: Final = 1024 * 1024


class CustodyLevels:
    """What services taught, by base URL and key id.

    In memory, and with a folder also for other processes.

    It only saves calls: what cannot be read or written is as if it had not been taught.
    """

    def __init__(self, find_folder: Callable[[], Path] | None = None) -> None:
        self._find_folder = find_folder
        self._taught: dict[tuple[str, str], float] = {}

    def is_none(self, base_url: str, key_id: str) -> bool:
        """Return whether the service said in the last hour that the key has no custody level."""
        taught_at = self._taught.get((base_url, key_id)) or self._read(base_url, key_id)
        return 0 <= time.time() - taught_at < REMEMBERED

    def note(self, base_url: str, key_id: str, *, is_none: bool) -> None:
        """Remember what the service taught just now."""
        self._taught.pop((base_url, key_id), None)
        if is_none:
            self._taught[base_url, key_id] = time.time()
        with suppress(OSError, StateError):
            self._write(base_url, key_id, is_none=is_none)

    def _write(self, base_url: str, key_id: str, *, is_none: bool) -> None:
        path = self._find(base_url, key_id)
        if path is not None and is_none:
            make_private_directory(path.parent)
            members = {
                "schema": 1,
                "base_url": base_url,
                "key_id": key_id,
                "custody": "none",
                "taught_at": time.time(),
            }
            replace_file(path, json.dumps(members).encode() + b"\n")
        elif path is not None and path.exists():
            remove_file(path)

    def _read(self, base_url: str, key_id: str) -> float:
        """Return when it was taught, in seconds since 1970; 0 if it was not."""
        with suppress(
            OSError, StateError, ValueError, KeyError, TypeError, RecursionError, OverflowError
        ):
            path = self._find(base_url, key_id)
            if path is not None:
                with open_at_once(path) as file:
                    status = os.fstat(file.fileno())
                    # Another user's word must not take the wrap from a share.
                    if (
                        status.st_uid != os.geteuid()
                        or status.st_mode & 0o022
                        or not stat.S_ISREG(status.st_mode)
                    ):
                        return 0.0
                    members = json.loads(file.read(_MAX_SIZE))
                about = (
                    members["schema"],
                    members["base_url"],
                    members["key_id"],
                    members["custody"],
                )
                if about == (1, base_url, key_id, "none"):
                    return float(members["taught_at"])
        return 0.0

    def _find(self, base_url: str, key_id: str) -> Path | None:
        if self._find_folder is None:
            return None
        return self._find_folder() / (
            sha256(f"{base_url}\n{key_id}".encode()).hexdigest()[:32] + ".json"
        )
