"""What the store decides, with a clock that the test moves."""

from __future__ import annotations

import pytest

from sealpipe_service.database import decisions
from sealpipe_service.database.access import InFlightError
from sealpipe_service.database.decisions import (
    MOST_WAITING,
    NOTICES_AN_HOUR,
    Access,
    OtherBodyError,
    QuotaError,
)
from service.database.stores import CIPHERTEXT, HOUR, PLAN, TOKEN, VERIFIER, World, digest, run_text


def test_a_share_of_two_views_opens_twice_and_has_ended_then(world: World) -> None:
    code = world.share(access_counts_left=2)
    for left in (1, 0):
        opening = world.open(code)
        assert opening.reason is None
        assert opening.share is not None
        assert (opening.share["access_counts_left"], opening.share["data"]) == (left, CIPHERTEXT)
    assert world.open(code).reason == "views"
    assert world.counted() == (0, 1)


def test_a_share_without_a_limit_opens_as_often_as_one_likes(world: World) -> None:
    code = world.share()
    assert [world.open(code).reason for _ in range(3)] == [None] * 3
    assert world.store.stats("acme")[2] == {"2027-01-15": 3}


def test_without_the_token_a_share_does_not_exist(world: World) -> None:
    code = world.share(access_counts_left=1)
    assert world.store.open_share(code, digest("other"), None, None).reason == "not-found"
    assert world.store.open_share("none", digest(TOKEN), None, None).reason == "not-found"
    assert world.open(code).reason is None


def test_wrong_passcodes_spend_attempts_and_no_view(world: World) -> None:
    code = world.share(
        access_counts_left=1,
        passcode_verifier_sha256=digest(VERIFIER),
        passcode_attempts_left=2,
    )
    wrong = world.open(code, "wrong")
    assert wrong.reason == "passcode"
    assert wrong.share is not None
    assert (wrong.share["passcode_attempts_left"], wrong.share["access_counts_left"]) == (1, 1)
    assert world.open(code).reason == "passcode"
    assert world.open(code, VERIFIER).reason == "attempts"
    assert world.counted() == (0, 1)


def test_the_right_passcode_opens(world: World) -> None:
    code = world.share(passcode_verifier_sha256=digest(VERIFIER))
    assert world.open(code, VERIFIER).reason is None


def test_an_expired_share_has_ended_before_anybody_sweeps(world: World) -> None:
    code = world.share(expires=world.clock.now + HOUR)
    kept = world.share()
    world.clock.pass_by(HOUR)
    assert world.open(code).reason == "time"
    assert not world.delete(code)
    assert world.counted() == (1, 1)
    total, rows = world.store.page("shares", "acme", most=10, skipped=0)
    assert (total, [row["short_code"] for row in rows]) == (1, [kept])


def test_sweeping_ends_what_has_expired_and_tells_of_it_once(world: World) -> None:
    code = world.share(expires=world.clock.now + HOUR, notify_on='["expired"]')
    world.request()
    world.clock.pass_by(HOUR)
    assert [row["short_code"] for row in world.store.sweep()] == [code]
    assert list(world.store.sweep()) == []
    assert world.counted() == (0, 1)
    total, rows = world.store.page("shares", "acme", most=10, skipped=0, ended=True)
    assert (total, [row["short_code"] for row in rows]) == (1, [code])
    assert world.store.page("requests", "acme", most=10, skipped=0, ended=True)[0] == 1


def test_an_ended_share_has_no_ciphertext_after_an_hour(world: World) -> None:
    code = world.share(access_counts_left=1)
    world.open(code)
    world.store.sweep()
    assert world.has_ciphertext(code)
    world.clock.pass_by(HOUR)
    world.store.sweep()
    row, reason = world.store.share_at_link(code)
    assert row is not None
    assert (world.has_ciphertext(code), row["title"], reason) == (False, None, "views")


