"""What both clients begin with: checked arguments, the registry of plugins, and a session that may connect.

`sealpipe share` uses it without the table of calls.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import cache, partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar

from sealpipe.config import Config
from sealpipe.custody_gate import CustodyGate
from sealpipe.flows.session import Network, Session, open_session
from sealpipe.plugin.context import DEADLINE
from sealpipe.registry import Registry
from sealpipe.secret import Secret, strips_frames

if TYPE_CHECKING:
    from sealpipe.http.plugin_network import PluginNetwork
    from sealpipe.wire.fields import Field

P = ParamSpec("P")
T = TypeVar("T")


def checks_arguments(function: Callable[P, T]) -> Callable[P, T]:
    """Check a function's arguments before each call. UsageError names the wrong one."""
    skipped = int(function.__code__.co_varnames[:1] == ("self",))

    @wraps(function)
    def wrapper(*args: P.args, **options: P.kwargs) -> T:
        from sealpipe.calls.arguments import check_arguments  # the command line needs none of the calls

        check_arguments(function, args[skipped:], options, skip=skipped)
        return function(*args, **options)

    return wrapper


def registry(
    ca_file: str | Path | None = None,
    gate: CustodyGate | None = None,
    deadline: float = DEADLINE,
    *,
    config: Callable[[], Mapping[str, Any]] | None = None,
) -> Registry:
    """Make a registry of plugins with the client's certificates. `gate` checks everything that plugins send.

    Reads and creates nothing before it is needed. `deadline` (seconds) is for each exchange of a plugin with its
    backend. `config` replaces the user's config file; the doctor passes the valid part of it.
    """

    @cache
    def network() -> PluginNetwork:
        from sealpipe.http.plugin_network import PluginNetwork  # most shares only read local sources

        return PluginNetwork(None if ca_file is None else Path(ca_file), gate, deadline)

    return Registry(
        config=config or (lambda: Config(os.environ).user),
        network=network,
        new_file=create_file,
        replace_file=replace_file,
        deadline=deadline,
    )


def create_file(path: Path, content: bytes) -> None:
    """Create a 0600 file, complete and synced to disk, or none. Raises OSError."""
    from sealpipe.state import create_file

    create_file(path, lambda: [content])


def replace_file(path: Path, content: bytes, was: bytes | None) -> bool:
    """Replace a file with a 0600 file; False if it does not hold `was` (None: anything). Raises OSError."""
    from sealpipe.state import replace_file

    return replace_file(path, content, was)


def open_fields(references: Sequence[str], plugins: Registry) -> list[Field]:
    """Resolve references, as `resolve` and `aresolve` do."""
    from sealpipe.flows.resolve import resolve
    from sealpipe.reference import parse_field

    return resolve([parse_field(reference) for reference in references], lambda: plugins)


def connect(session: Session) -> Session:
    """Let a session open connections when it sends. Returns the session."""
    session.transport.open_network = _open_network
    return session


def _open_network(session: Session) -> Network:
    from sealpipe.http import ServiceNetwork
    from sealpipe.http.exchange import Service  # commands without a service do not load the network

    return ServiceNetwork(Service(session.base_url, session.credential, session.gate, session.ca_file))


class ClientSetup:
    """Base class of both clients: makes and holds the session."""

    @strips_frames
    @checks_arguments
    def __init__(
        self,
        *,
        api_key: str | Secret,
        base_url: str,
        link_base_url: str,
        service_tag: str | None = None,
        deadline: float | timedelta | str = 60.0,
        ca_file: str | Path | None = None,
        api_key_previous: str | Secret | None = None,
    ) -> None:
        config = Config(os.environ)
        self.session: Session = connect(
            open_session(
                config,
                partial(registry, config=lambda: config.user),
                api_key=api_key,
                base_url=base_url,
                link_base_url=link_base_url,
                service_tag=service_tag,
                deadline=deadline,
                ca_file=ca_file,
                api_key_previous=api_key_previous,
            )
        )

    @classmethod
    @strips_frames
    def from_settings(cls) -> Self:
        """Make a client from SEALPIPE_* variables and the user's config file. Raises SettingError."""
        from sealpipe.settings_model import load_arguments

        config = Config(os.environ)
        plugins = partial(registry, config=lambda: config.user)
        return cls.from_session(open_session(config, plugins, **load_arguments(config)))

    @classmethod
    def from_session(cls, session: Session) -> Self:
        """Make a client for an existing session, as the command line does."""
        client = cls.__new__(cls)
        client.session = connect(session)
        return client
