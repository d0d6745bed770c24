"""`sealpipe doctor`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from sealpipe.cli import context, output
from sealpipe.cli.options import Command, SettingType, options
from sealpipe.errors import UsageError

if TYPE_CHECKING:
    from sealpipe.credential import Credential
    from sealpipe.doctor.configured import Given, Settings
    from sealpipe.doctor.finding import Finding


@click.command(cls=Command)
@click.argument("name", metavar="[NAME]", required=False)
@options("doctor", common=context.COMMON)
@click.pass_context
def doctor(ctx: click.Context, /, name: str | None, **values: Any) -> None:
    """Look at everything that a share needs, and tell what to do.

    Settings and where they come from, the credential's form, the state folder, the way to the service, clock,
    scopes, plugins. With a NAME only that source. No secret is shown, and nothing is changed (but for --roundtrip).
    Ends with 0, or with the exit code of what failed first.
    """
    settings = _settings(ctx, values)
    found = list(_one(name) if name else _all(settings, roundtrip=values["roundtrip"]))
    _tell(found, as_json=values["output"] == "json")
    for finding in found:
        if finding.error is not None:
            raise finding.error


def _one(name: str) -> Iterator[Finding]:
    from contextlib import closing

    from sealpipe.client.plugins import registry
    from sealpipe.doctor import installed

    with closing(registry()) as found:
        yield from installed.check(found, name)


def _all(settings: Settings, *, roundtrip: bool) -> Iterator[Finding]:
    from sealpipe.client.plugins import registry
    from sealpipe.doctor import configured, holder, installed, place

    yield from configured.findings(settings, os.environ)
    credential, told = holder.look(settings, os.environ)
    yield from told
    yield from place.findings(settings, os.environ, credential)
    yield from installed.findings(registry())
    yield from _service(settings, credential, roundtrip=roundtrip)


def _service(settings: Settings, credential: Credential | None, *, roundtrip: bool) -> Iterator[Finding]:
    """The network, as far as what is set leads."""
    from pathlib import Path

    from sealpipe.client.plugins import registry
    from sealpipe.doctor import roundtrip as trial
    from sealpipe.doctor import scopes, way
    from sealpipe.doctor.finding import doubtful
    from sealpipe.flows.session import Session

    base_url, ca_file = settings["base_url"].usable(), settings["ca_file"].usable()
    trusted = None if ca_file is None else Path(ca_file)
    route = [] if base_url is None else list(way.route(base_url, trusted, os.environ))
    yield from route
    if base_url is None or credential is None or any(finding.error for finding in route):
        yield doubtful("service", "not asked: address, credential and certificates come first")
        return
    # Links are not made here but for a test share that nobody gets: their address may be missing.
    link_base_url = settings["link_base_url"].usable() or base_url
    deadline = settings["deadline"].usable() or 60.0
    session = Session(credential, base_url, link_base_url, registry, deadline, trusted)
    line, asked = way.Line(session), scopes.Asked()
    try:
        yield from scopes.findings(line, asked)
        if roundtrip and "shares:write" in asked.granted and not asked.stopped:
            yield from trial.findings(session, line)
        elif roundtrip:
            yield doubtful("roundtrip", "not tried: what comes before it has to work first")
    finally:
        line.close()


def _tell(found: Iterable[Finding], *, as_json: bool) -> None:
    if as_json:
        output.json_result({"checks": [_members(finding) for finding in found]})
        return
    rows = [(finding.status, finding.check, finding.detail, finding.remedy) for finding in found]
    width = max(len(output.printable(check)) for _, check, _, _ in rows)
    lines = [
        f"{status:<4}  {output.printable(check):<{width}}  {output.printable(detail)}"
        + (f"  -> {output.printable(remedy)}" if remedy else "")
        for status, check, detail, remedy in rows
    ]
    output.result("".join(f"{output.harmless(line)}\n" for line in lines))


def _members(finding: Finding) -> dict[str, Any]:
    members = {"check": finding.check, "status": finding.status, "detail": finding.detail}
    members |= {"remedy": finding.remedy} if finding.remedy else {}
    return members | ({"exit_code": finding.error.exit_code} if finding.error else {})


def _settings(ctx: click.Context, values: dict[str, Any]) -> dict[str, Given]:
    from sealpipe.configuration import config_path
    from sealpipe.doctor.configured import Given

    def origin(option: click.Option) -> str:
        source = ctx.get_parameter_source(option.name or "")
        if source is ParameterSource.DEFAULT_MAP:
            return f"config file {config_path(os.environ)}"
        return {
            ParameterSource.COMMANDLINE: option.opts[0],
            ParameterSource.ENVIRONMENT: str(option.envvar),
        }.get(source or ParameterSource.DEFAULT, "default")

    params = [param for param in ctx.command.params if isinstance(param, click.Option)]
    return {param.name: Given(values[param.name], origin(param)) for param in params if param.name in context.COMMON}


class _Later(click.ParamType[Any]):
    """Hands on what a setting's own type has against a value: it is told beside everything else."""

    def __init__(self, kind: SettingType) -> None:
        self.name = kind.name
        self._kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return self._kind.convert(value, param, ctx)
        except UsageError as error:
            return error


for _param in doctor.params:
    if isinstance(_param.type, SettingType):
        _param.type = _Later(_param.type)
