"""Sources that need no backend.

`env:NAME`, `file:PATH`, `dotenv:PATH#KEY`, `stdin:` and `text:VALUE`.

A path is relative to the working directory or absolute; a FIFO or `/dev/fd/3` also works.
"""

from __future__ import annotations

import io
import os
import re
from contextlib import suppress
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
    UnsupportedError,
    WriteConflictError,
    open_file,
    refuse_process_file,
)

_SET_IT = "set it for this step (a pipeline run from a fork gets no secrets)"
_VARIABLE_NAME = re.compile(r"[A-Z_][A-Z0-9_]*|[A-Za-z][A-Za-z0-9]*_[A-Za-z0-9_]*")
_STDIN_REMEDY = "pipe the value in: COMMAND | sealpipe share -f LABEL=stdin:"


class EnvSource(Source):
    """Environment variables of this process."""

    def fetch(self, locator: Locator) -> Document:
        """Return the variable's bytes. Raises SecretNotFoundError if it is unset or empty."""
        name = locator.body
        if not name or "=" in name:
            raise ReferenceValueError(
                "env: needs the name of a variable", locator="env:", remedy="write env:NAME"
            )
        if name.startswith("SEALPIPE_API_KEY"):
            raise ReferenceValueError(
                f"{locator} is sealpipe's own credential, and is never shared",
                remedy=(
                    "name another variable; to share an API key with someone, store it in a "
                    "separate variable"
                ),
            )
        value = self.context.environ.get(name)
        if value:
            return Document(os.fsencode(value))  # the original bytes
        if value is not None:
            raise SecretNotFoundError(
                f"the environment variable {name} is set but empty", remedy=_SET_IT
            )
        if not _VARIABLE_NAME.fullmatch(name):
            # Probably `env:$NAME`, expanded by the shell: then the name may itself be the secret.
            raise SecretNotFoundError(
                (
                    "the environment variable that env: names is not set; its name is not "
                    "shown because it may be a value"
                ),
                locator="env:",
                remedy="write env:NAME without $",
            )
        from difflib import get_close_matches  # for an error only

        near = get_close_matches(name, self.context.environ, 1)
        hint = f"did you mean {near[0]}? Else " if near else ""
        raise SecretNotFoundError(
            f"the environment variable {name} is not set",
            remedy=f"{hint}export {name}, or {_SET_IT}",
        )


class TextSource(Source):
    """Text in the reference itself."""

    def fetch(self, locator: Locator) -> Document:
        """Return the body, which is not secret."""
        return Document(locator.body, secret=False)


class FileSource(Source):
    """Files on this machine."""

    def fetch(self, locator: Locator) -> Document:
        """Return the file's bytes."""
        return Document(read_path(locator))


def read_path(locator: Locator, limit: int = PLAINTEXT_LIMIT) -> bytes:
    """Return the content of the file that a locator names, of at most `limit` bytes.

    Raises PluginError.
    """
    if not locator.body:
        raise ReferenceValueError(
            f"{locator.name}: needs a path", remedy=f"write {locator.name}:PATH"
        )
    reason = ""
    try:
        with open_file(locator.body, locator) as stream:
            return read_whole(stream, locator, limit)
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
        raise SecretNotFoundError(f"{locator} does not exist", remedy=path_remedy(locator))
    raise PluginError(f"{locator} cannot be read: {reason}", remedy="check the file and its disk")


def path_remedy(locator: Locator) -> str:
    """Return the remedy for a locator whose path does not exist."""
    if locator.body.startswith("~"):
        return f"~ is not expanded here: write {locator.name}:$HOME/... in the shell"
    return "check the path" + (
        "" if locator.body.startswith("/") else ": it is relative to the working directory"
    )


class DotenvSource(FileSource):
    """Dotenv files."""


class StdinSource(Source):
    """Standard input of this process."""

    is_consumed = False

    def fetch(self, locator: Locator) -> Document:
        """Return the bytes. A terminal is refused: it would block and echo the secret."""
        if locator.body:
            raise ReferenceValueError("stdin: takes nothing after its colon", remedy="write stdin:")
        stream = self.context.stdin
        if stream is None or stream.closed:
            raise SecretNotFoundError("standard input is closed", remedy=_STDIN_REMEDY)
        if stream.isatty():
            raise UnsupportedError(
                "standard input is a terminal, nothing is piped in", remedy=_STDIN_REMEDY
            )
        _refuse_process_file(stream, locator)
        if self.is_consumed:
            raise WriteConflictError("standard input was read already", remedy="use stdin: once")
        self.is_consumed = True
        return Document(read_whole(stream, locator))


def _refuse_process_file(stream: BinaryIO, locator: Locator) -> None:
    """Refuse `< /proc/self/environ`, like `file:/proc/self/environ`."""
    descriptor = -1
    # An in-memory stream has no descriptor.
    with suppress(io.UnsupportedOperation, OSError, AttributeError):
        descriptor = stream.fileno()
    if descriptor >= 0:
        refuse_process_file(descriptor, locator)


def read_whole(stream: BinaryIO, locator: Locator, limit: int = PLAINTEXT_LIMIT) -> bytes:
    """Read a stream to its end.

    Raises PayloadTooLargeError after `limit` bytes: by default, what can be sealed.
    """
    data = stream.read(limit + 1)
    if len(data) > limit:
        raise PayloadTooLargeError(f"{locator} has more than {limit // 1024 // 1024} MiB")
    return data
