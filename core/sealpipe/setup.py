"""How a client comes to its session and its plugins; the same for both."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import cache, partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar

from sealpipe.config import Config
from sealpipe.flows.session import Session, open_session
from sealpipe.plugin.context import DEADLINE
from sealpipe.registry import Registry
from sealpipe.registry.stores import read_policy_hooks
from sealpipe.secret import Secret, strips_frames
from sealpipe.secret_scan import CustodyGate
from sealpipe.times import as_seconds

if TYPE_CHECKING:
    from sealpipe.flows import Flow
    from sealpipe.http.plugin_network import PluginNetwork
    from sealpipe.wire.fields import Field

P = ParamSpec("P")
T = TypeVar("T")


def checks_arguments(function: Callable[P, T]) -> Callable[P, T]:
    """A function that is called with arguments that it takes, or UsageError names what is wrong."""
    own = int(function.__code__.co_varnames[:1] == ("self",))

    @wraps(function)
    def wrapper(*args: P.args, **options: P.kwargs) -> T:
        from sealpipe.calls.arguments import check_arguments  # commands check theirs when they are read

        check_arguments(function, args[own:], options, skip=own)
        return function(*args, **options)

    return wrapper


def registry(
    ca_file: str | Path | None = None,
    gate: CustodyGate | None = None,
    deadline: float = DEADLINE,
    *,
    config: Callable[[], Mapping[str, Any]] | None = None,
) -> Registry:
    """A registry whose plugins trust what the client trusts, and send nothing that `gate` stops.

    Nothing is read or made before it is needed. `deadline` is in seconds, for each exchange of a plugin with whatever
    it talks to. `config` stands in for the user's config file: the doctor's is as far as that can be used.
    """

    @cache
    def network() -> PluginNetwork:
        from sealpipe.http.plugin_network import PluginNetwork  # most shares read from this machine alone

        return PluginNetwork(None if ca_file is None else Path(ca_file), gate, deadline)

    return Registry(
        config=config or (lambda: Config(os.environ).user),
        network=network,
        new_file=create_file,
        replace_file=replace_file,
        deadline=deadline,
    )


def create_file(path: Path, content: bytes) -> None:
    """A new 0600 file, whole and on disk, or none. Raises OSError."""
    from sealpipe.state import files

    files.create(path, lambda: [content])


def replace_file(path: Path, content: bytes, was: bytes | None) -> bool:
    """A 0600 file in the place of another that holds `was` (None: anything). Raises OSError."""
    from sealpipe.state import files

    return files.replace(path, content, was)


def open_fields(references: Sequence[str], plugins: Registry) -> Flow[list[Field]]:
    """The flow that resolves references: what `resolve` and `aresolve` drive."""
    from sealpipe.flows.resolve import resolve
    from sealpipe.reference import parse_field

    return resolve([parse_field(reference) for reference in references], lambda: plugins)


class ClientSetup:
    """Holds the session."""

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
        self.session: Session = _open_session(
            Config(os.environ),
            api_key=api_key,
            base_url=base_url,
            link_base_url=link_base_url,
            service_tag=service_tag,
            deadline=deadline,
            ca_file=ca_file,
            api_key_previous=api_key_previous,
        )

    @classmethod
    @strips_frames
    def from_settings(cls) -> Self:
        """A client from SEALPIPE_* of the environment and the user's config file. Raises SettingError."""
        from sealpipe.settings_model import load_arguments

        config = Config(os.environ)
        return cls.from_session(_open_session(config, **load_arguments(config)))

    @classmethod
    def from_session(cls, session: Session) -> Self:
        """A client for a session that was made elsewhere (the command line)."""
        client = cls.__new__(cls)
        client.session = session
        return client


def _open_session(
    config: Config,
    *,
    api_key: str | Secret | None,
    base_url: str | None,
    link_base_url: str | None,
    service_tag: str | None,
    deadline: float | timedelta | str,
    ca_file: str | Path | None,
    api_key_previous: str | Secret | None,
) -> Session:
    """A session from a client's arguments. SettingError names the setting that is missing."""
    return open_session(
        api_key=api_key,
        base_url=base_url,
        link_base_url=link_base_url,
        registry=partial(registry, config=lambda: config.user),
        service_tag=service_tag,
        deadline=as_seconds(deadline),
        ca_file=ca_file,
        policy_hooks=lambda machine: read_policy_hooks(config.user, machine),
        previous=api_key_previous,
        config=config,
    )
