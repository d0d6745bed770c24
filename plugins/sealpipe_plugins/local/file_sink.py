"""`file:PATH`: one value as a 0600 file, exactly, relative to the working directory or absolute."""

from __future__ import annotations

from collections.abc import Sequence

from sealpipe.plugin import Locator, Mode, Receipt, ReferenceValueError, Sink, Stored, WriteConflictError, missing
from sealpipe_plugins.local import files


class FileSink(Sink):
    """Files of this machine. They have no place for a marker: equal content does."""

    def describe(self, locator: Locator, mode: Mode) -> str:
        """What would be written."""
        path = files.path_of(locator)
        return f"write the new file {path}" if mode == "create" else f"write {path} in the place of what is there"

    def put(self, locator: Locator, fields: Sequence[Stored], *, mode: Mode, marker: str) -> Receipt:  # noqa: ARG002
        """Write it, and read it back."""
        path = files.path_of(locator)
        if len(fields) != 1:
            raise ReferenceValueError(f"{locator} holds one value", remedy="name one prompt, or use dir: or dotenv:")
        content = files.content_of(fields[0])
        already = files.settle(self.context, locator, path, mode, lambda there: wanted(there, content, mode))
        confirm(locator, files.look(locator, path), content)
        return Receipt(locator, already=already)


def wanted(there: bytes | None, content: bytes, mode: Mode) -> bytes | None:
    """What a file of one value has to hold; None where it holds it. Raises WriteConflictError."""
    after = missing(None if there is None else {"": there}, {"": content}, mode=mode, marked=False)
    return None if after is None else after[""]


def confirm(locator: Locator, found: files.Found | None, content: bytes) -> None:
    """WriteConflictError where what was written is not what is there now."""
    if found is None or found.content != content:
        raise WriteConflictError(
            f"{locator} was changed by another while it was written", remedy="see who writes there"
        )
