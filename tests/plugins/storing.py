"""Values put into sinks, as the core puts them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

import pytest

from plugins.aws.reading import registry
from sealpipe.errors import PluginError
from sealpipe.plugin import Mode, SinkField, WriteResult
from sealpipe.reference import parse
from sealpipe.registry import Registry
from sealpipe.registry.calls import call_plugin
from sealpipe.secret import Secret
from sealpipe.testing.contract import CANARY, error_text, find_leaks

Values = Mapping[str, str | bytes]


def put(
    environ: Mapping[str, str], target: str, values: Values, mode: Mode = "create", marker: str = "m1"
) -> WriteResult:
    """Store, by a registry of its own: another process, or another machine."""
    found = registry(environ)
    try:
        return put_by(found, target, values, mode, marker)
    finally:
        found.close()


def put_by(found: Registry, target: str, values: Values, mode: Mode = "create", marker: str = "m1") -> WriteResult:
    """Store."""
    reference = parse(target)
    fields = [SinkField(key, Secret(value)) for key, value in values.items()]
    sink = found.sink(reference.name)
    locator = found.locate(reference, "sink")
    return call_plugin(target, lambda: sink.put(locator, fields, mode=mode, marker=marker))


def refused(
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


SECRET = CANARY
"""A value that no error may show."""
