"""`sealpipe doctor`: run the checks of `sealpipe.doctor` and print their findings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import click
from click.core import ParameterSource

from sealpipe.cli import render
from sealpipe.cli.command import COMMON, run_config
from sealpipe.cli.local import make_registry
from sealpipe.doctor.all_checks import check_everything
from sealpipe.doctor.conformance import check_conformance
from sealpipe.doctor.findings import Finding
from sealpipe.doctor.machine import GivenSetting, Settings
from sealpipe.doctor.plugins import check_plugin
from sealpipe.errors import UsageError


def doctor(ctx: click.Context, /, name: str | None, **values: Any) -> None:
    """Run `sealpipe doctor`."""
    findings = [_redact_finding(finding) for finding in _run_checks(ctx, name, values)]
    _print_findings(findings, as_json=values["output"] == "json")
    for finding in findings:
        if finding.error is not None:
            raise finding.error


def _run_checks(ctx: click.Context, name: str | None, values: dict[str, Any]) -> Iterator[Finding]:
    if values["conformance"] is True:
        if name or values["roundtrip"] is True:
            raise UsageError("--conformance excludes NAME and --roundtrip", remedy="leave both out")

        return check_conformance()
    settings = _read_settings(ctx, values)
    if name:
        return _check_one(name, settings)

    return check_everything(
        settings, run_config(), make_registry, roundtrip=values["roundtrip"] is True
    )


def _check_one(name: str, settings: Settings) -> Iterator[Finding]:
    with closing(make_registry(settings["ca_file"].get_usable())) as registry:
        yield from check_plugin(registry, name)


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
    check, detail, remedy = map(render.redact, (finding.check, finding.detail, finding.remedy))
    return replace(finding, check=check, detail=detail, remedy=remedy)


def _to_members(finding: Finding) -> dict[str, Any]:
    members = {"check": finding.check, "status": finding.status, "detail": finding.detail}
    members |= {"remedy": finding.remedy} if finding.remedy else {}
    return members | ({"exit_code": finding.error.exit_code} if finding.error else {})


def _read_settings(ctx: click.Context, values: dict[str, Any]) -> dict[str, GivenSetting]:
    def read_setting(option: click.Option) -> GivenSetting:
        name, source = option.name or "", ctx.get_parameter_source(option.name or "")
        if source is ParameterSource.DEFAULT_MAP:
            return GivenSetting(
                values[name], f"config file {run_config().path}", f"config file's {name}"
            )
        if source is ParameterSource.ENVIRONMENT:
            return GivenSetting(values[name], str(option.envvar), f"variable {option.envvar}")
        return GivenSetting(
            values[name], option.opts[0] if source is ParameterSource.COMMANDLINE else "default"
        )

    params = [param for param in ctx.command.params if isinstance(param, click.Option)]
    return {param.name: read_setting(param) for param in params if param.name in COMMON}
