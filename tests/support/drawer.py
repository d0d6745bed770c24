"""A plugin whose sink is a folder of JSON files: as simple as a sink can be, and wrong in one way where asked for."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from sealpipe.plugin import Conflict, Locator, Mode, Receipt, Sink, SinkInfo, Stored, hookimpl


@hookimpl
def sealpipe_sinks(register: Callable[[SinkInfo], None]) -> None:
    register(SinkInfo("drawer", "a file in a drawer", "support.drawer:Drawer"))


class Drawer(Sink):
    """`wrong` is the one thing that it does wrong: a name of `FAULTS`."""

    wrong = ""

    def describe(self, locator: Locator, mode: Mode) -> str:
        if self.wrong == "describing stores":
            self._file(locator).write_text('{"values": {"a": ""}}')
        return f"{mode} {locator.body}"

    def put(self, locator: Locator, fields: Sequence[Stored], *, mode: Mode, marker: str) -> Receipt:
        file = self._file(locator)
        there = json.loads(file.read_text()) if file.exists() else {}
        number = there.get("number", 0)
        if there.get("marker") == marker and self.wrong != "a marker is forgotten":
            return Receipt(locator, str(number))
        if there and mode == "create" and self.wrong != "create replaces":
            told = fields[0].value.reveal() if self.wrong == "an error tells a value" else "something"
            raise Conflict(f"{told} is there already", remedy="choose another place")
        values = {field.key: field.value.reveal() for field in fields}
        if self.wrong == "a value is stripped":
            values = {key: value.strip() for key, value in values.items()}
        if self.wrong == "a value is logged":
            logging.getLogger("drawer").info("stored %s", values)
        if (mode == "merge") != (self.wrong == "merge replaces"):
            values = {**there.get("values", {}), **values}
        file.write_text(json.dumps({"values": values, "marker": marker, "number": number + 1}))
        return Receipt(locator, str(number + 1))

    def _file(self, locator: Locator) -> Path:
        return Path(self.context.environ["DRAWER"]) / f"{locator.body}.json"


FAULTS = {
    "describing stores": "test_what_it_would_do_is_told_without_doing_it",
    "a marker is forgotten": "test_the_same_marker_again_stores_nothing_twice",
    "create replaces": "test_create_never_replaces",
    "an error tells a value": "test_a_value_shows_in_no_repr_error_or_log",
    "a value is stripped": "test_what_is_stored_is_there_exactly",
    "a value is logged": "test_a_value_shows_in_no_repr_error_or_log",
    "merge replaces": "test_replace_leaves_nothing_else_and_merge_leaves_everything_else",
}
"""What the drawer does wrong, and the test of the kit that has to notice."""
