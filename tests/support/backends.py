"""What sources and sinks come to without a client: references resolved, and values stored."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TypeVar

import pytest

from sealpipe.client_base import create_file, replace_file
from sealpipe.errors import PluginError
from sealpipe.network.plugin_network import PluginNetwork
from sealpipe.plugin import Document, Mode, SinkField, WriteResult
from sealpipe.reference import parse, parse_field
from sealpipe.registry import Registry
from sealpipe.registry.safe_calls import call_plugin
from sealpipe.secret import Secret
from sealpipe.sources.resolve import Cache, resolve, resolve_value
from sealpipe.testing import SinkContract
from sealpipe.testing.contract import CANARY, error_text, find_leaks
from sealpipe.testing.proxy import FaultyProxy
from sealpipe.testing.sink import MODES
from sealpipe.wire.fields import Field

T = TypeVar("T")

SECRET = CANARY
"""A value that no error may show."""
Values = Mapping[str, str | bytes]


def registry(
    environ: Mapping[str, str] | None = None, stdin: bytes = b"", ca_file: Path | None = None
) -> Registry:
    """The built-in plugins over an environment and a standard input of one's own, with a way
    out.
    """
    network = PluginNetwork(ca_file)
    found = os.environ if environ is None else environ
    files = {"new_file": create_file, "replace_file": replace_file}
    return Registry(environ=found, stdin=io.BytesIO(stdin), network=lambda: network, **files)


@contextmanager
def registries(**environ: str) -> Iterator[Callable[..., Registry]]:
    """Makes registries in an environment with changes, and closes them in the end."""
    with ExitStack() as stack:

        def make(**changes: str) -> Registry:
            whole = {**environ, **changes}
            ca_file = Path(whole["SEALPIPE_CA_FILE"]) if "SEALPIPE_CA_FILE" in whole else None
            return stack.enter_context(closing(registry(whole, ca_file=ca_file)))

        yield make


def resolved(found: Registry, *texts: str, cache: Cache | None = None) -> list[Field]:
    """The fields of some references."""
    fields: list[Field] = resolve([parse_field(text) for text in texts], lambda: found, cache)
    return fields


def fetched(
    *texts: str, environ: Mapping[str, str] | None = None, stdin: bytes = b""
) -> list[Field]:
    """The same, with a registry of their own."""
    return resolved(registry(environ, stdin), *texts)


def values(environ: Mapping[str, str], *texts: str) -> list[bytes]:
    """Their values, opened."""
    return [opened(field) for field in fetched(*texts, environ=environ)]


def value_of(text: str, environ: Mapping[str, str] | None = None, stdin: bytes = b"") -> str | None:
    """The one value of a reference, opened."""
    found = registry(environ, stdin)
    value = resolve_value(parse(text), lambda: found)
    return value.reveal() if isinstance(value, Secret) else None


def opened(field: Field) -> bytes:
    """A field's value as bytes."""
    value = field.value
    return value.reveal_bytes() if isinstance(value, Secret) else value.encode()


def answers(found: Registry, *references: str) -> list[Document | PluginError]:
    """What the sources answer, all asked at once and each only once."""
    located = [found.locate(parse(text)) for text in references]
    wanted: dict[str, list[object]] = {}
    for locator in dict.fromkeys(located):
        wanted.setdefault(locator.name, []).append(locator)
    got = found.fetch(wanted)  # type: ignore[arg-type]
    return [got[locator] for locator in located]


def failed(found: Registry, reference: str) -> PluginError:
    """The error of a reference that cannot be read; asked once, even where it could be tried
    again.
    """
    (answer,) = answers(found, reference)
    assert isinstance(answer, PluginError), answer
    return answer


def refused(
    environ: Mapping[str, str], reference: str, kind: type[PluginError], words: str
) -> PluginError:
    """The same, held to its kind and its words. It says what to do, too."""
    found = failed(registry(environ), reference)
    assert type(found) is kind, found
    assert words in found.message
    assert found.remedy
    assert found.locator == reference
    return found


def put(
    environ: Mapping[str, str],
    target: str,
    values: Values,
    mode: Mode = "create",
    marker: str = "m1",
) -> WriteResult:
    """Store, by a registry of its own: another process, or another machine."""
    found = registry(environ)
    try:
        return put_by(found, target, values, mode, marker)
    finally:
        found.close()


def put_by(
    found: Registry, target: str, values: Values, mode: Mode = "create", marker: str = "m1"
) -> WriteResult:
    """Store."""
    reference = parse(target)
    fields = [SinkField(key, Secret(value)) for key, value in values.items()]
    sink = found.sink(reference.name)
    locator = found.locate(reference, "sink")
    return call_plugin(target, lambda: sink.put(locator, fields, mode=mode, marker=marker))


def put_refused(
    environ: Mapping[str, str],
    target: str,
    values: Values,
    kind: type[PluginError],
    words: str,
    mode: Mode = "create",
) -> PluginError:
    """The error of a target that nothing is stored in. It says what to do, and shows no value."""
    with pytest.raises(PluginError) as caught:
        put(environ, target, values, mode)
    assert type(caught.value) is kind, caught.value
    assert words in caught.value.message
    assert caught.value.remedy
    assert not find_leaks(error_text(caught.value))
    return caught.value


def at_once(*jobs: Callable[[], WriteResult]) -> list[WriteResult | PluginError]:
    """What each comes to, all running at the same time."""

    def outcome(job: Callable[[], WriteResult]) -> WriteResult | PluginError:
        try:
            return job()
        except PluginError as error:
            return error

    with ThreadPoolExecutor(len(jobs)) as pool:
        return list(pool.map(outcome, jobs))


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


class Unconditional(SinkContract):
    """The contract of a sink whose backend changes a value without a condition: two machines may
    write one value twice. `writes` is `versions` of all other tests.
    """

    is_alone = True

    def writes(self, body: str) -> int:
        raise NotImplementedError

    def versions(self, body: str) -> int | None:
        return self.writes(body) if self.is_alone else None

    @pytest.mark.parametrize("mode", MODES)
    def test_the_same_submission_on_two_machines_is_stored_once(
        self, mode: Mode, environ: Mapping[str, str], proxy: FaultyProxy
    ) -> None:
        self.is_alone = False
        self._rehearsed = {}  # without a number of writes
        super().test_the_same_submission_on_two_machines_is_stored_once(mode, environ, proxy)