@pytest.mark.parametrize(("plan", "days"), [("business", 90), ("enterprise", 365)])
def test_access_logs_go_when_the_plan_of_the_space_keeps_them_no_longer(
    world: World, plan: str, days: int
) -> None:
    world.store.change_account("acme", PLAN, lambda now: {**now, "plan": plan}, at_once=True)
    code = world.share()
    opened = world.open(code, access=Access("192.0.2.7", "web", None)).share
    assert opened is not None
    number = opened["number"]
    bounds = {"before": 2**62, "since": 0.0, "until": 1e12}
    world.clock.pass_by(days * 24 * HOUR - 1)
    world.store.sweep()
    assert len(world.store.accesses(number, bounds, 9)) == 1
    world.clock.pass_by(1)
    world.store.sweep()
    assert world.store.accesses(number, bounds, 9) == []


def test_a_share_is_deleted_once_and_its_event_queued_for_each_endpoint(world: World) -> None:
    code = world.share()
    assert world.delete(code)
    assert not world.delete(code)
    assert world.open(code).reason == "deleted"
    assert world.store.share("acme", code) is None


def test_what_refuses_at_the_last_moment_leaves_a_share_as_it_was(world: World) -> None:
    code = world.share()

    def refuse() -> None:
        raise LookupError

    with pytest.raises(LookupError):
        world.store.delete_share("acme", code, b"{}", lambda *_: True, refuse)
    assert world.counted() == (1, 0)
    assert world.open(code).reason is None


def test_so_many_deliveries_wait_for_an_endpoint_and_what_is_dropped_is_logged(
    address: str, shared: World, caplog: pytest.LogCaptureFixture
) -> None:
    shared.mail()
    (mail,) = shared.store.mail()
    body = "'x'::bytea" if address.startswith("postgresql:") else "x'00'"
    run_text(
        address,
        "INSERT INTO deliveries (webhook, body, created_at, attempts, due, state) "  # noqa: S608
        f"WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < {MOST_WAITING}) "
        f"SELECT '{mail['id']}', {body}, 0, 0, 1e12, 'waiting' FROM n",
    )

    def submit(owner: str = "acme") -> int:
        """Let a submission be told; return how many were dropped until now."""
        assert shared.submit(shared.request(owner=owner)) is not None, "it is there in any case"
        return len(caplog.records)

    assert [submit() for _ in range(3)] == [0, 1, 2]
    waiting = [row for row in shared.store.deliveries() if row["state"] == "waiting"]
    assert len(waiting) == MOST_WAITING
    dropped = f"{MOST_WAITING} deliveries wait for {mail['id']}: one more was dropped"
    assert {record.getMessage() for record in caplog.records} == {dropped}
    shared.mail("other")
    assert submit("other") == 2, "another endpoint has its own"


def test_each_event_that_a_share_asks_for_has_its_notice(world: World) -> None:
    world.mail()
    world.mail("other")
    guarded = {"passcode_verifier_sha256": digest(VERIFIER), "expires": world.clock.now + HOUR}
    code = world.share(notify_on='["viewed", "denied", "expired"]', **guarded)
    world.open(code, "wrong")
    world.open(code, VERIFIER)
    gone, silent = world.share(notify_on='["deleted"]'), world.share()
    for each in (gone, silent):
        world.open(each)
        world.delete(each)
    form = world.request()
    world.submit(form)
    world.clock.pass_by(HOUR)
    world.store.sweep()
    of_code = [(event, code) for event in ("denied", "viewed")]
    assert world.notices() == [
        *of_code,
        ("deleted", gone),
        ("submitted", form),
        ("expired", code),
    ]


