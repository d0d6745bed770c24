"""Session, client and outbox of a command that calls the service, from its options' values."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sealpipe import permissions
from sealpipe.api.operation import Credential
from sealpipe.cli import render
from sealpipe.cli.command import run_config
from sealpipe.cli.local import find_state_folder, make_registry
from sealpipe.session import Session, open_session
from sealpipe.state import files
from sealpipe.state.custody import CustodyLevels
from sealpipe.state.outbox import Outbox

if TYPE_CHECKING:
    from sealpipe.client import Client


def make_session(values: Mapping[str, Any], needs: Iterable[tuple[str, str]] = ()) -> Session:
    """Make a session from the global options and the environment.

    If a setting is missing, the error also says what the stores in `needs` lack.
    """
    file = values["api_key_file"]
    config = run_config()
    key = config.read_api_key(file)
    if file and permissions.is_readable_by_others(Path(file), config.environ):
        render.print_note(
            f"sealpipe: other users can read the credential file {file}: chmod 600 {file}"
        )
    session = open_session(
        config,
        make_registry,
        api_key=key,
        base_url=values["base_url"],
        link_base_url=values["link_base_url"],
        service_tag=values["service_tag"],
        deadline=values["deadline"],
        ca_file=values["ca_file"],
        api_key_previous=config.previous_api_key,
        needs=needs,
        custody_levels=CustodyLevels(partial(find_state_folder, values, "custody")),
    )
    click.get_current_context().find_root().ensure_object(dict)["base_url"] = session.base_url
    return session


def open_client(values: Mapping[str, Any], needs: Iterable[tuple[str, str]] = ()) -> Client:
    """Open a client on the session that `make_session` makes."""
    from sealpipe.client import Client  # `share` and `request` do without

    return Client.from_session(make_session(values, needs))


def open_outbox(values: Mapping[str, Any], credential: Credential | None) -> Outbox:
    """Open the outbox in the state directory, for this CI run."""
    return Outbox(find_state_folder(values, "outbox"), credential, files.identify_run(os.environ))
