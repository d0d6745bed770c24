"""What somebody typed goes to the backend that it is for, and shows nowhere else: one real process
under strace.
"""

from __future__ import annotations

import pytest

from cli.leaks.stored import found_in
from support.commands import SEALPIPE
from support.job import Job
from support.storing import NAMES, Asked, Into, asked_at_once
from support.strace import Watched, watch


def watched(request: Asked, *words: str) -> Watched:
    """The collecting, every byte of it."""
    return watch(request.job.terminal, [*SEALPIPE, *words])


@pytest.mark.parametrize("name", NAMES)
def test_a_value_goes_to_its_backend_and_nowhere_else(
    name: str, job: Job, into: Into, group: str
) -> None:
    place, request = into(name), asked_at_once(job)
    given = request.answer()
    seen = watched(request, *request.words(*place.single(group)), "--after", "expire")
    assert seen.done.code == 0, seen.done
    assert place.there(group) == given.values()
    found = found_in(seen, place, given)
    assert found["elsewhere"] == set()
    # Secret Service encrypts what goes over the bus; GitHub's is sealed before it goes.
    if name != "keyring":
        assert ("password" in found["there"]) is (name != "github-secret")
    assert seen.executed == []


@pytest.mark.parametrize("more", [(), ("--dry-run",), ("--output", "json")], ids=" ".join)
def test_where_something_else_is_the_value_does_not_even_go_there(
    more: tuple[str, ...], job: Job, into: Into, group: str
) -> None:
    place, first, request = into("vault"), asked_at_once(job, "first.json"), asked_at_once(job)
    first.answer()
    first.stores(*place.single(group))
    given = request.answer()
    seen = watched(request, *request.words(*place.single(group)), *more)
    assert seen.done.code == (0 if "--dry-run" in more else 14), seen.done
    found = found_in(seen, place, given)
    assert found["elsewhere"] == set()
    assert found["there"] <= {"VAULT_TOKEN"}
