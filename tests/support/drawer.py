"""Plugins whose sink is a folder of JSON files: as simple as a sink can be, and wrong in one way
where asked for.

A gate is a drawer that stays in the middle of storing until a test lets it go on.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sealpipe.plugin import (
    TEXT,
    Locator,
    Mode,
    Sink,
    SinkField,
    SinkInfo,
    UnsupportedError,
    WriteConflictError,
    WriteResult,
    hookimpl,
    merge_fields,
)


@hookimpl
def sealpipe_sinks(register: Callable[[SinkInfo], None]) -> None:
    text = {"capabilities": (TEXT,)}
    register(SinkInfo("drawer", "a file in a drawer", "support.drawer:Drawer", **text))
    register(SinkInfo("gate", "a drawer behind a gate", "support.drawer:Gate", **text))


def reveal_texts(fields: Sequence[SinkField]) -> dict[str, str]:
    """The values by key: JSON holds text only."""
    try:
        return {field.key: field.value.reveal() for field in fields}
    except UnicodeError:
        pass
    raise UnsupportedError("a value is not text", remedy="give it as base64 text")


_TURN = threading.Lock()
"""One writer after the other: no file is read while it is half written."""


class Drawer(Sink):
    """`wrong` is the one thing that it does wrong: a name of `FAULTS`."""

    wrong = ""

    def describe(self, locator: Locator, mode: Mode) -> str:
        if self.wrong == "describing stores":
            self._file(locator).write_text('{"values": {"a": ""}}')
        return f"{mode} {locator.body}"

    def put(
        self, locator: Locator, fields: Sequence[SinkField], *, mode: Mode, marker: str
    ) -> WriteResult:
        with _TURN:
            return self._put(locator, fields, mode, marker)

    def _put(
        self, locator: Locator, fields: Sequence[SinkField], mode: Mode, marker: str
    ) -> WriteResult:
        file = self._file(locator)
        there = json.loads(file.read_text()) if file.exists() else {}
        number = there.get("number", 0)
        values = reveal_texts(fields)
        if self.wrong == "a value is stripped":
            values = {key: value.strip() for key, value in values.items()}
        if self.wrong == "a value is logged":
            logging.getLogger("drawer").info("stored %s", values)
        after = self._after(there, values, mode, marker)
        if after is None:
            return WriteResult(locator, str(number), already=True)
        file.write_text(json.dumps({"values": after, "marker": marker, "number": number + 1}))
        return WriteResult(locator, str(number + 1))

    def _after(
        self, there: dict[str, Any], values: dict[str, str], mode: Mode, marker: str
    ) -> dict[str, str] | None:
        before = {key: value.encode() for key, value in there["values"].items()} if there else None
        if self.wrong == "create replaces" and mode == "create":
            mode = "replace"
        if self.wrong == "merge replaces" and mode == "merge":
            mode = "replace"
        if self.wrong == "everything is written" and before is not None:
            before = {**before, "\0": b""}
        marked = there.get("marker") == marker and self.wrong != "a marker is forgotten"
        if self.wrong == "a marker is all" and marked:
            return None
        try:
            after = merge_fields(
                before,
                {key: value.encode() for key, value in values.items()},
                mode=mode,
                marked=marked,
            )
        except WriteConflictError as error:
            if self.wrong == "an error tells a value":
                raise WriteConflictError(
                    f"{next(iter(values.values()))} is there already"
                ) from None
            raise error
        return (
            None
            if after is None
            else {key: value.decode() for key, value in after.items() if key != "\0"}
        )

    def _file(self, locator: Locator) -> Path:
        return Path(self.context.environ["DRAWER"]) / f"{locator.body}.json"


FAULTS = {
    "describing stores": "test_what_it_would_do_is_told_without_doing_it",
    "a marker is forgotten": "test_what_was_rotated_since_is_left_alone",
    "a marker is all": "test_a_key_that_the_marked_place_lacks_is_added",
    "everything is written": "test_what_is_there_already_is_not_written_again",
    "create replaces": "test_create_never_replaces",
    "an error tells a value": "test_a_value_shows_in_no_repr_error_or_log",
    "a value is stripped": "test_a_hard_value_is_stored_exactly_or_refused_with_nothing_stored",
    "a value is logged": "test_a_value_shows_in_no_repr_error_or_log",
    "merge replaces": "test_replace_leaves_nothing_else_and_merge_leaves_everything_else",
}
"""What the drawer does wrong, and the test of the kit that has to notice."""


PATIENCE = 30


class Gate(Drawer):
    """`entered` once it is storing, `opened` lets it store; `stored` counts."""

    entered = threading.Event()
    opened = threading.Event()
    stored = 0

    def put(
        self, locator: Locator, fields: Sequence[SinkField], *, mode: Mode, marker: str
    ) -> WriteResult:
        Gate.entered.set()
        assert Gate.opened.wait(PATIENCE)
        receipt = super().put(locator, fields, mode=mode, marker=marker)
        Gate.stored += not receipt.already
        return receipt

    @classmethod
    def shut(cls) -> None:
        """As at first."""
        cls.entered.clear()
        cls.opened.clear()
        cls.stored = 0
