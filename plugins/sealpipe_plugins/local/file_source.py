"""`file:PATH`: a file, a FIFO or `/dev/fd/3`, relative to the working directory or absolute."""

from __future__ import annotations

from typing import BinaryIO

from sealpipe.plugin import (
    PLAINTEXT_LIMIT,
    AccessDeniedError,
    Document,
    Locator,
    PayloadTooLargeError,
    PluginError,
    ReferenceValueError,
    SecretNotFoundError,
    Source,
    open_file,
)


def read_whole(stream: BinaryIO, locator: Locator) -> bytes:
    """All that is there. PayloadTooLargeError where that is more than can be sealed: the rest is not read."""
    data = stream.read(PLAINTEXT_LIMIT + 1)
    if len(data) > PLAINTEXT_LIMIT:
        raise PayloadTooLargeError(f"{locator} has more than {PLAINTEXT_LIMIT // 1024 // 1024} MiB")
    return data


class FileSource(Source):
    """Files of this machine."""

    def fetch(self, locator: Locator) -> Document:
        """The file's bytes, exactly."""
        if not locator.body:
            raise ReferenceValueError(f"{locator.name}: needs a path", remedy=f"write {locator.name}:PATH")
        reason = ""
        try:
            with open_file(locator.body, locator) as stream:
                return Document(read_whole(stream, locator))
        except (FileNotFoundError, NotADirectoryError):
            missing = True
        except IsADirectoryError:
            raise PluginError(f"{locator} is a directory", remedy="name a file in it") from None
        except PermissionError:
            raise AccessDeniedError(
                f"{locator} may not be read by this user", remedy="give this user the right to read it"
            ) from None
        except OSError as error:
            missing, reason = False, error.strerror or type(error).__name__
        if missing:
            raise SecretNotFoundError(f"{locator} is not there", remedy=_where_to_look(locator.body))
        raise PluginError(f"{locator} cannot be read: {reason}", remedy="check the file and the disk that it is on")


def _where_to_look(path: str) -> str:
    if path.startswith("~"):
        return "~ is not expanded here: write file:$HOME/... in the shell"
    return "check the path" if path.startswith("/") else "check the path: it begins at the working directory"


class DotenvSource(FileSource):
    """A file whose format need not be said."""
