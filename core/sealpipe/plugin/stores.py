"""Sources and sinks: where secrets are read and where results are written; and the gate of every file that is read.

What the kernel shows of processes (`/proc/PID/environ`, `mem`, `cmdline` ...) never holds a secret to read, and holds
this process's own: the credential among them. It is refused by the opened descriptor, so that a link, `/dev/fd/3` and
another mount of it are the same.
"""

from __future__ import annotations

import os
import stat
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Final, Literal, NamedTuple

from sealpipe.errors import PluginError, ReferenceValueError, WriteConflictError
from sealpipe.plugin.context import Context
from sealpipe.secret import Secret

# Named tuples where values are compared: a frozen dataclass costs four million instructions at every start.


class Locator(NamedTuple):
    """Which document is meant: a reference without its selector and the core's own parameters.

    `text` is the canonical reference, to be named in errors: safe to print. `params` are the parameters that
    the source has declared, sorted by name. Two equal locators are fetched once. `mention` tells the documents of
    a FRESH source apart, from 0.
    """

    name: str
    body: str
    params: tuple[tuple[str, str], ...] = ()
    text: str = ""
    mention: int = 0

    def __str__(self) -> str:
        return self.text

    def param(self, name: str, default: str | None = None) -> str | None:
        """The value of a parameter, decoded."""
        return dict(self.params).get(name, default)


class Document:
    """What lives under a locator, whole; the core selects and decodes.

    `content` is one value, exact to the byte, or a mapping from key to value (values may be nested, as JSON
    is; a value that was read as bytes stays bytes). `secret=False` is for what is no secret at all, `public` names
    the mapping's keys that are none. `remark` is a line for people about it, without a value. `format` (json, yaml,
    dotenv) is for text that the source has seen to be a map: it is read so unless the reference says otherwise.
    `expires_at` (with a time zone) is the moment after which the content is worth nothing, as a lease's end is: no
    share of it lives longer.
    """

    __slots__ = ("content", "expires_at", "format", "public", "remark", "secret")

    def __init__(
        self,
        content: bytes | str | Mapping[str, Any],
        *,
        secret: bool = True,
        public: Collection[str] = (),
        remark: str = "",
        format: str = "",  # noqa: A002 - the word of the reference
        expires_at: datetime | None = None,
    ) -> None:
        self.content = content
        self.secret = secret
        self.public = public
        self.remark = remark
        self.format = format
        self.expires_at = expires_at

    def __repr__(self) -> str:
        return f"Document(..., secret={self.secret})"


class Health(NamedTuple):
    """What `check()` found: whether it can be used now, and a line for people."""

    ok: bool
    detail: str = ""


class Source(ABC):
    """Something that secrets are read from.

    Its methods may block; they are called in threads. They raise the errors of this module, which carry a
    locator and never data: anything else that leaves them is told to the user by its type's name only.
    """

    concurrency: ClassVar[int] = 1
    """How many calls of `fetch` may run at once, each in its own thread; ignored where `fetch_many` is a batch."""

    def __init__(self, settings: Any, context: Context) -> None:
        self.settings = settings
        self.context = context

    @abstractmethod
    def fetch(self, locator: Locator) -> Document:
        """The whole document. SecretNotFoundError where there is none, AccessDeniedError where we may not know."""

    def fetch_many(self, locators: Sequence[Locator]) -> dict[Locator, Document | PluginError]:
        """The same for several, where the backend has a batch. What fails is answered with its error."""
        answers: dict[Locator, Document | PluginError] = {}
        for locator in locators:
            try:
                answers[locator] = self.fetch(locator)
            except PluginError as error:
                answers[locator] = error
        return answers

    def check(self) -> Health:
        """Whether it can be used now, found out without reading a secret."""
        return Health(ok=True)

    def close(self) -> None:  # noqa: B027 - most have nothing to let go
        """Called once at the end of a run: let connections and logins go. What fails here is told to nobody."""


Mode = Literal["create", "replace", "merge"]
"""create: nothing may be there yet; replace: whatever is there goes; merge: other keys stay."""


class SinkField(NamedTuple):
    """One value to store, under a key of our own choosing (never of a submitter's).

    The key is empty where the target names none: then the value is the whole document, and the only one. A sink
    whose targets hold one value each takes one value with any key.
    """

    key: str
    value: Secret


