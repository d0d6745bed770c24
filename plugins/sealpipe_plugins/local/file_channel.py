"""`file:PATH`: a new 0600 file with the link or the passcode, and a newline."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from sealpipe.plugin import (
    AccessDeniedError,
    Channel,
    Delivery,
    Message,
    PluginError,
    ReferenceValueError,
    WriteConflictError,
    has_content,
)


class FileChannel(Channel):
    """New files on this machine, read back so that nothing is written twice."""

    def validate(self, to: str) -> None:
        """Raise ReferenceValueError if no new file can be created at this path."""
        if (
            not to.strip()
            or not to.isprintable()
            or to.endswith(("/", "/.", "/.."))
            or to in (".", "..")
        ):
            raise ReferenceValueError("the path names no file", remedy="write file:PATH")
        path = Path(self.canonical(to))
        if os.path.lexists(path):
            raise ReferenceValueError(
                "the path exists already", remedy="remove it, or name another file"
            )
        if not path.parent.is_dir():
            raise ReferenceValueError(
                "its folder does not exist", remedy="create the folder or name another"
            )
        if not os.access(path.parent, os.W_OK | os.X_OK):
            raise ReferenceValueError(
                "its folder cannot be written",
                remedy="name a file in a folder that this user can write",
            )

    def canonical(self, to: str) -> str:
        """Return the absolute path."""
        # Path.resolve() would follow a link at the path's end.
        return os.path.abspath(to)  # noqa: PTH100

    def send(self, message: Message, to: str) -> Delivery:
        """Write the file, unless an interrupted attempt has written it."""
        path, content = Path(to), message.secret.reveal_bytes() + b"\n"
        reason = ""
        try:
            self.context.new_file(path, content)
        except FileExistsError:
            pass  # possibly by our own interrupted attempt
        except PermissionError:
            raise AccessDeniedError(
                "this user has no permission to write there",
                remedy="give this user the right to write there",
            ) from None
        except OSError as error:
            reason = error.strerror or type(error).__name__
        if reason:
            raise PluginError(f"it cannot be written: {reason}", remedy="check its disk")
        with suppress(OSError):
            if has_content(path, content):
                return Delivery(str(path), confirmed=True)
        raise WriteConflictError(
            "the path exists with other content",
            remedy="remove it: existing files are never overwritten",
        )
