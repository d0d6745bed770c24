"""From options to a session and an outbox. What they need is imported when they are made: help needs none of it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sealpipe.credential import Credential
    from sealpipe.flows.session import Session
    from sealpipe.state.outbox import Outbox

COMMON = (
    "api_key_file",
    "base_url",
    "link_base_url",
    "service_tag",
    "state_dir",
    "ca_file",
    "deadline",
    "output",
)
"""The options of every command that calls the service."""


def session(values: dict[str, Any]) -> Session:
    """The session that the global options and the environment describe."""
    from pathlib import Path

    from sealpipe import permissions
    from sealpipe.cli import render
    from sealpipe.config import api_key, previous_api_key
    from sealpipe.flows.session import open_session
    from sealpipe.setup import overseeing, registry

    file = values["api_key_file"]
    key = api_key(os.environ, file)
    if file and permissions.readable_by_others(Path(file), os.environ):
        render.note(f"sealpipe: others may read the credential file {file}: chmod 600 {file}")
    return open_session(
        api_key=key,
        base_url=values["base_url"],
        link_base_url=values["link_base_url"],
        registry=registry,
        service_tag=values["service_tag"],
        deadline=values["deadline"],
        ca_file=values["ca_file"],
        overseers=overseeing,
        previous=previous_api_key(os.environ),
    )


def outbox(values: dict[str, Any], credential: Credential | None) -> Outbox:
    """The outbox in the state folder, for this CI run."""
    from sealpipe.state.directory import current_run, state_folder
    from sealpipe.state.outbox import Outbox

    folder = state_folder(os.environ, values["state_dir"]) / "outbox"
    return Outbox(folder, credential, current_run(os.environ))
