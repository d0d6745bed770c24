"""What the core passes to plugins.

The context of every plugin, the CI run, and the action that a policy may veto.
"""

from __future__ import annotations

import os
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Literal, NamedTuple, Protocol

from sealpipe.errors import NotConfiguredError
from sealpipe.secret import Secret

if TYPE_CHECKING:
    import logging
    import socket
    import ssl
    from contextlib import AbstractContextManager
    from pathlib import Path

    import httpx

DEADLINE = 60.0
"""Seconds that an exchange may take by default."""

STORE_PREFIX: Final = "SEALPIPE_STORE__"
PLUGIN_PREFIX: Final = "SEALPIPE_PLUGIN_"
"""What the variables of a named store begin with, and those of a backend's default one."""


class Network(Protocol):
    """The network access that all plugins share: one set of CAs, proxies and limits."""

    def http(
        self,
        *,
        authorities: str | None = None,
        certificate: tuple[Path, Path] | None = None,
        ca_file: Path | None = None,
    ) -> httpx.Client:
        """Return a client that trusts sealpipe's certificates and follows no redirects.

        All plugins get the same one.

        The plugin gets a separate client with `authorities` (PEM text, trusted instead of the
        system's CAs), with `certificate` (files of the client certificate and its key) or with
        `ca_file` (trusted in addition). All are read at once.
        """
        ...

    def connect(
        self, url: str, *, ca_file: Path | None = None, timeout: float | None = None
    ) -> socket.socket:
        """Return a socket to a URL's host (TLS for https://), for protocols other than HTTP.

        `ca_file` is trusted in addition; `timeout` is in seconds for each step. `tcp://HOST:PORT`
        is for a protocol that starts TLS itself, `tls://HOST:PORT` for one with TLS from the first
        byte. The plugin closes the socket. It keeps the deadline: what is written and read until
        the next request is one exchange. Raises OSError; the one named ProxyError has the proxy's
        status as its text. Writing the credential raises AccessDeniedError.
        """
        ...

    def exchange(self, seconds: float | None = None) -> AbstractContextManager[None]:
        """Give all network use of the thread in the block one deadline.

        It is at most `seconds` away, if given, and never later than an exchange's own deadline.
        """
        ...

    def ca_bundle(self) -> Path | None:
        """Return a PEM file of all CAs for SDKs, or None if the SDK's own are enough."""
        ...

    def tls_context(self) -> ssl.SSLContext:
        """Return a TLS context that checks certificates and names, for protocols besides HTTP."""
        ...

    def proxy(self, url: str) -> str | None:
        """Return the proxy for a URL; None without one."""
        ...

    def close(self) -> None:
        """Close all connections. Only the core calls it, when all plugins are finished."""
        ...


def name_variable(store: str, setting: str, *, named: bool) -> str:
    """Return the environment variable of a setting, for a named or the default store."""
    return f"{STORE_PREFIX if named else PLUGIN_PREFIX}{to_variable(store)}__{setting.upper()}"


def to_variable(store: str) -> str:
    """Return a store's name as its variables have it."""
    return re.sub(r"[^A-Z0-9]", "_", store.upper())


class Context:
    """Environment, standard input, network, OIDC token and logger for one plugin.

    `store` is the name that the user gave this store, or the plugin's own name. `named` says which:
    an SDK that finds credentials by itself must not do so for a named store. `deadline` is in
    seconds: no exchange with the backend may take longer. `network` enforces it; a plugin that
    connects by other means must enforce it itself.
    """

    __slots__ = (
        "_network",
        "_new_file",
        "_oidc",
        "_replace_file",
        "_stdin",
        "deadline",
        "environ",
        "named",
        "store",
    )

    def __init__(
        self,
        store: str,
        *,
        named: bool = False,
        environ: Mapping[str, str] | None = None,
        stdin: BinaryIO | None = None,
        network: Callable[[], Network] | None = None,
        oidc_token: Callable[[str | None], Secret] | None = None,
        new_file: Callable[[Path, bytes], None] | None = None,
        replace_file: Callable[[Path, bytes, bytes | None], bool] | None = None,
        deadline: float = DEADLINE,
    ) -> None:
        self.store = store
        self.deadline = deadline
        self.named = named
        self._stdin = stdin
        self._network = network
        self._oidc = oidc_token
        self._new_file = new_file
        self._replace_file = replace_file
        self.environ: Mapping[str, str] = os.environ if environ is None else environ

    def get_variable(self, setting: str) -> str:
        """Return the environment variable of one of this store's settings."""
        return name_variable(self.store, setting, named=self.named)

    @property
    def stdin(self) -> BinaryIO | None:
        """Standard input, binary; None if the process was started without one."""
        if self._stdin is not None:
            return self._stdin
        return None if sys.stdin is None else sys.stdin.buffer

    @property
    def network(self) -> Network:
        """The network access, one for all plugins of a run."""
        if self._network is None:
            raise RuntimeError("this context was made without a network")
        return self._network()

    def oidc_token(self, audience: str | None = None) -> Secret:
        """Return a token that proves the identity of the CI run.

        NotConfiguredError if there is none.
        """
        if self._oidc is None:
            raise NotConfiguredError(
                "no CI system issues tokens here", remedy="authenticate another way"
            )
        return self._oidc(audience)

    def new_file(self, path: Path, content: bytes) -> None:
        """Write a new file with mode 0600.

        On return it is complete and on disk; on failure there is no file.

        Raises FileExistsError if the name is taken, OSError if the file cannot be written.
        """
        if self._new_file is None:
            raise RuntimeError("this context cannot write files")
        self._new_file(path, content)

    def replace_file(self, path: Path, content: bytes, was: bytes | None = None) -> bool:
        """Replace a file atomically by one with mode 0600: readers see old or new content.

        Returns False, and writes nothing, if the file's content is not `was` (None for any
        content): so concurrent writers do not undo each other's changes. The same applies to
        symbolic links (which are never followed) and anything else that is not a regular file.
        Raises OSError if the file cannot be written, TimeoutError if others keep the directory
        locked.
        """
        if self._replace_file is None:
            raise RuntimeError("this context cannot write files")
        return self._replace_file(path, content, was)

    def child_environ(self) -> dict[str, str]:
        """Return the environment for a plugin's program: without SEALPIPE_* variables."""
        return drop_own_variables(self.environ)

    @property
    def logger(self) -> logging.Logger:
        """A logger for diagnostics. Never log a value."""
        import logging  # most plugins log nothing

        return logging.getLogger(f"sealpipe.plugin.{self.store}")


