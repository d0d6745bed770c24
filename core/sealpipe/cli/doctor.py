"""`sealpipe doctor`: run the checks of `sealpipe.doctor` and print their findings."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from sealpipe.cli import render
from sealpipe.cli.command import COMMON, AnyType, Command, OneOf, SettingType, make_registry, options, run_config
from sealpipe.errors import SettingError, UsageError

if TYPE_CHECKING:
    from sealpipe.api import Credential
    from sealpipe.doctor import Finding
    from sealpipe.doctor.machine import GivenSetting, Settings


@click.command(cls=Command)
@click.argument("name", metavar="[NAME]", required=False)
@options("doctor", common=COMMON)
@click.pass_context
def doctor(ctx: click.Context, /, name: str | None, **values: Any) -> None:
    """Diagnose settings, credential, connectivity and scopes.

    Checks settings and their origin, the credential's form, the state directory, plugins and stores, the link
    address, the connection to the service, clock and scopes; with a NAME, only that source, sink, channel or store.
    Shows no secret and changes nothing (except with --roundtrip). Exits with 0, or the exit code of the first failure.

    With --conformance, compares this installation's wire format with the reference's test vectors. It needs no
    credential, no settings and no network. A difference exits with 13 (verification failed).
    """
    findings = [_redact_finding(finding) for finding in _run_checks(ctx, name, values)]
    _print_findings(findings, as_json=values["output"] == "json")
    for finding in findings:
        if finding.error is not None:
            raise finding.error


def _run_checks(ctx: click.Context, name: str | None, values: dict[str, Any]) -> Iterator[Finding]:
    if values["conformance"] is True:
        if name or values["roundtrip"] is True:
            raise UsageError("--conformance excludes NAME and --roundtrip", remedy="leave both out")
        from sealpipe.doctor.conformance import check_conformance

        return check_conformance()
    settings = _read_settings(ctx, values)
    return _check_one(name, settings) if name else _check_all(settings, roundtrip=values["roundtrip"] is True)


def _check_one(name: str, settings: Settings) -> Iterator[Finding]:
    from contextlib import closing

    from sealpipe.doctor import check_plugin

    with closing(make_registry(settings["ca_file"].get_usable())) as registry:
        yield from check_plugin(registry, name)


def _check_all(settings: Settings, *, roundtrip: bool) -> Iterator[Finding]:
    """Run all checks; a failure does not stop the others."""
    from functools import partial

    from sealpipe.client_base import registry
    from sealpipe.doctor import check_plugins, check_policies, check_stores, report_failure, run_check
    from sealpipe.doctor.machine import check_credential, check_settings, check_state_directory, check_values
    from sealpipe.registry.stores import read_policy_hooks

    config = run_config()
    plugins = registry(config=lambda: config.usable_user)
    yield from check_settings(settings, config)
    yield from (report_failure("config file", error) for error in config.errors)
    yield from check_values(config, {setting.location for setting in settings.values()})
    credential, findings = check_credential(settings, config)
    yield from findings
    yield from check_state_directory(settings, os.environ, credential)
    yield from run_check("plugins", partial(check_plugins, plugins))
    yield from run_check("stores", partial(check_stores, plugins))
    policy_check = partial(check_policies, plugins, lambda: read_policy_hooks(config.usable_user, config.machine))
    yield from run_check("policies", policy_check)
    yield from _check_link_address(settings)
    yield from _check_service(settings, credential, roundtrip=roundtrip)


def _check_link_address(settings: Settings) -> Iterator[Finding]:
    from pathlib import Path

    from sealpipe.doctor.connectivity import check_link_address

    link_base_url, ca_file = settings["link_base_url"].get_usable(), settings["ca_file"].get_usable()
    if link_base_url is not None:
        yield from check_link_address(link_base_url, None if ca_file is None else Path(ca_file), os.environ)


def _check_service(settings: Settings, credential: Credential | None, *, roundtrip: bool) -> Iterator[Finding]:
    """Check the service as far as the settings allow."""
    from dataclasses import replace
    from pathlib import Path

    from sealpipe import config_file
    from sealpipe.doctor import report_failure, report_warning, run_check
    from sealpipe.doctor.connectivity import ServiceConnection, check_round_trip, check_route
    from sealpipe.doctor.scopes import ScopeResults, check_capabilities, check_scopes
    from sealpipe.errors import SealpipeError
    from sealpipe.flows.session import Session
    from sealpipe.registry.stores import read_policy_hooks

    config = run_config()
    addresses = {name: settings[name].get_usable() for name in ("base_url", "link_base_url", "ca_file")}
    try:
        machine = config.machine
        addresses = config_file.enforce_service(machine, addresses, os.environ)
    except SealpipeError as error:  # never send the credential if the machine's config forbids it
        yield report_failure("service", error)
        return
    base_url, ca_file = addresses["base_url"], addresses["ca_file"]
    ca_path = None if ca_file is None else Path(ca_file)
    route = [] if base_url is None else list(check_route(base_url, ca_path, os.environ))
    yield from route
    if base_url is None or credential is None or any(finding.error for finding in route):
        yield report_warning("service", "not checked: fix base URL, credential and certificates first")
        return
    # The link base URL is optional: the only link is that of a test share, which is discarded.
    link_base_url = addresses["link_base_url"] or base_url
    deadline = settings["deadline"].get_usable() or 60.0
    session = Session(credential, base_url, link_base_url, make_registry, deadline, ca_path)
    connection, scope_results = ServiceConnection(session), ScopeResults()
    try:
        yield from check_scopes(connection, scope_results)
        if roundtrip and "shares:write" in scope_results.granted and not scope_results.is_stopped:
            yield from run_check(
                "roundtrip",
                lambda: check_round_trip(
                    replace(session, policy_hooks=read_policy_hooks(config.user, machine)), connection
                ),
            )
        elif roundtrip:
            yield report_warning("roundtrip", "not tried: fix the checks before it first")
        if not scope_results.is_stopped:
            yield from check_capabilities(connection)
    finally:
        connection.close()


def _print_findings(findings: Iterable[Finding], *, as_json: bool) -> None:
    if as_json:
        render.print_json({"checks": [_to_members(finding) for finding in findings]})
        return
    rows = [(finding.status, finding.check, finding.detail, finding.remedy) for finding in findings]
    width = max(len(render.escape(check)) for _, check, _, _ in rows)
    lines = [
        f"{status:<4}  {render.escape(check):<{width}}  {render.escape(detail)}"
        + (f"  -> {render.escape(remedy)}" if remedy else "")
        for status, check, detail, remedy in rows
    ]
    render.print_lines(lines)


def _redact_finding(finding: Finding) -> Finding:
    """Redact a finding: a setting may hold a credential instead of a path."""
    from dataclasses import replace

    check, detail, remedy = map(render.redact, (finding.check, finding.detail, finding.remedy))
    return replace(finding, check=check, detail=detail, remedy=remedy)


def _to_members(finding: Finding) -> dict[str, Any]:
    members = {"check": finding.check, "status": finding.status, "detail": finding.detail}
    members |= {"remedy": finding.remedy} if finding.remedy else {}
    return members | ({"exit_code": finding.error.exit_code} if finding.error else {})


def _read_settings(ctx: click.Context, values: dict[str, Any]) -> dict[str, GivenSetting]:
    from sealpipe.doctor.machine import GivenSetting

    def read_setting(option: click.Option) -> GivenSetting:
        name, source = option.name or "", ctx.get_parameter_source(option.name or "")
        if source is ParameterSource.DEFAULT_MAP:
            return GivenSetting(values[name], f"config file {run_config().path}", f"config file's {name}")
        if source is ParameterSource.ENVIRONMENT:
            return GivenSetting(values[name], str(option.envvar), f"variable {option.envvar}")
        return GivenSetting(values[name], option.opts[0] if source is ParameterSource.COMMANDLINE else "default")

    params = [param for param in ctx.command.params if isinstance(param, click.Option)]
    return {param.name: read_setting(param) for param in params if param.name in COMMON}


class _DeferredErrors(AnyType):
    """Returns a setting's error as its value, so that the report can include it."""

    def __init__(self, kind: AnyType) -> None:
        self.name = kind.name
        self._kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return self._kind.convert(value, param, ctx)
        except UsageError as error:
            return error
        except click.BadParameter as error:
            return SettingError(f"{param.opts[-1] if param else self.name}: {error.message}")

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        return self._kind.get_metavar(param, ctx)


for _param in doctor.params:
    if isinstance(_param.type, SettingType | OneOf | click.types.BoolParamType):
        _param.type = _DeferredErrors(_param.type)
