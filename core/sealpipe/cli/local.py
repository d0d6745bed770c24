"""What a command works with on this machine alone.

Folders of the state directory, the registry of plugins, and what resolves references.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

from sealpipe.api.operation import Credential
from sealpipe.cli import disclosure
from sealpipe.cli.command import run_config
from sealpipe.client_base import registry
from sealpipe.config import Config
from sealpipe.custody_gate import CustodyGate
from sealpipe.errors import SettingError
from sealpipe.parsing import as_seconds
from sealpipe.policy import LocalContext
from sealpipe.registry import Registry
from sealpipe.registry.stores import read_policy_hooks
from sealpipe.state import files

T = TypeVar("T")


def make_registry(*arguments: Any) -> Registry:
    """Make a registry of plugins with this run's config file.

    Arguments as for `client_base.registry`.
    """
    config = run_config()
    return registry(*arguments, config=lambda: config.user)


def find_state_folder(values: Mapping[str, Any], name: str) -> Path:
    """Return a folder of the state directory. StateError if there is no state directory."""
    return files.find_state_directory(os.environ, values["state_dir"]) / name


def open_context(values: Mapping[str, Any]) -> LocalContext:
    """Open what the references are resolved with.

    The credential, if one is set, is only kept out of everything.
    """

    config = run_config()
    gate = CustodyGate(*_list_credentials(config))
    registry = cache(
        partial(make_registry, values["ca_file"], gate, as_seconds(values["deadline"]))
    )
    disclosure.get_ci(registry)  # if it cannot be used, nothing is read
    return LocalContext(read_policy_hooks(config.user, config.machine), registry, gate)


def _list_credentials(config: Config) -> list[Credential]:

    credentials = []
    with suppress(SettingError):  # the service is not called: a wrong credential does no harm
        text = config.read_api_key(os.environ.get("SEALPIPE_API_KEY_FILE"))
        credentials += [Credential.parse(text)] if text else []
    with suppress(SettingError):
        credentials += (
            [Credential.parse(config.previous_api_key)] if config.previous_api_key else []
        )
    return credentials


def work_locally(context: LocalContext, work: Callable[[], T]) -> T:
    """Do work that calls no service, and close the registry."""
    try:
        return work()
    finally:
        context.registry().close()