def drop_own_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return an environment for another program: without SEALPIPE_* variables."""
    return {name: value for name, value in environ.items() if not name.startswith("SEALPIPE_")}


Level = Literal["error", "warning", "notice"]
"""The severity of an annotation."""


class Run(NamedTuple):
    """A run of a CI system, and who started it."""

    ci: str
    id: str
    actor: str = ""
    url: str = ""


class CI(ABC):
    """A CI system, detected by its descriptor's `sign`. No method prints a value to stdout."""

    def __init__(self, settings: Any, context: Context) -> None:
        self.settings = settings
        self.context = context

    @abstractmethod
    def run(self) -> Run:
        """Return the current run."""

    @abstractmethod
    def mask(self, values: Iterable[Secret]) -> None:
        """Mask these values in the system's log from now on, if possible."""

    @abstractmethod
    def set_output(self, name: str, value: str) -> None:
        """Pass a value to later steps. Raises UnsupportedError if the system cannot."""

    @abstractmethod
    def summary(self, markdown: str) -> None:
        """Append to the run's summary, if there is one."""

    # Most systems have no annotations.
    def annotate(self, level: Level, message: str) -> None:  # noqa: B027
        """Show a line next to the log. The message may contain untrusted text: escape it."""

    @abstractmethod
    def oidc_token(self, audience: str | None = None) -> Secret:
        """Return a token that identifies this run.

        Raises NotConfiguredError, which says what the job needs.
        """


ACTIONS: Final = (
    "share",
    "request",
    "collect",
    "tool",
    "expire",
    "purge",
    "unseal",
    "batch",
    "run",
    "read",
    "copy",
)
"""The kinds of action that policies may veto."""

LITERAL: Final = "literal/literal"
"""The source of a value that a program passed directly, such as a `Field` in Python."""

CALLER: Final = "stdout/stdout"
"""The sink of values that are returned to the caller."""

COMMAND: Final = "command/command"
"""The sink of values that become the environment of a command."""

UNKNOWN: Final = "unknown/unknown"
"""The source or sink of an outbox entry that does not name it."""


class OutgoingAction(NamedTuple):
    """An action about to be performed, without any value.

    `views` and `expires_at` are None for no limit.

    Sources, sinks and channels are `plugin/store`, such as `vault/prod`; a plugin's default store
    has the plugin's name, as in `env/env`. If a third party's plugin replaces a built-in one, both
    parts say so: `vault@entry-point/vault@entry-point`.
    """

    kind: str
    """One of `ACTIONS`."""
    labels: tuple[tuple[str, str], ...] = ()
    """Label and type of each field of a share, prompt of a request, or variable of a command."""
    sources: tuple[str, ...] = ()
    """The origin of values: a share's fields, passcodes, parameters, a tool's arguments, a key to
    collect with, the variables of a command."""
    recipients: tuple[str, ...] = ()
    """Every target of a channel, as `channel:to`."""
    expires_at: datetime | None = None
    views: int | None = None
    """How often a share may be opened, or a request filled in."""
    title: str | None = None
    sinks: tuple[str, ...] = ()
    """Where values are stored."""
    channels: tuple[str, ...] = ()
    """Each recipient's channel, in the recipients' order."""
    tools: tuple[str, ...] = ()
    """The tools of the hosted MCP endpoint that are called."""
    short_codes: tuple[str, ...] = ()
    """The shares or requests that are collected, expired, purged or unsealed."""
    subject: str = ""
    """`share` or `request`, if one is expired or purged."""
    service: str | None = None
    """The service's base address."""
    link_address: str | None = None
    """The base address of links."""
    resumed: bool = False
    """Whether an earlier process began the action."""
    complete: bool = True
    """False before the sources are read: then labels, recipients and the expiry are unknown."""
    check: str = ""
    """The check of the user's config file that submissions must pass before they are stored."""


class VetoError(Exception):
    """Raised by a policy to refuse an action.

    Its text is the reason, for people, without anything secret.
    """