def test_who_has_a_link_fills_no_mailbox(world: World) -> None:
    world.mail()
    one, two = (world.share(notify_on='["viewed"]') for _ in range(2))
    for _ in range(NOTICES_AN_HOUR + 2):
        world.open(one)
    world.open(two)
    of_two = ("viewed", two)
    assert world.notices() == [*[("viewed", one)] * NOTICES_AN_HOUR, of_two], "each has its own"
    world.clock.pass_by(HOUR / NOTICES_AN_HOUR)
    for _ in range(2):
        world.open(one)
    assert world.notices()[NOTICES_AN_HOUR:] == [of_two, ("viewed", one)]


@pytest.mark.parametrize("title", ["\0", "\x1a", "a\x1a0\0\x1a\x1a1b", "\U0001f511 %s %(x)s ' \\"])
def test_text_is_kept_as_it_is(world: World, title: str) -> None:
    row, _ = world.store.share_at_link(world.share(title=title))
    assert row is not None
    assert row["title"] == title


def test_what_is_true_is_one(world: World) -> None:
    row = world.request_row(world.request(requires_login=True, requires_mfa=False))
    assert (row["requires_login"], row["requires_mfa"]) == (1, 0)


def test_a_share_of_another_space_is_not_there(world: World) -> None:
    code = world.share(space="other")
    assert not world.delete(code)
    assert world.store.share("acme", code) is None
    assert world.store.share("other", code) is not None


def test_a_request_expires_and_is_then_deleted_with_its_submissions(world: World) -> None:
    code = world.request()
    number = world.request_row(code)["number"]
    assert world.submit(code) is not None
    assert world.end_request(code) == "expired"
    assert world.submit(code) is None
    assert len(world.store.submissions(number)) == 1
    assert world.end_request(code) == "deleted"
    assert world.store.submissions(number) == []
    assert world.end_request(code) is None
    assert world.store.page("requests", "acme", most=10, skipped=0, ended=True)[0] == 0


def test_a_request_that_expired_by_itself_is_deleted_at_once(world: World) -> None:
    code = world.request()
    world.clock.pass_by(HOUR)
    assert world.end_request(code) == "deleted"
    assert world.store.page("requests", "acme", most=10, skipped=0)[0] == 0


def test_a_request_takes_as_many_submissions_and_opens_as_often_as_it_says(world: World) -> None:
    code = world.request(max_submission=2, access_counts_left=1)
    assert [world.submit(code) is not None for _ in range(3)] == [True, True, False]
    number = world.request_row(code)["number"]
    assert [world.store.open_form(number) is not None for _ in range(2)] == [True, False]


def test_all_submissions_of_a_request_are_no_longer_than_an_answer_may_be(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decisions, "MOST_OF_REQUEST", 2 * len(CIPHERTEXT))
    code = world.request(max_submission=3)
    assert world.submit(code)
    assert world.submit(code)
    with pytest.raises(QuotaError):
        world.submit(code)
    row = world.request_row(code)
    assert (row["received"], len(world.store.submissions(row["number"]))) == (2, 2)
    assert world.submit(world.request(max_submission=1)), "another has its own"


def test_a_space_has_as_many_usable_shares_as_its_plan_allows(world: World) -> None:
    first = world.share(most=2)
    world.share(most=2, expires=world.clock.now + HOUR)
    with pytest.raises(QuotaError):
        world.share(most=2)
    assert world.counted() == (2, 0)
    world.clock.pass_by(HOUR)
    world.share(most=2)  # one has expired
    world.delete(first)
    world.share(most=2)
    with pytest.raises(QuotaError):
        world.share(most=2)


def test_a_code_that_is_taken_is_drawn_again(world: World) -> None:
    taken = world.share()
    codes = iter([taken, taken, "fresh"])
    world.code = lambda: next(codes)  # type: ignore[method-assign]
    assert world.share("by name") == "fresh"


def test_a_create_is_done_once_for_each_key_and_a_day(world: World) -> None:
    code = world.share("key")
    assert world.share("key") == code
    with pytest.raises(OtherBodyError), world.store.claim("k" * 16, "key", digest("other")):
        pass
    world.clock.pass_by(24 * HOUR)
    assert world.share("key") != code
    assert world.counted() == (2, 0)


