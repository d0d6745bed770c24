"""What real programs print of random passwords with signs is found, whole."""

from __future__ import annotations

import pytest

from support.parts import program
from unit.spellings.programs import count_readable, list_programs, make_passwords, redact

PROGRAMS = list_programs()


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_password_stays_readable(name: str) -> None:
    needed, way = PROGRAMS[name]
    if needed:
        program(needed)
    values = make_passwords()
    assert count_readable(way(values), values, redact) == 0


def test_it_would_be_seen() -> None:
    """Without a search, all stay readable."""
    values = make_passwords(10)
    for name in ("python csv", "as Gson"):
        assert count_readable(
            PROGRAMS[name][1](values), values, lambda _value, record: record
        ) == len(values)
