"""Resolving as a driver does, for tests."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from sealpipe.flows import Do, Flow
from sealpipe.flows.resolve import resolve, resolve_value
from sealpipe.reference import parse, parse_field
from sealpipe.registry import Registry
from sealpipe.secret import Secret
from sealpipe.wire.fields import Field


def run(flow: Flow[Any]) -> Any:
    """Drive a flow that only works, and neither sends nor waits."""
    answer = None
    while True:
        try:
            step = flow.send(answer)
        except StopIteration as end:
            return end.value
        assert isinstance(step, Do)
        answer = step.work()


def registry(environ: Mapping[str, str] | None = None, stdin: bytes = b"") -> Registry:
    """The built-in sources over an environment and a standard input of one's own."""
    return Registry(environ=os.environ if environ is None else environ, stdin=io.BytesIO(stdin))


def fetched(*texts: str, environ: Mapping[str, str] | None = None, stdin: bytes = b"") -> list[Field]:
    """The fields of some references."""
    found = registry(environ, stdin)
    fields: list[Field] = run(resolve([parse_field(text) for text in texts], lambda: found))
    return fields


def value_of(text: str, environ: Mapping[str, str] | None = None, stdin: bytes = b"") -> str | None:
    """The one value of a reference, opened."""
    found = registry(environ, stdin)
    value = run(resolve_value(parse(text), lambda: found))
    return value.reveal() if isinstance(value, Secret) else None


def opened(field: Field) -> bytes:
    """A field's value as bytes."""
    value = field.value
    return value.reveal_bytes() if isinstance(value, Secret) else value.encode()


@contextmanager
def as_nobody() -> Iterator[None]:
    """Be a user whom permissions bind: root reads everything."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)
