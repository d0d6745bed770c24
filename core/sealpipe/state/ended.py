"""Which shares this machine has expired: one small file each, so that expiring twice is known from a mistyped code."""

from __future__ import annotations

import json
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from sealpipe.errors import StateError
from sealpipe.state import files


def note(folder: Path, base_url: str, short_code: str) -> None:
    """A share has been expired, as the service has answered. Raises StateError."""
    path, content = _place(folder, base_url, short_code)
    files.private_folder(folder)
    try:
        with suppress(FileExistsError):
            files.create(path, lambda: [content])
    except OSError as error:
        raise StateError(f"{path} cannot be written: {error.strerror}") from None


def noted(folder: Path, base_url: str, short_code: str) -> bool:
    """Whether that was noted. A file that does not say so, whole, says nothing."""
    path, content = _place(folder, base_url, short_code)
    try:
        return path.is_file() and not path.is_symlink() and path.read_bytes() == content
    except OSError:
        return False


def _place(folder: Path, base_url: str, short_code: str) -> tuple[Path, bytes]:
    told = {"schema": 1, "kind": "expired-share", "base_url": base_url, "short_code": short_code}
    name = sha256(f"{base_url}\n{short_code}".encode()).hexdigest()[:32]
    return folder / f"{name}.json", json.dumps(told).encode() + b"\n"
