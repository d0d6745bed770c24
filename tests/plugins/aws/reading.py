"""References to AWS, resolved."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sealpipe.errors import PluginError
from sealpipe.flows.resolve import resolve
from sealpipe.http.plugin_network import PluginNetwork
from sealpipe.plugin import Document
from sealpipe.reference import parse, parse_field
from sealpipe.registry import Registry
from support.resolving import opened, run

STORE = "SEALPIPE_STORE__OTHER__"
DEFAULT = "SEALPIPE_PLUGIN_AWS__"


def registry(environ: Mapping[str, str], ca_file: Path | None = None) -> Registry:
    """One that has a way out."""
    network = PluginNetwork(ca_file)
    return Registry(environ=environ, network=lambda: network)


def values(environ: Mapping[str, str], *references: str) -> list[bytes]:
    """What the references give."""
    found = registry(environ)
    return [opened(field) for field in run(resolve([parse_field(text) for text in references], lambda: found))]


def answers(found: Registry, *references: str) -> list[Document | PluginError]:
    """What the sources answer, all asked at once and each only once."""
    located = [found.locate(parse(text)) for text in references]
    wanted: dict[str, list[object]] = {}
    for locator in dict.fromkeys(located):
        wanted.setdefault(locator.name, []).append(locator)
    got = found.fetch(wanted)  # type: ignore[arg-type]
    return [got[locator] for locator in located]


def failure(environ: Mapping[str, str], reference: str, ca_file: Path | None = None) -> PluginError:
    """The error of a reference that cannot be read."""
    answer = answers(registry(environ, ca_file), reference)[0]
    assert isinstance(answer, PluginError), answer
    return answer


def refused(environ: Mapping[str, str], reference: str, kind: type[PluginError], words: str) -> PluginError:
    """The same, held to its kind and its words. It says what to do, too."""
    found = failure(environ, reference)
    assert type(found) is kind, found
    assert words in found.message
    assert found.remedy
    assert found.locator == reference
    return found
