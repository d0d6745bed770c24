"""docs/how-to/copy.md has each store, and says whether a copy can take a new value back from it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sealpipe.copy.plan import plan_writes
from sealpipe.errors import UsageError
from sealpipe.plugin import Locator, SinkInfo
from sealpipe.reference import Reference
from sealpipe.registry import Registry
from sealpipe.sinks.targets import parse_targets
from sealpipe.sources.resolve import ReadField
from sealpipe.wire.fields import Field
from sealpipe_plugins.sinks import sealpipe_sinks

PAGE = Path(__file__).parents[3] / "docs/how-to/copy.md"
SINKS: dict[str, SinkInfo] = {}
sealpipe_sinks(lambda info: SINKS.update({info.name: info}))


def read_table() -> dict[str, tuple[str, str]]:
    """Return the last two columns of the table of stores, by store."""
    row = re.compile(r"^\| `([\w-]+)` \|[^|]*\|([^|]*)\|([^|]*)\|$", re.MULTILINE)
    rows = row.findall(PAGE.read_text("utf-8"))
    return {name: (first.strip(), elsewhere.strip()) for name, first, elsewhere in rows}


def test_the_table_has_every_store() -> None:
    assert read_table().keys() == SINKS.keys()


@pytest.mark.parametrize("name", SINKS)
def test_the_table_says_where_a_new_value_can_be_taken_back(name: str) -> None:
    registry = Registry(environ={})
    params = tuple((each, "0") for each in SINKS[name].params)
    target = Reference(name, "a/b", params)
    drawn = ReadField(Field("P", "x"), Locator("gen", "password"))
    targets = parse_targets([f"{target}#k=P"])
    first, _ = read_table()[name]
    if first == "no":
        with pytest.raises(UsageError, match="can be read back"):
            plan_writes(registry, targets, [drawn])
        return
    (write,) = plan_writes(registry, targets, [drawn])
    registry.locate(write.read_back["P"])  # its parameters are the source's
