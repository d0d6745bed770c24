"""The service against a model of the specification's states; tests/endurance/state_machine.py has
more runs of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from types import ModuleType

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from sealpipe_service import requests, shares
from sealpipe_service.database import decisions, sqlite, sqlite_text
from service.doors import OverASocket
from service.machine import Machine
from service.side_by_side import Base
from support.hostile import MANY, SHRUNK


@pytest.fixture(autouse=True)
def quick_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A passcode's hash that is made at once: what it costs to guess would be a third of all."""
    monkeypatch.setattr(requests, "PASSCODE_ROUNDS", 1)


class OverTheWire(Machine):
    """The same steps over a real socket."""

    door_class = OverASocket


def short(many: settings, runs: int, steps: int) -> settings:
    return settings(many, max_examples=runs, stateful_step_count=steps, derandomize=True)


def run_and_count(machine: type[Machine], chosen: settings) -> int:
    """The number of responses compared. The run fails on the first one that is not the model's."""
    before = Base.compared
    run_state_machine_as_test(machine, settings=chosen)
    return Base.compared - before


def test_every_answer_is_the_models(pytestconfig: pytest.Config) -> None:
    # Each run on PostgreSQL makes a database, and what is decided is the same.
    runs = 60 if pytestconfig.getoption("--store") == "sqlite" else 10
    assert run_and_count(Machine, short(SHRUNK, runs, 50)) > runs * 10


def test_over_a_real_socket_too() -> None:
    assert run_and_count(OverTheWire, short(MANY, 3, 40)) > 3 * 4  # each run begins with four calls


def changed(name: str, old: str, new: str) -> Mapping[str, str]:
    """The statements, one of them wrong."""
    text = sqlite_text.STATEMENTS[name]
    assert old in text, text
    return {**sqlite_text.STATEMENTS, name: text.replace(old, new)}


# Where the service keeps to one of the specification's numbers, and another number: each must be
# found out.
WRONG = [
    (shares, "PASSCODE_ATTEMPTS", 4),
    (decisions, "BURST", 1),
    (decisions, "CACHE_SECONDS", 31),
    (shares, "DAYS", 13),
    (requests, "DEFAULT_EXPIRY", timedelta(days=31)),
    (sqlite, "STATEMENTS", changed("replay", "86400.0", "86401.0")),
    (
        sqlite,
        "STATEMENTS",
        changed("list_shares", ".expires IS NULL OR", ".expires IS NOT NULL OR"),
    ),
    (sqlite, "STATEMENTS", changed("count_view", "(views.count + 1)", "views.count")),
]


@pytest.mark.parametrize(("module", "name", "value"), WRONG, ids=[name for _, name, _ in WRONG])
def test_a_service_that_is_wrong_is_found_out(
    module: ModuleType, name: str, value: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, name, value)
    with pytest.raises(AssertionError, match="the model says"):
        run_state_machine_as_test(Machine, settings=short(MANY, 200, 50))
