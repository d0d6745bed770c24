"""Request, answer, collect, by the real command line, into every backend that there is a sink
for.
"""

from __future__ import annotations

import pytest

from support.job import Job
from support.storing import NAMES, Into, asked, asked_at_once

STORES = pytest.mark.parametrize("name", NAMES)


@STORES
def test_a_submission_is_stored_once_and_the_request_expires(
    name: str, job: Job, into: Into, group: str
) -> None:
    place, request = into(name), asked(job)
    answer = request.answer()
    done = request.stores(*place.single(group), more=("--after", "expire"))
    assert place.there(group) == answer.values()
    assert (request.is_over(), request.deletes(), request.submissions()) == (True, 1, 1)
    told = "stored, not read back" if place.blind else "stored"
    assert [line.rpartition("\t")[2] for line in done.out.splitlines()] == [told] * len(
        place.single(group)
    )


@STORES
def test_existing_values_are_replaced_only_on_request(
    name: str, job: Job, into: Into, group: str
) -> None:
    place, first, second = into(name), asked_at_once(job, "first.json"), asked_at_once(job)
    theirs, ours = first.answer(), second.answer()
    first.stores(*place.single(group))
    before = place.writes(group)
    done = second.stores(*place.single(group), more=("--after", "expire"), code=14)
    assert "already" in done.err
    assert "kept the ciphertext in" in done.err
    assert (place.there(group), place.writes(group)) == (theirs.values(), before)
    assert (second.is_over(), second.deletes()) == (False, 0)

    second.stores(*place.single(group), more=("--mode", "replace", "--after", "expire"))
    assert place.there(group) == ours.values()
    assert second.is_over()


@pytest.mark.parametrize("name", ["vault", "github-secret", "dotenv"])
def test_a_dry_run_says_what_would_go_where_and_leaves_everything_as_it_is(
    name: str, job: Job, into: Into, group: str
) -> None:
    place, request = into(name), asked_at_once(job)
    request.answer()
    done = request.stores(*place.single(group), more=("--dry-run", "--after", "expire"))
    assert done.out.count("\twould ") == len(place.single(group))
    assert place.there(group) == {}
    assert (request.is_over(), job.left()) == (False, [])


@pytest.mark.parametrize("name", ["vault", "aws-sm", "aws-ssm", "keyring", "dir"])
def test_each_of_several_has_a_place_of_its_own(
    name: str, job: Job, into: Into, group: str
) -> None:
    place, request = into(name), asked_at_once(job)
    request.answer()
    request.answer()
    done = request.stores(
        *place.each(group), more=("--pick", "each", "--after", "expire", "--output", "json")
    )
    assert len(done.json["stored"]) == 2 * len(place.each(group))
    assert {row["already"] for row in done.json["stored"]} == {False}
    markers = [row["marker"] for row in done.json["submissions"]]
    assert len({*markers}) == 2
    assert {row["submission"] for row in done.json["stored"]} == {*markers}
