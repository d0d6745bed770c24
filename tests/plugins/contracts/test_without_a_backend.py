"""The conformance kit on what has no backend to store things in; and that every built-in plugin stands in the kit."""

from __future__ import annotations

import re
from pathlib import Path

from sealpipe.registry import Registry
from sealpipe.testing.contract import Contract

TESTS = Path(__file__).resolve().parents[2]
KITS = [*TESTS.glob("plugins/contracts/*.py"), *TESTS.glob("plugins/*/test_contract.py"), *TESTS.glob("channels/*.py")]


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
    text = "\n".join(file.read_text(encoding="utf-8") for file in KITS)
    held = re.findall(r'^    name = "(\S+)"$', text, re.MULTILINE)
    listed = Registry(environ={}).catalog.listing()
    assert sorted(held) == sorted(each.info.name for each in listed if not each.origin)
