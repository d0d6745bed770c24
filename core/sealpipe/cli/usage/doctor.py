"""`sealpipe doctor`: options and help."""

from __future__ import annotations

from typing import Any

import click

from sealpipe.cli.command import COMMON, AnyType, Command, OneOf, SettingType, options
from sealpipe.errors import SettingError, UsageError


@click.command(cls=Command)
@click.argument("name", metavar="[NAME]", required=False)
@options("doctor", common=COMMON)
@click.pass_context
def doctor(ctx: click.Context, /, name: str | None, **values: Any) -> None:
    """Diagnose settings, credential, connectivity and scopes.

    Checks settings and their origin, the credential's form, the state directory, plugins and
    stores, the link address, the connection to the service, clock and scopes; with a NAME, only
    that source, sink, channel or store. Shows no secret, and changes nothing at the service (except
    with --roundtrip). Exits with 0, or the exit code of the first failure.

    With --conformance, compares this installation's wire format with the reference's test vectors.
    It needs no credential, no settings and no network. A difference exits with 13 (verification
    failed).
    """
    from sealpipe.cli import doctor

    doctor.doctor(ctx, name, **values)


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
