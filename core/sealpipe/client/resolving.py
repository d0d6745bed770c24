"""References to fields without a client: for scripts that only want what lives somewhere."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NoReturn

from sealpipe.api.operation import Operation
from sealpipe.client import aio, sync
from sealpipe.client.plugins import registry
from sealpipe.client.setup import well_called
from sealpipe.flows.resolve import fetch as resolving
from sealpipe.flows.steps import Flow
from sealpipe.reference import parse_field
from sealpipe.registry import Registry
from sealpipe.secret import bare, sheltered
from sealpipe.wire.fields import Field


@sheltered
@well_called
def resolve(references: Sequence[str], *, ca_file: str | Path | None = None) -> list[Field]:
    """What references name, as fields in their order, such as `["vault:secret/app/db#user,password"]`.

    Every document is read once, stores at the same time. Raises ReferenceSyntaxError, SettingError, PluginError.
    """
    with closing(registry(ca_file)) as found:
        return sync.run(_flow(references, found), _no_service)


@sheltered
@well_called
async def aresolve(references: Sequence[str], *, ca_file: str | Path | None = None) -> list[Field]:
    """As `resolve`, from asyncio: sources are read in threads."""
    found = registry(ca_file)
    try:
        return await aio.run(_flow(references, found), _no_service, aio.RunState())
    except Exception as error:  # noqa: BLE001 - as `sheltered` does it
        fault = error
    finally:
        await asyncio.to_thread(found.close)
    raise bare(fault)


def _flow(references: Sequence[str], found: Registry) -> Flow[list[Field]]:
    return resolving.resolve([parse_field(reference) for reference in references], lambda: found)


def _no_service(_operation: Operation[Any], _timeout: float) -> NoReturn:
    raise AssertionError("resolving asks no service")
