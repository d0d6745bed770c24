"""What the core hands to a plugin (what is not here, a plugin does without), and what the CI job around it offers."""

from __future__ import annotations

import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, NamedTuple, Protocol

from sealpipe.secret import Secret

if TYPE_CHECKING:
    import logging
    import socket
    import ssl
    from contextlib import AbstractContextManager
    from pathlib import Path

    import httpx

DEADLINE = 60.0
"""Seconds that an exchange may take where nobody says otherwise."""


class Network(Protocol):
    """The way out that all plugins share: one CA, one proxy, one set of limits."""

    def http(self, *, authorities: str | None = None, certificate: tuple[Path, Path] | None = None) -> httpx.Client:
        """A client that trusts what sealpipe trusts; redirects are not followed. The same for every plugin.

        With `authorities` (PEM text, trusted in place of the system's, beside `ca_file`) or `certificate` (files of
        the client's own certificate and its key, read at once) it is one of the plugin's own.
        """
        ...

    def connect(self, url: str, *, ca_file: Path | None = None, timeout: float | None = None) -> socket.socket:
        """A socket to an address's host, with TLS for https: for a backend that speaks a protocol itself.

        `ca_file` is trusted beside all else; `timeout` is in seconds, for each step. The plugin closes it. Raises
        OSError; one named ProxyError has the proxy's status as its text. It keeps the deadline: what is read and
        written until the next request is one exchange. `tcp://HOST:PORT` is for a protocol that turns TLS on itself,
        `tls://HOST:PORT` for one that speaks it from the first byte. Writing what holds the credential raises
        AccessDeniedError.
        """
        ...

    def exchange(self) -> AbstractContextManager[None]:
        """What this thread does on the network meanwhile is one exchange: all of it has the deadline together."""
        ...

    def ca_bundle(self) -> Path | None:
        """A PEM file for SDKs that want one: the system's certificates and `ca_file`. None: their own will do."""
        ...

    def tls_context(self) -> ssl.SSLContext:
        """The same trust for protocols other than HTTP: it checks certificates and names."""
        ...

    def proxy(self, url: str) -> str | None:
        """The proxy for an address; None for none."""
        ...

    def close(self) -> None:
        """The core's to call, when all plugins are done."""
        ...


class Context:
    """Environment, standard input, network, OIDC token and logger, for one plugin.

    `store` is the name that the user gave this store; the plugin's own where they gave none. `named` says which: an
    SDK that finds credentials by itself must not do so for a named store. `deadline` is in seconds: no exchange with
    whatever the plugin talks to takes longer. `network` sees to it; a plugin with a way of its own does it itself.
    """

    __slots__ = ("_network", "_new_file", "_oidc", "_replace_file", "_stdin", "deadline", "environ", "named", "store")

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

    @property
    def stdin(self) -> BinaryIO | None:
        """Standard input, binary. None where the process was started without one."""
        if self._stdin is not None:
            return self._stdin
        return None if sys.stdin is None else sys.stdin.buffer

    @property
    def network(self) -> Network:
        """The way out. One for all plugins of a run."""
        if self._network is None:
            raise RuntimeError("this context was made without a network")
        return self._network()

    def oidc_token(self, audience: str | None = None) -> Secret:
        """A token by which the CI run proves who it is. Raises NotConfiguredError where there is no CI that gives
        one."""
        from sealpipe.errors import NotConfiguredError

        if self._oidc is None:
            raise NotConfiguredError("no CI system here issues tokens", remedy="authenticate another way")
        return self._oidc(audience)

    def new_file(self, path: Path, content: bytes) -> None:
        """Write a new 0600 file that is whole and on disk when this returns, or not there at all.

        Raises FileExistsError where something has that name already, OSError where it cannot be written.
        """
        if self._new_file is None:
            raise RuntimeError("this context cannot write files")
        self._new_file(path, content)

    def replace_file(self, path: Path, content: bytes, was: bytes | None = None) -> bool:
        """Put a new 0600 file in the place of another, at once: a reader sees the one or the other, whole.

        False, and nothing is written, where it does not hold `was` (None: whatever it holds), so that of several
        that change a file none undoes what another did; and where it is a link, or no plain file: no link is
        followed. Raises OSError where it cannot be written, TimeoutError where others keep the folder locked.
        """
        if self._replace_file is None:
            raise RuntimeError("this context cannot write files")
        return self._replace_file(path, content, was)

    def child_environ(self) -> dict[str, str]:
        """The environment for a program that the plugin starts: without anything of sealpipe's own."""
        return {name: value for name, value in self.environ.items() if not name.startswith("SEALPIPE_")}

    @property
    def logger(self) -> logging.Logger:
        """For what helps to find a fault. Never a value."""
        import logging  # most plugins of a run log nothing

        return logging.getLogger(f"sealpipe.plugin.{self.store}")


Level = Literal["error", "warning", "notice"]
"""How much a line for people matters."""


class Run(NamedTuple):
    """Which run this is, and who started it."""

    ci: str
    id: str
    actor: str = ""
    url: str = ""


class CI(ABC):
    """A CI system, found by its descriptor's `sign`. Nothing of this ever prints a value to stdout."""

    def __init__(self, settings: Any, context: Context) -> None:
        self.settings = settings
        self.context = context

    @abstractmethod
    def run(self) -> Run:
        """Which run this is."""

    @abstractmethod
    def mask(self, values: Iterable[Secret]) -> None:
        """Have the system hide these values in its log from now on, where it can."""

    @abstractmethod
    def set_output(self, name: str, value: str) -> None:
        """Hand a value to later steps. UnsupportedError where there is no way."""

    @abstractmethod
    def summary(self, markdown: str) -> None:
        """Add to the run's summary, where there is one."""

    def annotate(self, level: Level, message: str) -> None:  # noqa: B027 - most have no such place
        """Show a line where people look first, beside the log. It may hold anybody's text: write it harmlessly."""

    @abstractmethod
    def oidc_token(self, audience: str | None = None) -> Secret:
        """A token that proves which run this is. NotConfiguredError says what the job lacks for it."""