class WriteResult(NamedTuple):
    """What a sink confirms once it has read back what it wrote. `known` is False where it could not.

    `already` tells that all of it was there before, and nothing was written.
    """

    locator: Locator
    version: str = ""
    known: bool = True
    already: bool = False


class Sink(ABC):
    """Something that values are stored in. Called in threads; errors as a source's.

    A sink that is killed at any moment, and called again with the same arguments, ends in the same state as one
    that was not.
    """

    def __init__(self, settings: Any, context: Context) -> None:
        self.settings = settings
        self.context = context

    @abstractmethod
    def describe(self, locator: Locator, mode: Mode) -> str:
        """What `put` would do, in words, without asking anybody. ReferenceValueError for a target that cannot be."""

    @abstractmethod
    def put(self, locator: Locator, fields: Sequence[SinkField], *, mode: Mode, marker: str) -> WriteResult:
        """Store, read back, and keep `marker` beside it where the backend can.

        The marker stands for one submission: up to 80 of A-Z a-z 0-9 . _ -, the same on every machine. With it, the
        same submission again stores nothing twice, and what was changed since stays (`merge_fields` decides).
        Where the backend has no place for it, equal content does. WriteConflictError where `mode` does not allow what
        is there; UnknownOutcomeError where it cannot be told whether it was stored. ReferenceValueError for a key that
        cannot be one.
        """

    def check(self) -> Health:
        """Whether it can be used now, found out without changing anything."""
        return Health(ok=True)

    def close(self) -> None:  # noqa: B027 - most have nothing to let go
        """As a source's."""


def merge_fields(
    there: Mapping[str, bytes] | None, wanted: Mapping[str, bytes], *, mode: Mode, marked: bool
) -> dict[str, bytes] | None:
    """What a place must hold from now on; None where nothing has to be written. Raises WriteConflictError.

    `there` is what it holds (None: it does not exist), `marked` whether it carries this submission's marker: then
    its keys are ours, and their values may have been rotated since.
    """
    if there is None:
        return dict(wanted)
    if marked and wanted.keys() <= there.keys():
        return None
    after = {**there, **wanted} if mode == "merge" else dict(wanted)
    if after == there:
        return None
    if mode == "create":
        raise WriteConflictError(
            "other content is stored there already",
            remedy="use another target, or allow a change: ?mode=merge or ?mode=replace in the target",
        )
    return after


_PROC: Final = 0x9FA0
"""The file system's number (Linux: `PROC_SUPER_MAGIC`)."""


def open_file(path: str | Path, what: object) -> BinaryIO:
    """The file, to be read. Raises OSError, and ReferenceValueError, naming `what`, where it tells of processes."""
    stream: BinaryIO = open(path, "rb")  # noqa: PTH123, SIM115 - a path as it was given: Path would drop a leading ./
    try:
        refuse_process_file(stream.fileno(), what)
    except BaseException:
        stream.close()
        raise
    return stream


def refuse_process_file(descriptor: int, what: object) -> None:
    """ReferenceValueError where an open file is one by which the kernel tells of processes."""
    if _tells_of_processes(descriptor):
        raise ReferenceValueError(
            f"{what} is in /proc, which exposes processes (this one's credential, too) and is never shared",
            remedy="name the file or the variable that the secret comes from",
        )


def _tells_of_processes(descriptor: int) -> bool:
    found = os.fstat(descriptor)
    if os.major(found.st_dev) or not stat.S_ISREG(found.st_mode):
        return False  # a disk's; a pipe's; a device
    try:
        if found.st_dev == os.stat("/proc").st_dev:  # noqa: PTH116 - the same call as for the descriptor
            return True
    except OSError:
        return False  # a system without one
    return _file_system(descriptor) == _PROC


def _file_system(descriptor: int) -> int | None:
    """The number of the file system that an open file is on; None where nobody tells."""
    import ctypes  # for files that are on no disk only

    answer = ctypes.create_string_buffer(512)
    try:
        if ctypes.CDLL(None).fstatfs(descriptor, answer) != 0:
            return None
    except (OSError, AttributeError):
        return None
    return int(ctypes.c_long.from_buffer(answer).value)
