"""No row of the specification without a test that names it, and no name that is no row."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

from service import specification
from service.specification import ELSEWHERE, GAPS, GAPS_ELSEWHERE, NAMES, ROWS, TESTS
from support.parts import shared


def show(title: str, found: list[str]) -> None:
    print(f"{title}: {len(found)}", *found, sep="\n  ")


def test_every_row_is_named_by_a_test_and_every_name_is_a_row() -> None:
    named = specification.named()
    unnamed = [f"{name}: {text}" for name, text in NAMES.items() if name not in named]
    unknown = [
        f"{name}, in {', '.join(sorted(tests))}"
        for name, tests in named.items()
        if name not in NAMES
    ]
    show("rows that no test names", unnamed)
    show("names that are no rows", unknown)
    assert (unnamed, unknown) == ([], [])


def test_no_name_is_given_twice() -> None:
    assert len(NAMES) == sum(map(len, ROWS.values())) + len(GAPS)


def test_the_tests_that_the_reasons_name_are_there() -> None:
    reasons = [
        *GAPS_ELSEWHERE.values(),
        *(reason for rows in ELSEWHERE.values() for reason in rows.values()),
    ]
    named = {found[0] for reason in reasons if (found := re.search(r"tests/\S+\.py\S*", reason))}
    assert len(named) > 15
    for path, _, test in (name.removeprefix("tests/").partition("::") for name in named):
        assert f"def {test}" in (TESTS / path).read_text(encoding="utf-8"), f"{path}::{test}"


def without_a_name(document: Mapping[str, list[str]]) -> list[str]:
    """The rows and sentences that neither a row of ours nor `elsewhere` finds."""
    return [
        f"{section}: {piece}"
        for section, pieces in document.items()
        for piece in pieces
        if not any(
            text in piece for text in (*ROWS.get(section, {}).values(), *ELSEWHERE.get(section, {}))
        )
    ]


def not_found(document: Mapping[str, list[str]]) -> list[str]:
    """The texts of ours that the document does not hold in their section."""
    wanted = [(section, text) for section, rows in ROWS.items() for text in rows.values()]
    wanted += [(section, text) for section, rows in ELSEWHERE.items() for text in rows]
    return [
        f"{section}: {text}"
        for section, text in wanted
        if not any(text in piece for piece in document.get(section, []))
    ]


def test_our_list_and_the_specification_hold_the_same() -> None:
    document = specification.pieces(shared("spec/service-api.md").read_text(encoding="utf-8"))
    missing, invented = without_a_name(document), not_found(document)
    show("rows and sentences of the specification that are not in our list", missing)
    show("rows of our list that are not in the specification", invented)
    assert (missing, invented) == ([], [])
    assert sum(map(len, document.values())) > 290


def test_our_list_and_the_gaps_hold_the_same() -> None:
    (rows,) = (
        pieces
        for pieces in specification.pieces(
            shared("spec/gaps.md").read_text(encoding="utf-8")
        ).values()
    )
    topics = [row.partition(" | ")[0] for row in rows if row.endswith(" |")]
    assert sorted(topics) == sorted([*GAPS.values(), *GAPS_ELSEWHERE])


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("# A\n\n1. One. Two `x`; Three\n- four", {"A": ["One.", "Two `x`;", "Three", "four"]}),
        ("## B\n| h | i |\n|---|---|\n| a | b |\n| c | d |", {"B": ["a | b |", "c | d |"]}),
        ("# A\n# B", {"A": [], "B": []}),
    ],
)
def test_a_document_is_cut_into_rows_and_sentences(text: str, pieces: dict[str, list[str]]) -> None:
    assert specification.pieces(text) == pieces


def test_an_untested_row_would_be_found() -> None:
    assert without_a_name({"Limits": ["A new limit | 7 |", "Burst | always twice the rate |"]}) == [
        "Limits: A new limit | 7 |"
    ]
    assert "Limits: Burst | always twice" in not_found({"Limits": []})
