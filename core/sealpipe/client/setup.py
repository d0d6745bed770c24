"""How a client comes to its session; the same for both."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Self

from sealpipe.client.plugins import overseeing, registry
from sealpipe.flows.session import Session, open_session
from sealpipe.secret import Secret
from sealpipe.sheltered import sheltered


class ClientSetup:
    """Holds the session."""

    @sheltered
    def __init__(
        self,
        *,
        api_key: str | Secret,
        base_url: str,
        link_base_url: str,
        service_tag: str | None = None,
        deadline: float = 60.0,
        ca_file: str | Path | None = None,
        api_key_previous: str | Secret | None = None,
    ) -> None:
        self.session: Session = open_session(
            api_key=api_key,
            base_url=base_url,
            link_base_url=link_base_url,
            registry=partial(registry, ca_file),
            service_tag=service_tag,
            deadline=deadline,
            ca_file=ca_file,
            overseers=overseeing(),
            previous=api_key_previous,
        )

    @classmethod
    @sheltered
    def from_settings(cls) -> Self:
        """A client from SEALPIPE_* of the environment and the user's config file. Raises SettingError."""
        from sealpipe.client.from_settings import load

        return cls(**load())

    @classmethod
    def of_session(cls, session: Session) -> Self:
        """A client for a session that was made elsewhere (the command line)."""
        client = cls.__new__(cls)
        client.session = session
        return client
