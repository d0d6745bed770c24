"""`file:PATH`: a file, a FIFO or `/dev/fd/3`, relative to the working directory or absolute."""

from __future__ import annotations

from sealpipe.plugin import (
    AccessDeniedError,
    Document,
    Locator,
    PluginError,
    ReferenceValueError,
    SecretNotFoundError,
    Source,
    open_file,
)
from sealpipe_plugins.local.reading import read_whole


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
