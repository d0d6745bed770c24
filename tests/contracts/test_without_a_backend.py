"""The conformance kit on what has no backend to store things in; and that every built-in plugin
stands in the kit.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from sealpipe.registry import Registry
from sealpipe.testing import SourceContract
from sealpipe.testing.contract import Contract

TESTS = Path(__file__).resolve().parents[1]
KITS = [
    *TESTS.glob("contracts/test_*.py"),
    *TESTS.glob("plugins/*/test_contract*.py"),
]


class TestText(Contract):
    kind = "source"
    name = "text"


class TestStdin(Contract):
    kind = "source"
    name = "stdin"


class TestGen(Contract):
    kind = "source"
    name = "gen"


def test_every_built_in_plugin_is_held_to_its_contract() -> None:
    for file in KITS:
        import_module(".".join(file.relative_to(TESTS).with_suffix("").parts))
    held = {(kit.kind, kit.name) for kit in _below(Contract) if hasattr(kit, "name")}
    listed = Registry(environ={}).catalog.list_plugins()
    assert held >= {(each.kind, each.info.name) for each in listed if not each.origin}


def test_a_contract_that_fails_says_what_differs() -> None:
    class Forgetful(SourceContract):
        name = "text"
        odd_keys = ("eq=al",)

        def put(self, content: object) -> str:
            return str(content)

        def missing(self) -> str:
            return "nothing"

        def value(self, registry: Registry, content: object) -> dict[str, bytes]:
            del registry, content
            return {"eq": b"al"}

    kit = Forgetful()
    with pytest.raises(AssertionError, match="eq=al"):
        kit.test_a_map_comes_back_with_all_its_keys_however_odd(Registry(environ={}))


def _below(kit: type[Contract]) -> Iterator[type[Contract]]:
    for each in kit.__subclasses__():
        yield each
        yield from _below(each)
