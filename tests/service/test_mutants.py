"""The tests notice when the service breaks a rule: a third of what `tests/endurance/mutants.py`
breaks.
"""

from __future__ import annotations

import random

import pytest

from sealpipe_service import listing, openapi, plans, shares
from service.mutating import Mutant, mutants, run, unnoticed

MUTANTS = mutants()
PART = random.Random(159).sample(MUTANTS, len(MUTANTS) // 3)  # noqa: S311 - rules to break


def test_every_broken_rule_is_one_change_of_the_service_as_it_is() -> None:
    for mutant in MUTANTS:
        assert mutant.source()
        assert mutant.old != mutant.new
        assert mutant.noticed_by, mutant.name


def test_there_are_enough_in_every_part_of_the_service_and_for_our_own_client() -> None:
    assert len(MUTANTS) >= 120
    assert sum(bool(mutant.client) for mutant in MUTANTS) >= 60
    assert {
        "gateway",
        "creation",
        "idempotency",
        "shares",
        "requests",
        "listing",
        "plans",
        "responses",
    } <= {mutant.module for mutant in MUTANTS}


def test_a_broken_rule_is_noticed_by_every_test_that_the_table_names() -> None:
    wrong = unnoticed(PART, run(PART))
    assert wrong == {}


def test_a_mutant_report_names_passing_and_broken_tests() -> None:
    mutant = Mutant("m", "plans", "x", "y", ("a.py::one", "a.py::two"), ("c.py::three",))
    assert unnoticed([mutant], {"": set(), "m": {"a.py::one"}}) == {
        "m": ["a.py::two", "c.py::three"]
    }
    assert unnoticed([mutant], {"": set(), "m": {"c.py::three"}}, client=True) == {}
    everything = {"a.py::one", "a.py::two", "c.py::three"}
    assert unnoticed([mutant], {"": {"a.py::one"}, "m": everything}) == {"": ["a.py::one"]}


@pytest.mark.parametrize(
    ("mutant", "value"),
    [
        (
            Mutant(
                "a constant that another module has", "listing", "MAX_LIMIT = 100", "MAX_LIMIT = 99"
            ),
            lambda: openapi.MAX_LIMIT,
        ),
        (
            Mutant("a function", "listing", "return fallback", "return 1"),
            lambda: listing.read_page({}).limit,
        ),
        (
            Mutant("a property", "plans", "return self.limits.api_access and", "return not"),
            lambda: plans.Account("x").api_access,
        ),
        (
            Mutant("a function that others hold", "shares", "value.strip()", "value"),
            lambda: shares.sha256_hex(" x") == shares.sha256_hex("x"),
        ),
    ],
    ids=lambda value: value.name if isinstance(value, Mutant) else "",
)
def test_a_rule_is_broken_inside_the_block_and_whole_again_behind_it(
    mutant: Mutant, value: object
) -> None:
    assert callable(value)
    before = value()
    with mutant.applied():
        assert value() != before
    assert value() == before


def test_a_text_that_is_not_there_once_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"stands 0 times in plans"):
        Mutant("gone", "plans", "what does not exist", "x").source()
