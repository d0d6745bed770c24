"""The token of the server over HTTP, in a 0600 file that is made on first use."""

from __future__ import annotations

import base64
import contextlib
import os
import re
import secrets
from pathlib import Path
from typing import Final

from sealpipe import permissions
from sealpipe.errors import SettingError, StateError
from sealpipe.secret import Secret
from sealpipe.state.files import create_file

TOKEN_FILE: Final = "http-token"  # noqa: S105 - no token
"""The file's name in the server's folder of the state directory."""
_TOKEN: Final = re.compile(r"[A-Za-z0-9_-]{43}")
_MAX_TOKEN_FILE: Final = 4096


def load_token(path: Path) -> Secret:
    """Return the token of a file; make the file, with a new token, if it is missing.

    Raises SettingError for a file that others could read or have written or that holds no token of
    ours, and StateError if it cannot be read or made.
    """
    try:
        if not path.exists():
            token = base64.urlsafe_b64encode(secrets.token_bytes(32)).rstrip(b"=")
            with contextlib.suppress(FileExistsError):  # another server has just made it
                create_file(path, lambda: [token + b"\n"])
        return _read_token(path)
    except OSError as error:
        raise StateError(
            f"the token file {path} cannot be read or made: {error.strerror}"
        ) from None


def _read_token(path: Path) -> Secret:
    with permissions.open_file(path, "the token file") as file:
        flaw = permissions.find_file_flaw(
            path, os.fstat(file.fileno()), "the token file", os.environ, "600"
        )
        if flaw is None and permissions.is_readable_by_others(path, os.environ):
            flaw = (f"other users can read the token file {path}", f"chmod 600 {path}")
        if flaw is not None:
            raise SettingError(
                flaw[0], remedy=f"{flaw[1]}; or delete it, and sealpipe makes a new token"
            )
        text = file.read(_MAX_TOKEN_FILE).decode("ascii", "replace").removesuffix("\n")
    if not _TOKEN.fullmatch(text):
        raise SettingError(
            f"the token file {path} does not hold a token of `sealpipe mcp`",
            remedy="delete it, and sealpipe makes a new token",
        )
    return Secret(text)
