"""All checks, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from sealpipe.client_base import registry
from sealpipe.config import Config
from sealpipe.doctor.connectivity import check_link_address
from sealpipe.doctor.findings import Finding, report_failure, run_check
from sealpipe.doctor.machine import (
    Settings,
    check_credential,
    check_settings,
    check_state_directory,
    check_values,
)
from sealpipe.doctor.plugins import check_plugins, check_policies, check_stores
from sealpipe.doctor.scopes import check_service
from sealpipe.registry import Registry
from sealpipe.registry.stores import read_policy_hooks


def check_everything(
    settings: Settings,
    config: Config,
    make_registry: Callable[[], Registry],
    *,
    roundtrip: bool = False,
) -> Iterator[Finding]:
    """Run all checks; a failure does not stop the others.

    `make_registry` is for the test share of `roundtrip`.
    """
    plugins = registry(config=lambda: config.usable_user)
    yield from check_settings(settings, config)
    yield from (report_failure("config file", error) for error in config.errors)
    yield from check_values(config, {setting.location for setting in settings.values()})
    credential, findings = check_credential(settings, config)
    yield from findings
    yield from check_state_directory(settings, config.environ, credential)
    yield from run_check("plugins", partial(check_plugins, plugins))
    yield from run_check("stores", partial(check_stores, plugins))
    policy_check = partial(
        check_policies, plugins, lambda: read_policy_hooks(config.usable_user, config.machine)
    )
    yield from run_check("policies", policy_check)
    yield from _check_link_address(settings, config)
    yield from check_service(settings, config, credential, make_registry, roundtrip=roundtrip)


def _check_link_address(settings: Settings, config: Config) -> Iterator[Finding]:
    link_base_url, ca_file = (
        settings["link_base_url"].get_usable(),
        settings["ca_file"].get_usable(),
    )
    if link_base_url is not None:
        yield from check_link_address(
            link_base_url, None if ca_file is None else Path(ca_file), config.environ
        )