def test_while_a_create_is_in_flight_its_key_is_taken(world: World) -> None:
    with world.store.claim("k" * 16, "key", digest("body")):
        for body, same in (("body", True), ("other", False)):
            with (
                pytest.raises(InFlightError) as refused,
                world.store.claim("k" * 16, "key", digest(body)),
            ):
                pass
            assert refused.value.same_body is same
        world.share("another key")
    world.share("key")  # what failed leaves no mark


def test_a_bucket_holds_two_minutes_and_refills_at_its_rate(world: World) -> None:
    def take() -> int:
        return world.store.take("k" * 16, 60, world.clock.now)

    assert [take() for _ in range(121)] == [0] * 120 + [1]
    world.clock.pass_by(1)
    assert [take(), take()] == [0, 1]
    world.clock.pass_by(-HOUR)  # a clock that was set back takes nothing, and gives nothing
    assert take() == 1
    world.clock.pass_by(2 * HOUR)
    assert [take() for _ in range(121)] == [0] * 120 + [1]


def test_calls_are_taken_all_or_none_and_the_wait_is_for_all_of_them(world: World) -> None:
    def take(amount: int) -> int:
        return world.store.take("k" * 16, 60, world.clock.now, amount)

    assert [take(100), take(50), take(20), take(50), take(1)] == [0, 30, 0, 50, 1]
    world.clock.pass_by(50)
    assert [take(50), take(1)] == [0, 1]


def test_a_call_that_comes_late_gives_no_time_back_to_a_bucket(world: World) -> None:
    now = world.clock.now
    taken = [world.store.take("k" * 16, 60, at) for at in (*[now] * 120, now + 2, now + 1, now + 2)]
    assert taken == [*[0] * 122, 1]


def plan_of(world: World) -> object:
    caller = world.store.caller("k" * 16)
    assert caller is not None
    return caller["account_plan"]


def change_plan(world: World, plan: str, *, at_once: bool = False) -> None:
    world.store.change_account("acme", PLAN, lambda row: {**row, "plan": plan}, at_once=at_once)


def test_calls_see_another_plan_after_thirty_seconds_and_no_later(world: World) -> None:
    world.key()
    assert plan_of(world) is None  # never set
    change_plan(world, "none")
    assert plan_of(world) == "business"
    world.clock.pass_by(20)
    change_plan(world, "enterprise")
    world.clock.pass_by(9.9)
    assert plan_of(world) == "business"
    world.clock.pass_by(0.1)
    assert plan_of(world) == "none"
    world.clock.pass_by(20)
    assert plan_of(world) == "enterprise"


def test_a_plan_can_be_seen_at_once_and_stays_so(world: World) -> None:
    world.key()
    change_plan(world, "none")
    change_plan(world, "enterprise", at_once=True)
    assert plan_of(world) == "enterprise"
    world.clock.pass_by(60)
    assert plan_of(world) == "enterprise"


def test_a_plan_allows_so_many_keys_and_a_revoked_one_is_free_at_once(world: World) -> None:
    assert world.key("a")
    assert not world.key("a")
    assert world.key("b")
    with pytest.raises(QuotaError):
        world.key("c")
    assert world.store.revoke("a" * 16)
    assert not world.store.revoke("a" * 16)
    assert world.key("c")


def test_a_key_says_once_a_minute_when_it_was_used(world: World) -> None:
    world.key()

    def use() -> object:
        caller = world.store.caller("k" * 16)
        assert caller is not None
        world.store.use("k" * 16, caller["now"], caller["last_used_at"])
        used = world.store.key("k" * 16)
        return None if used is None else used["last_used_at"]

    first = use()
    assert first == world.clock.now
    world.clock.pass_by(59)
    assert use() == first
    world.clock.pass_by(1)
    assert use() == world.clock.now
