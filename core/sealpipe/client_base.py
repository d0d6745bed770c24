"""What both clients and the command line open.

The registry of plugins, and a session with its connections.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from sealpipe.config import Config
from sealpipe.custody_gate import CustodyGate
from sealpipe.plugin.context import DEADLINE
from sealpipe.reference import parse_field
from sealpipe.registry import Registry
from sealpipe.session import Network, Session
from sealpipe.sources.resolve import resolve
from sealpipe.state import files

if TYPE_CHECKING:
    from sealpipe.network.plugin_network import PluginNetwork
    from sealpipe.wire.fields import Field

P = ParamSpec("P")
T = TypeVar("T")


def registry(
    ca_file: str | Path | None = None,
    gate: CustodyGate | None = None,
    deadline: float = DEADLINE,
    *,
    config: Callable[[], Mapping[str, Any]] | None = None,
) -> Registry:
    """Make a registry of plugins with the client's certificates.

    `gate` checks everything that plugins send.

    Reads and creates nothing before it is needed. `deadline` (seconds) is for each exchange of a
    plugin with its backend. `config` replaces the user's config file; the doctor passes the valid
    part of it.
    """

    @cache
    def network() -> PluginNetwork:
        from sealpipe.network.plugin_network import PluginNetwork  # most sources are local

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
    files.create_file(path, lambda: [content])


def replace_file(path: Path, content: bytes, was: bytes | None) -> bool:
    """Replace a file with a 0600 file; False if it does not hold `was` (None: anything).

    Raises OSError.
    """
    return files.replace_file(path, content, was)


def open_fields(references: Sequence[str], plugins: Registry) -> list[Field]:
    """Resolve references, as `resolve` and `aresolve` do."""
    return resolve([parse_field(reference) for reference in references], lambda: plugins)


def connect(session: Session) -> Session:
    """Let a session open connections when it sends. Returns the session."""
    session.transport.open_network = _open_network
    return session


def _open_network(session: Session) -> Network:
    # Commands without a service do not load the network.
    from sealpipe.network.exchange import (
        Service,
    )
    from sealpipe.network.service_network import ServiceNetwork

    return ServiceNetwork(
        Service(session.base_url, session.credential, session.gate, session.ca_file)
    )
