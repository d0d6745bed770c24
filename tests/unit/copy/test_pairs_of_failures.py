"""A copy that fails, and whose rerun fails, too, at any store and in any way: what was written is
named, and the next run ends with one value everywhere.

Each store is of a kind of `support.copy_stores`; docs/how-to/copy.md has the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from itertools import product
from pathlib import Path

import pytest

from sealpipe.copy.options import CopyJob, plan_copy
from sealpipe.copy.steps import CopyResult, copy
from sealpipe.custody_gate import CustodyGate
from sealpipe.errors import (
    Note,
    PluginError,
    ReferenceValueError,
    SealpipeError,
    UnknownOutcomeError,
    WriteConflictError,
)
from sealpipe.plugin import Mode
from sealpipe.policy import LocalContext
from sealpipe.reference import parse_field
from sealpipe.registry import Registry
from sealpipe.state.copies import CopyRecord, open_copy_record
from support.copy_stores import KINDS, READABLE, Failure, KilledError, World

PAIRS = [*product(READABLE, KINDS)]
WAYS = ("refused", "down", "lost", "killed before", "killed between", "killed after")


class Impatient(LocalContext):
    """Waits for nothing."""

    def wait(self, seconds: float) -> None:
        del seconds


class Machine:
    """A machine that copies a value, or one for each letter of `labels`, into some stores."""

    def __init__(
        self, folder: Path, *stores: str, source: str = "drawn:", labels: str = "k"
    ) -> None:
        self.folder, self._stores, self._source = folder, stores, source
        self._labels = labels
        registry = Registry(environ={}, built_in=["support.copy_stores"])
        self.context = Impatient((), lambda: registry, CustodyGate())

    def copy(self, mode: Mode = "replace", run: str = "") -> CopyResult:
        result = copy(self.context, self._plan(mode), self.open, run)
        result.finish()
        return result

    def ends(self, mode: Mode = "replace", run: str = "") -> str:
        """Copy, and return how that ended: empty, the name of an error, or `killed`."""
        try:
            self.copy(mode, run)
        except KilledError:
            return "killed"
        except SealpipeError as error:
            return type(error).__name__
        return ""

    def _plan(self, mode: Mode) -> CopyJob:
        to = [
            f"{store}#{','.join(f'{label}={label}' for label in self._labels)}"
            for store in self._stores
        ]
        fields = [parse_field(f"{label}={self._source}") for label in self._labels]
        return plan_copy(fields, to, mode)

    def open(self, name: str) -> CopyRecord:
        record = open_copy_record(self.folder, name)
        assert record is not None
        return record


@pytest.fixture(autouse=True)
def _empty_stores() -> None:
    World.begin()


def found(*stores: str) -> list[bytes | None]:
    """What the stores hold."""
    return [World.values.get(store, {}).get("k") for store in stores]


def failures_of(stores: Sequence[str]) -> list[Failure]:
    """Every failure of a store that is another for the rerun: `down` is like `refused`."""
    return [
        Failure(store, how)
        for store in stores
        for how in WAYS
        if how != "down" and (how != "killed between" or store.startswith("late"))
    ]


def assert_finished(
    folder: Path, stores: tuple[str, str], mode: Mode, failures: Sequence[Failure]
) -> None:
    """Copy with one failure after the other, then without; and look at what the stores have."""
    World.begin()
    machine, ends = Machine(folder, *stores), list[str]()
    for failure in (*failures, None):
        World.failures[:] = [failure] if failure else []
        ends.append(machine.ends(mode))
        if not ends[-1]:  # the rerun had no need of the store that fails
            break
    told = f"{failures}: {ends}"
    if ends[-1] == UnknownOutcomeError.__name__:  # nobody can look, and nothing is replaced unasked
        assert stores[1].startswith("blind"), told
        assert mode == "create", told
        ends.append(machine.ends("replace"))
    assert ends[0], told
    assert not ends[-1], told
    first, second = found(*stores)
    assert first == second, told
    assert first is not None, told
    further = {value for store, value in World.history if store == stores[1]}
    assert further == {first}, f"{told}: more than one value came into the second store"
    assert not [*folder.iterdir()], f"{told}: a record is left"


@pytest.mark.parametrize("mode", ["replace", "create"])
@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_a_rerun_finishes_it_with_one_value(
    tmp_path: Path, first: str, second: str, mode: Mode
) -> None:
    stores = f"{first}:a", f"{second}:b"
    for number, failure in enumerate(failures_of(stores)):
        assert_finished(tmp_path / str(number), stores, mode, [failure])


@pytest.mark.parametrize("mode", ["replace", "create"])
@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_a_rerun_that_fails_too_is_finished_by_the_next(
    tmp_path: Path, first: str, second: str, mode: Mode
) -> None:
    stores = f"{first}:a", f"{second}:b"
    for number, failures in enumerate(product(failures_of(stores), repeat=2)):
        assert_finished(tmp_path / str(number), stores, mode, failures)


@pytest.mark.parametrize("how", ["refused", "down", "lost"])
@pytest.mark.parametrize("second", KINDS)
def test_what_was_written_is_named(tmp_path: Path, second: str, how: str) -> None:
    machine = Machine(tmp_path, "marked:a", f"{second}:b", "plain:c")
    World.failures[:] = [Failure(f"{second}:b", how)] * 4  # each try
    order = ["marked:a#k", f"{second}:b#k", "plain:c#k"]
    with pytest.raises(PluginError) as caught:
        machine.copy()
    notes = Note.on(caught.value)
    assert notes[0] == f"written: {order[0]}"
    assert notes[1:] == (
        [f"not known whether written: {order[1]}", f"not written: {order[2]}"]
        if how == "lost"
        else [f"not written: {order[1]}, {order[2]}"]
    )
    assert "then run the same command again" in caught.value.remedy


@pytest.mark.parametrize("how", ["refused", "lost", "killed after"])
@pytest.mark.parametrize("second", KINDS)
@pytest.mark.parametrize("first", ["marked", "late"])
def test_another_machine_of_the_same_run_goes_on_with_the_value(
    tmp_path: Path, first: str, second: str, how: str
) -> None:
    stores = f"{first}:a", f"{second}:b"
    World.failures[:] = [Failure(stores[1], how)] * 4
    assert Machine(tmp_path / "one", *stores).ends("replace", "github/acme/app/7")
    World.failures.clear()
    kept = found(stores[0])
    again = Machine(tmp_path / "two", *stores).copy("replace", "github/acme/app/7")
    assert again.taken_back == (f"{stores[0]}#k",)
    assert found(*stores) == kept * 2
    # Another run makes another value.
    Machine(tmp_path / "two", *stores).copy("replace", "github/acme/app/8")
    assert found(*stores) != kept * 2


@pytest.mark.parametrize("how", ["refused", "killed after"])
@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_on_another_machine_without_a_marker_all_stores_get_another_value(
    tmp_path: Path, first: str, second: str, how: str
) -> None:
    stores = f"{first}:a", f"{second}:b"
    World.failures[:] = [Failure(stores[1], how)] * 4
    Machine(tmp_path / "one", *stores).ends()
    World.failures.clear()
    Machine(tmp_path / "two", *stores).copy()
    values = found(*stores)
    assert values[0] == values[1]


@pytest.mark.parametrize("mode", ["replace", "merge"])
@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_a_value_that_is_given_is_read_again_and_copied_as_it_is_now(
    tmp_path: Path, first: str, second: str, mode: Mode
) -> None:
    stores = f"{first}:a", f"{second}:b"
    machine = Machine(tmp_path, *stores, source="given:")
    World.failures[:] = [Failure(stores[1], "killed after")]
    assert machine.ends(mode) == "killed"
    World.given = "given-2"
    assert machine.ends(mode) == ""
    assert found(*stores) == [b"given-2"] * 2


def test_create_does_not_replace_what_an_earlier_run_created_from_another_value(
    tmp_path: Path,
) -> None:
    machine = Machine(tmp_path, "marked:a", "plain:b", source="given:")
    World.failures[:] = [Failure("plain:b", "refused")]
    assert machine.ends("create") == "AccessDeniedError"
    World.given = "given-2"
    with pytest.raises(WriteConflictError):
        machine.copy("create")
    assert found("marked:a", "plain:b") == [b"given-1", None]


@pytest.mark.parametrize("kind", ["marked", "late", "plain"])
def test_what_is_there_already_is_not_touched(tmp_path: Path, kind: str) -> None:
    machine = Machine(tmp_path, f"{kind}:a", source="given:")
    machine.copy()
    writes, markers = [*World.writes], {store: [*each] for store, each in World.markers.items()}
    assert machine.copy().written[0].already
    assert (writes, markers) == (World.writes, World.markers)


def test_a_store_that_a_rerun_could_not_read_is_noticed_before_a_second_one_has_the_value(
    tmp_path: Path,
) -> None:
    """Without a key, `marked` stores what its source reads as a map."""
    machine = Machine(tmp_path, "marked:a", "plain:b")
    fields = [parse_field("P=drawn:")]
    job = plan_copy(fields, ["marked:a", "plain:b#k=P"], "replace")
    for _ in range(2):
        with pytest.raises(ReferenceValueError, match="marked:a cannot be read back") as caught:
            copy(machine.context, job, machine.open)
        assert Note.on(caught.value) == ["written: marked:a", "not written: plain:b#k"]
    assert found("plain:b") == [None]


def test_the_same_command_in_another_folder_is_another_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(tmp_path / "state", "plain:a", "plain:b")
    World.failures[:] = [Failure("plain:b", "refused")]
    machine.ends()
    monkeypatch.chdir(tmp_path)
    assert machine.copy().taken_back == ()
    assert found("plain:a", "plain:b") == [b"drawn-2"] * 2


def test_an_unfinished_copy_of_long_ago_is_not_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(tmp_path, "marked:a", "plain:b")
    World.failures[:] = [Failure("plain:b", "refused")]
    machine.ends()
    monkeypatch.setattr("sealpipe.copy.steps.MAX_AGE", timedelta(0))
    assert machine.copy().taken_back == ()
    assert found("marked:a", "plain:b") == [b"drawn-2"] * 2


@pytest.mark.parametrize("mode", ["replace", "create"])
@pytest.mark.parametrize("again", ["one", "two"])
def test_a_store_that_was_killed_between_two_keys_has_the_values_of_the_others(
    tmp_path: Path, again: str, mode: Mode
) -> None:
    stores = ("apart:a", "plain:b")
    World.failures[:] = [Failure("apart:a", "killed between")]
    assert Machine(tmp_path / "one", *stores, labels="kl").ends(mode, "run") == "killed"
    assert len(World.values["apart:a"]) == 1
    Machine(tmp_path / again, *stores, labels="kl").copy(mode, "run")
    assert World.values["apart:a"] == World.values["plain:b"]
    assert len(World.values["plain:b"]) == 2
