"""A file that is edited in the middle of a batch: what is out stays as it is until it is
reissued.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.batch.share_batch import FILE as SHARE_FILE
from cli.batch.share_batch import REMIND, opened
from cli.batch.world import DAY, UNREACHABLE, BatchWorld, fail_with
from sealpipe.api.operation import Failure

REQUESTS = """
name = "vendors"
kind = "request"
rows = "rows.csv"
key = "name"

[request]
ask = ["pw=Staging password"]
title = "Staging"
max-submissions = 1
send = ["pigeon:{to}"]

[remind]
after = ["3d", "7d"]

[collect]
to = ["nest:vendors/{name}#password=pw"]
"""
SHARES = SHARE_FILE.replace("For {name}", "Old") + REMIND
ROWS = [{"name": "acme", "to": "acme.example"}]
EDITED = REQUESTS.replace("Staging", "Prod").replace("pigeon:{to}", "pigeon:other-{to}")


def begin(world: BatchWorld, text: str = REQUESTS) -> Path:
    path = world.write(text, ROWS)
    assert world.run(path).exit_code == 0
    return path


def test_a_reminder_goes_to_who_got_the_link_as_it_was_named(world: BatchWorld) -> None:
    path = begin(world)
    world.write(EDITED)
    assert world.actions(path) == {"acme": "changed"}
    world.wait(4 * DAY)
    world.run(path)
    world.act(path, "remind", "acme")
    assert world.messages("other-acme.example") == []
    subjects = [each.subject for each in world.messages("acme.example")]
    assert [("Staging" in each, "Prod" in each) for each in subjects] == [(True, False)] * 3


def test_what_was_asked_before_is_collected(world: BatchWorld) -> None:
    path = begin(world)
    world.write(EDITED)
    world.submit(world.code_of("acme.example"), {"Staging password": "s3cret"})
    world.wait(DAY)
    assert world.run(path).exit_code == 0
    assert world.loft.values == {"vendors/acme": {"password": "s3cret"}}


def test_a_reissue_asks_for_what_the_file_says_now(world: BatchWorld) -> None:
    path = begin(world)
    world.write(EDITED)
    world.run(path)
    world.act(path, "reissue", "acme")
    assert "Prod" in world.messages("other-acme.example")[-1].subject
    assert world.actions(path) == {"acme": "wait"}
    world.submit(world.code_of("other-acme.example"), {"Prod password": "s3cret"})
    world.wait(DAY)
    assert world.run(path).exit_code == 0
    assert world.loft.values == {"vendors/acme": {"password": "s3cret"}}


def test_a_target_for_another_prompt_is_told_and_can_be_corrected(world: BatchWorld) -> None:
    plain = REQUESTS.replace("pw=", "").replace("=pw", "=Staging password")
    path = begin(world, plain)
    world.write(plain.replace("Staging", "Prod"))
    world.submit(world.code_of("acme.example"), {"Staging password": "s3cret"})
    world.wait(DAY)
    assert world.run(path).exit_code == 18
    progress = world.progress(path, "acme")
    assert "the request has no prompt 'Prod password'" in progress.problem
    assert "write ask and [collect] in the file as this request needs them" in progress.remedy
    assert "reissue" not in progress.remedy
    world.write(plain)
    assert world.run(path).exit_code == 0
    assert world.loft.values == {"vendors/acme": {"password": "s3cret"}}


def test_times_targets_and_the_team_of_the_file_apply_at_once(world: BatchWorld) -> None:
    path = begin(world)
    later = REQUESTS.replace('["3d", "7d"]', '["1d"]').replace(
        "nest:vendors/{name}", "nest:{team}/{name}"
    )
    world.write(later + '\n[notify]\nsend = ["pigeon:team"]\n', [{**ROWS[0], "team": "red"}])
    world.wait(2 * DAY)
    world.run(path)
    assert (len(world.messages("acme.example")), len(world.messages("team"))) == (2, 1)
    world.submit(world.code_of("acme.example"), {"Staging password": "s3cret"})
    world.wait(DAY)
    assert world.run(path).exit_code == 0
    assert world.loft.values == {"red/acme": {"password": "s3cret"}}


def test_a_link_that_was_sent_to_nobody_reminds_nobody(world: BatchWorld) -> None:
    head, remind = REQUESTS.replace('send = ["pigeon:{to}"]\n', "").split("[remind]")
    path = begin(world, head + "[collect]" + remind.partition("[collect]")[2])
    world.write(REQUESTS)
    world.wait(4 * DAY)
    world.run(path)
    assert world.messages("acme.example") == []
    assert (world.progress(path, "acme").reminded, world.history(path, "acme")[-1]) == (
        0,
        "not reminded",
    )


def test_a_create_that_was_begun_is_finished_with_what_it_began(world: BatchWorld) -> None:
    world.after = lambda operation, response: (  # type: ignore[method-assign]
        Failure(sent=True, detail="reset") if operation.method == "POST" else response
    )
    path = world.write(REQUESTS, ROWS)
    world.run(path)
    del world.after
    world.write(EDITED)
    world.wait(3600)
    world.run(path)
    assert "Staging" in world.messages("acme.example")[-1].subject
    assert world.actions(path) == {"acme": "changed"}
    world.submit(world.code_of("acme.example"), {"Staging password": "s3cret"})
    world.wait(DAY)
    assert world.run(path).exit_code == 0
    assert world.loft.values == {"vendors/acme": {"password": "s3cret"}}


def test_a_row_that_was_corrected_before_it_is_out_stays_as_corrected(world: BatchWorld) -> None:
    world.before = fail_with(UNREACHABLE)  # type: ignore[method-assign]
    path = world.write(REQUESTS, [{**ROWS[0], "to": "wrong.example"}])
    world.run(path)
    del world.before
    world.write(REQUESTS, ROWS)
    world.wait(DAY)
    assert world.run(path).exit_code == 0
    world.write(EDITED)
    world.wait(4 * DAY)
    world.run(path)
    assert (len(world.messages("acme.example")), world.messages("other-acme.example")) == (2, [])


def test_a_run_tells_of_rows_that_the_file_no_longer_has(world: BatchWorld) -> None:
    path = world.write(
        REQUESTS, [{"name": name, "to": f"{name}.example"} for name in ("acme", "bolt", "core")]
    )
    assert world.run(path).warnings == ()
    world.submit(world.code_of("core.example"))
    world.wait(DAY)
    world.run(path)
    world.write(REQUESTS, [{**ROWS[0], "name": "dune"}])
    (warning,) = world.run(path).warnings
    assert warning.startswith("2 rows (acme, bolt) are not in the file any more: left alone")
    assert world.run(path).warnings == (), "it is the same file"


def test_a_run_tells_of_rows_that_another_file_says_else_of(world: BatchWorld) -> None:
    path = begin(world)
    world.write(EDITED)
    (warning,) = world.run(path).warnings
    assert (
        warning
        == "row acme is not as the file says now: what is out stays as it is until `batch reissue`"
    )
    world.write(REQUESTS, [{**ROWS[0], "phone": "1"}])
    assert world.run(path).warnings == (), "a column that nothing names changes nothing"


@pytest.mark.parametrize(("before", "after", "outcome"), [(1, 3, "opened"), (3, 1, "unknown")])
def test_views_mean_what_they_meant_when_the_share_was_made(
    world: BatchWorld, before: int, after: int, outcome: str
) -> None:
    path = begin(world, SHARES.replace("title", f"views = {before}\ntitle"))
    world.write(SHARES.replace("title", f"views = {after}\ntitle").replace("Old", "New"))
    for _ in range(before):
        assert opened(world, "acme.example") == 200
    world.wait(DAY)
    world.run(path)
    assert world.progress(path, "acme").outcome == outcome


def test_a_share_is_reminded_where_it_was_sent(world: BatchWorld) -> None:
    path = begin(world, SHARES)
    world.write(SHARES.replace("pigeon:{to}", "pigeon:other-{to}").replace("Old", "New"))
    world.wait(3 * DAY)
    world.run(path)
    assert world.messages("other-acme.example") == []
    first, second = world.messages("acme.example")
    assert (first.secret, second.subject) == (second.secret, "Reminder: A secret for you: Old")
