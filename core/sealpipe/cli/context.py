"""What commands share: from option values to a session, a client, an outbox, a folder, and from a word to a short code.

Everything is imported where it is used: `--help` needs none of it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from sealpipe.api.models import Page
    from sealpipe.client import Client
    from sealpipe.config import Config
    from sealpipe.credential import Credential
    from sealpipe.flows.session import Session
    from sealpipe.registry import Registry
    from sealpipe.state.outbox import Outbox

T = TypeVar("T")

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


def run_config() -> Config:
    """Return the configuration of this run, which the first command or check that needs it makes."""
    import click

    run = click.get_current_context().find_root().ensure_object(dict)
    if "config" not in run:
        from sealpipe.config import Config

        run["config"] = Config(os.environ)
    config: Config = run["config"]
    return config


def make_session(values: Mapping[str, Any]) -> Session:
    """Make the session that the global options and the environment describe."""
    from pathlib import Path

    from sealpipe import permissions
    from sealpipe.cli import render
    from sealpipe.flows.session import open_session
    from sealpipe.registry.stores import read_policy_hooks

    file = values["api_key_file"]
    config = run_config()
    key = config.read_api_key(file)
    if file and permissions.is_readable_by_others(Path(file), config.environ):
        render.print_note(f"sealpipe: other users can read the credential file {file}: chmod 600 {file}")
    return open_session(
        api_key=key,
        base_url=values["base_url"],
        link_base_url=values["link_base_url"],
        registry=make_registry,
        service_tag=values["service_tag"],
        deadline=values["deadline"],
        ca_file=values["ca_file"],
        policy_hooks=lambda machine: read_policy_hooks(config.user, machine),
        previous=config.previous_api_key,
        config=config,
    )


def make_registry(*arguments: Any) -> Registry:
    """Make a registry of plugins on this run's config file; the arguments are those of `client_base.registry`."""
    from sealpipe.client_base import registry

    config = run_config()
    return registry(*arguments, config=lambda: config.user)


def open_client(values: Mapping[str, Any]) -> Client:
    """Open a client on that session."""
    from sealpipe.client import Client

    return Client.from_session(make_session(values))


def open_outbox(values: Mapping[str, Any], credential: Credential | None) -> Outbox:
    """Open the outbox in the state directory, for this CI run."""
    from sealpipe.state import identify_run
    from sealpipe.state.outbox import Outbox

    return Outbox(find_state_folder(values, "outbox"), credential, identify_run(os.environ))


def find_state_folder(values: Mapping[str, Any], name: str) -> Path:
    """Return a folder of the state directory. StateError where there is none."""
    from sealpipe import state

    return state.find_state_directory(os.environ, values["state_dir"]) / name


def resolve_share_code(client: Client, word: str, keep: Path | None = None) -> str:
    """Return a share's code from a code as it is, or percent-encoded as CI steps pass it. UsageError if ambiguous."""
    if "%" not in word:
        return word
    from sealpipe.flows.short_codes import find_share_code

    return client.run(find_share_code(client.session, word, keep))


def resolve_request_code(client: Client, word: str, keep: Path | None = None) -> str:
    """Return a request's code, likewise."""
    if "%" not in word:
        return word
    from sealpipe.flows.short_codes import find_request_code

    return client.run(find_request_code(client.session, word, keep))


def fetch_page(
    values: Mapping[str, Any], fetch: Callable[[int, int], Page[T]], iterate: Callable[[int], Iterable[T]]
) -> Page[T]:
    """Fetch the page with the wanted number and limit; with `--all` every row, as one page."""
    from sealpipe.api.models import Page, Pagination

    if values["all"]:
        rows = tuple(iterate(values["limit"] or 100))
        return Page(rows, Pagination(total=len(rows)))
    return fetch(values["page"] or 1, values["limit"] or 25)
