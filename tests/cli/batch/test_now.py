"""Collecting now, whatever the schedule says: by `collect`, and by a run that a person waits for.

And what is asked for by hand while another process runs the batches of an embedded database.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest

from cli.batch.pigeons import LOST
from cli.batch.request_batch import FILE, MANY, ROWS
from cli.batch.share_batch import FILE as SHARES
from cli.batch.share_batch import REMIND, opened
from cli.batch.world import DAY, UNREACHABLE, BatchWorld, fail_with
from sealpipe.batch.database.records import SECOND, Effect, make_batch_row
from sealpipe.batch.engine import actions, wishes
from sealpipe.batch.engine.actions import Outcome, Verb, act, serving_hands
from sealpipe.batch.engine.advance import Engine
from sealpipe.batch.engine.looks import Looks, choose_looks
from sealpipe.batch.engine.session import open_engine
from sealpipe.batch.engine.sync import restore_definition
from sealpipe.batch.steps.states import Step
from sealpipe.errors import UsageError


def begin(world: BatchWorld, *submitted: str) -> Path:
    """Run a batch of three rows, of which the next look is an hour away; some have submissions."""
    path = world.write(FILE, ROWS)
    world.run(path)
    world.wait(2 * DAY)
    world.run(path)
    world.wait(60)
    for name in submitted:
        world.submit(world.code_of(f"{name}.example"))
    return path


def look_count(world: BatchWorld) -> int:
    return sum(path.endswith("/submissions") for _, path in world.network.log)


def whats(outcomes: list[Outcome]) -> dict[str, list[str]]:
    return {each.key: [change.what for change in each.changes] for each in outcomes}


# -- collect


def test_a_run_leaves_a_row_until_its_time_and_collect_does_not(world: BatchWorld) -> None:
    path = begin(world, "acme")
    assert (world.run(path).changes, world.states(path)["acme"]) == ([], "waiting")
    (outcome,) = world.act(path, "collect", "acme")
    assert (whats([outcome]), outcome.problem, outcome.state) == (
        {"acme": ["collected"]},
        "",
        "done",
    )
    assert world.states(path) == {"acme": "done", "bolt": "waiting", "core": "waiting"}


def test_without_a_key_all_that_wait_are_looked_at(world: BatchWorld) -> None:
    path = begin(world, "acme", "core")
    outcomes = world.act(path, "collect")
    assert whats(outcomes) == {"acme": ["collected"], "bolt": [], "core": ["collected"]}
    assert [each.state for each in outcomes] == ["done", "waiting", "done"]
    assert look_count(world) >= 3
    assert world.act(path, "collect", "bolt")[0].state == "waiting"


def test_collect_reminds_nobody_though_a_reminder_is_due(world: BatchWorld) -> None:
    path = begin(world)
    world.wait(2 * DAY)
    world.act(path, "collect")
    assert len(world.loft.messages) == 3
    world.run(path)
    assert len(world.loft.messages) == 6, "the run that is due then does it"


@pytest.mark.parametrize(
    ("verb", "problem", "remedy"),
    [
        ("collect", "it is done already", "`sealpipe batch status vendors` shows each row"),
        (
            "cancel",
            "it is cancelled already",
            "`sealpipe batch reissue vendors acme` asks again, with a new link",
        ),
    ],
)
def test_a_row_that_is_over_says_so(
    world: BatchWorld, verb: Verb, problem: str, remedy: str
) -> None:
    path = begin(world, "acme")
    world.act(path, verb, "acme")
    (outcome,) = world.act(path, "collect", "acme")
    assert (outcome.problem, outcome.remedy) == (problem, remedy)


def test_a_row_whose_link_is_not_out_says_so(world: BatchWorld) -> None:
    path = world.write(FILE, ROWS)
    world.before = fail_with(UNREACHABLE)  # type: ignore[method-assign]
    world.run(path)
    del world.before
    (outcome,) = world.act(path, "collect", "acme")
    assert outcome.problem == "it is failed: its link is not out"
    assert world.act(path, "collect") == []


def test_nothing_is_collected_for_a_row_that_the_file_lost(world: BatchWorld) -> None:
    path = begin(world, "acme")
    world.write(FILE, ROWS[1:])
    world.run(path)
    (outcome,) = world.act(path, "collect", "acme")
    assert outcome.problem == "the file no longer has this row: nothing is collected for it"
    assert [each.key for each in world.act(path, "collect")] == ["bolt", "core"]
    assert world.states(path)["acme"] == "waiting"


def test_an_unknown_row_or_batch_names_the_nearest(world: BatchWorld) -> None:
    path = begin(world)
    with pytest.raises(UsageError, match="batch vendors has no row 'acne'") as refused:
        world.act(path, "collect", "acne")
    assert refused.value.remedy == "did you mean acme?"
    with pytest.raises(UsageError, match="there is no batch 'vendor'") as refused:
        open_engine(world.session(), world.store, "vendor")
    assert refused.value.remedy == "did you mean vendors?"


def test_nobody_submits_to_a_share(world: BatchWorld) -> None:
    path = world.write(SHARES + REMIND, ROWS)
    world.run(path)
    with pytest.raises(UsageError, match="are shares: nobody submits anything"):
        world.act(path, "collect")


@pytest.mark.parametrize("beside", ["alone", "beside another process"])
def test_a_service_that_does_not_answer_is_not_asked_for_every_row(
    world: BatchWorld, beside: str
) -> None:
    path = world.write(FILE, MANY)
    world.run(path)
    asked: list[object] = []

    def refuse(operation: object) -> object:
        asked.append(operation)
        return fail_with(UNREACHABLE)(operation)  # type: ignore[arg-type]

    world.before = refuse  # type: ignore[assignment]
    with nullcontext() if beside == "alone" else another_process(world):
        outcomes = world.act(path, "collect")
    assert len(asked) < len(MANY)
    assert all(each.problem for each in outcomes)
    assert outcomes[-1].problem.startswith("not looked at: ")
    assert world.states(path)["v19"] == "waiting"


def test_a_row_that_has_ended_without_a_submission_says_so(world: BatchWorld) -> None:
    path = begin(world)
    world.wait(31 * DAY)
    (outcome,) = world.act(path, "collect", "acme")
    assert (whats([outcome]), outcome.state) == ({"acme": ["expired"]}, "expired")
    assert outcome.problem == "nobody has submitted before it ended"
    assert "sealpipe batch reissue vendors acme" in outcome.remedy


def test_a_row_that_a_run_collects_meanwhile_is_no_failure_unless_it_was_named(
    world: BatchWorld,
) -> None:
    path = begin(world, "core")

    def be_faster(outcome: Outcome) -> None:
        if outcome.key == "acme":
            world.act(path, "collect", "core")

    outcomes = act(world.engine(path), "collect", [], be_faster)
    assert [(each.key, each.state, each.problem) for each in outcomes] == [
        ("acme", "waiting", ""),
        ("bolt", "waiting", ""),
        ("core", "done", ""),
    ]


def test_a_blocked_row_that_fails_meanwhile_says_again_what_blocks_it(world: BatchWorld) -> None:
    path = world.write(FILE, ROWS[:1])
    world.loft.down["acme.example"] = LOST
    world.run(path)
    before = world.progress(path, "acme")
    assert (world.states(path)["acme"], len(before.unclear)) == ("blocked", 1)
    world.before = fail_with(UNREACHABLE)  # type: ignore[method-assign]
    world.act(path, "collect", "acme")
    assert world.states(path)["acme"] == "failed"
    del world.before
    world.act(path, "collect", "acme")
    after = world.progress(path, "acme")
    assert world.states(path)["acme"] == "blocked"
    assert before.problem.startswith(after.problem)
    assert "may or may not have arrived" in after.problem
    assert (after.unclear, after.remedy, after.exit_code) == (before.unclear, before.remedy, 18)


def test_a_row_is_waited_for_until_its_worker_has_ended_its_step(world: BatchWorld) -> None:
    path = begin(world, "acme")
    engine, row = world.engine(path), world.rows(path)["acme"]
    held = engine.store.take(engine.batch, row.id)
    assert held is not None
    threading.Timer(0.3, engine.store.give_back, [held]).start()
    assert whats(world.act(path, "collect", "acme")) == {"acme": ["collected"]}


# -- a run for a person


def test_a_run_for_a_person_looks_at_what_was_not_looked_at_for_half_a_minute(
    world: BatchWorld,
) -> None:
    path = begin(world, "acme")
    assert [change.what for change in world.run(path, looks="stale").changes] == ["collected"]
    world.submit(world.code_of("bolt.example"))
    world.wait(29)
    assert world.run(path, looks="stale").calls == 0
    world.wait(1)
    assert [change.what for change in world.run(path, looks="stale").changes] == ["collected"]


def test_a_run_for_a_person_takes_a_tenth_of_the_rate(world: BatchWorld) -> None:
    path = world.write(FILE, MANY)
    world.run(path)
    world.wait(120)

    def choose() -> Looks:
        world.store.rate.set_limit(60)
        chosen = choose_looks(world.engine(path), (), "stale")
        world.store.rate.set_limit(1_000_000)  # which is not waited for
        engine = world.engine(path)
        for row_id in chosen.rows:
            with engine.store.taking(engine.batch, row_id) as row:
                assert row is not None
                assert engine.look(row).step is Step.POLL
        return chosen

    # rows that are due are none of them
    assert choose() == ([], 0)
    later = world.store.now() + round(DAY) * SECOND
    world.store._database.read("UPDATE sealpipe_rows SET due_at = :later", later=later)
    first = choose()
    assert (len(first.rows), first.left) == (6, 14)
    assert choose() == ([], 14)
    world.wait(61)
    second = choose()  # the first six are due
    assert (len(second.rows), second.left) == (6, 8)
    assert not {*first.rows} & {*second.rows}, "first the rows that nobody has seen for longest"


def test_a_run_that_is_told_looks_at_every_waiting_row_now(world: BatchWorld) -> None:
    path = begin(world, "acme", "bolt")
    result = world.run(path, looks="all", only=["bolt"])
    assert [(change.key, change.what) for change in result.changes] == [("bolt", "collected")]
    result = world.run(path, looks="all")
    assert [(change.key, change.what) for change in result.changes] == [("acme", "collected")]
    world.run(path, looks="all")
    assert look_count(world) == 1


def test_a_run_that_is_told_sees_a_share_that_was_opened(world: BatchWorld) -> None:
    rows = [{"name": "acme", "system": "CRM", "to": "acme.example"}]
    path = world.write(SHARES + REMIND, rows)
    world.run(path)
    assert opened(world, "acme.example") == 200
    result = world.run(path, looks="all")
    assert [change.what for change in result.changes] == ["opened"]


# -- while another process runs the batches


@contextmanager
def another_process(world: BatchWorld, *, serves: bool = True) -> Iterator[list[str]]:
    """Hold the runner's lock as another process does, which has a connection of its own."""
    store, session, changes = world.open_store(), world.session(), list[str]()

    def make_engine(batch: object) -> Engine:
        return Engine(session, store, batch, restore_definition(batch))  # type: ignore[arg-type]

    def note(_: object, change: actions.Change) -> None:
        changes.append(f"{change.key}: {change.what}")

    try:
        with store.lock_runner():
            if serves:
                with serving_hands(store, make_engine, note):
                    yield changes
            else:
                yield changes
    finally:
        store.close()


def list_wishes(world: BatchWorld, engine: Engine) -> list[str]:
    found = world.store.effects.list(make_batch_row(engine.batch))
    return [each.state for each in found if each.name.startswith("wish/")]


def find_wish(world: BatchWorld, engine: Engine) -> Effect:
    found = world.store.effects.list(make_batch_row(engine.batch))
    (wish,) = (each for each in found if each.name.startswith("wish/"))
    return wish


def test_the_process_that_runs_the_batch_carries_out_what_is_asked_for(world: BatchWorld) -> None:
    path = begin(world, "acme", "core")
    engine = world.engine(path)
    with another_process(world) as changes:
        outcomes = act(engine, "collect", [])
        assert whats(outcomes) == {"acme": ["collected"], "bolt": [], "core": ["collected"]}
        assert whats(act(engine, "remind", ["bolt"])) == {"bolt": ["reminded"]}
        assert act(engine, "remind", ["acme"])[0].problem.startswith("it is done: there is nobody")
        assert whats(act(engine, "cancel", ["bolt"])) == {"bolt": ["cancelled"]}
        assert whats(act(engine, "reissue", ["bolt"])) == {
            "bolt": ["reissued", "created", "delivered"]
        }
    assert changes[:3] == ["acme: collected", "core: collected", "bolt: reminded"]
    assert list_wishes(world, engine) == []


def test_a_row_that_is_served_is_not_taken_by_the_run_itself(world: BatchWorld) -> None:
    path = begin(world)
    engine, row_id = world.engine(path), world.rows(path)["acme"].id
    store, session, taken = world.open_store(), world.session(), list[object]()

    def make_engine(batch: object) -> Engine:
        return Engine(session, store, batch, restore_definition(batch))  # type: ignore[arg-type]

    world.loft.after = lambda _: taken.append(store.take(engine.batch, row_id))
    with store.lock_runner(), serving_hands(store, make_engine):
        (outcome,) = act(engine, "remind", ["acme"])
    store.close()
    assert (whats([outcome]), outcome.problem) == ({"acme": ["reminded"]}, "")
    assert taken == [None]


def test_what_is_asked_for_crosses_processes_sealed(world: BatchWorld) -> None:
    path = begin(world)
    engine = world.engine(path)
    with another_process(world, serves=False):
        asking = wishes.ask(
            engine.store,
            engine.batch,
            "collect",
            {"acme": world.rows(path)["acme"].id},
            lambda *_: Outcome("acme"),
        )
        thread = threading.Thread(target=next, args=(asking,))
        thread.start()
        while not list_wishes(world, engine):
            pass
        raw = world.store._database.read("SELECT blob FROM sealpipe_effects WHERE row_id = ''")
        assert raw
        assert not any(b"acme" in blob or b"collect" in blob for (blob,) in raw)
    thread.join()


def test_the_command_does_it_itself_once_the_other_process_has_ended(world: BatchWorld) -> None:
    path = begin(world, "acme")
    engine = world.engine(path)
    outcomes: list[Outcome] = []
    thread = threading.Thread(target=lambda: outcomes.extend(act(engine, "collect", ["acme"])))
    with another_process(world, serves=False):
        thread.start()
        while not list_wishes(world, engine):
            pass
        assert outcomes == []
    thread.join()
    assert whats(outcomes) == {"acme": ["collected"]}
    assert list_wishes(world, engine) == []


def test_what_a_killed_process_had_begun_is_not_repeated(world: BatchWorld) -> None:
    """It was killed between its reminder and the record that it is done."""
    path = begin(world)
    engine = world.engine(path)
    outcomes: list[Outcome] = []
    thread = threading.Thread(target=lambda: outcomes.extend(act(engine, "remind", ["acme"])))
    owner = make_batch_row(engine.batch)
    with another_process(world, serves=False):
        thread.start()
        while not list_wishes(world, engine):
            pass
        wish = find_wish(world, engine)
        assert world.store.effects.begin(owner, wish.name, wish.content) is not None
    thread.join()
    assert [each.problem for each in outcomes] == [
        "the process that ran the batch ended in the middle of it"
    ]
    assert len(world.messages("acme.example")) == 1


def test_a_process_that_does_not_take_it_up_is_told_and_it_is_withdrawn(
    world: BatchWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wishes, "PATIENCE", 0.2)
    path = begin(world, "acme")
    engine = world.engine(path)
    with another_process(world, serves=False):
        (outcome,) = act(engine, "collect", ["acme"])
        assert outcome.problem.endswith("did not take it up: nothing was done")
        assert list_wishes(world, engine) == []
    assert world.states(path)["acme"] == "waiting"


def test_a_command_that_is_interrupted_withdraws_what_nobody_has_begun(
    world: BatchWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = begin(world, "acme")
    engine = world.engine(path)
    with another_process(world, serves=False):
        monkeypatch.setattr(wishes.time, "sleep", interrupt)
        with pytest.raises(KeyboardInterrupt):
            act(engine, "collect", [])
        assert list_wishes(world, engine) == []


def leave_a_wish(world: BatchWorld, path: Path) -> Engine:
    """A command asks to collect acme, and is killed."""
    engine = world.engine(path)
    rows = {"acme": world.rows(path)["acme"].id}
    with another_process(world, serves=False), pytest.MonkeyPatch.context() as patch:
        asking = wishes.ask(engine.store, engine.batch, "collect", rows, lambda *_: Outcome(""))
        patch.setattr(engine.store.effects, "remove", lambda _: False)
        patch.setattr(wishes.time, "sleep", interrupt)
        with pytest.raises(KeyboardInterrupt):
            next(asking)
    assert list_wishes(world, engine) == ["intent"]
    return engine


def interrupt(_: float) -> None:
    raise KeyboardInterrupt


def test_what_a_killed_command_asked_for_is_done_by_a_run_that_follows(world: BatchWorld) -> None:
    path = begin(world, "acme")
    engine = leave_a_wish(world, path)
    with another_process(world):
        wait_until(lambda: list_wishes(world, engine) == ["done"])
    assert world.states(path)["acme"] == "done"


def test_a_minute_later_nobody_does_it_any_more(world: BatchWorld) -> None:
    path = begin(world, "acme")
    engine = leave_a_wish(world, path)
    world.wait(61)
    owner = make_batch_row(engine.batch)
    with another_process(world):
        wait_until(lambda: world.store.effects.list(owner) == [])
    assert world.states(path)["acme"] == "waiting"


def test_nor_does_a_process_that_runs_already(
    world: BatchWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = begin(world, "acme")
    engine = leave_a_wish(world, path)
    cleared = threading.Event()
    monkeypatch.setattr(wishes, "_clear", lambda *_: cleared.set())
    world.wait(61)
    with another_process(world):
        assert cleared.wait(60)
        wait_until(lambda: list_wishes(world, engine) == [])
    assert world.states(path)["acme"] == "waiting"


def test_a_command_that_waits_for_an_hour_is_served(
    world: BatchWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wishes, "_SIGN_WAIT", 0.0)
    path = begin(world, "acme")
    engine = world.engine(path)
    outcomes: list[Outcome] = []
    thread = threading.Thread(target=lambda: outcomes.extend(act(engine, "collect", ["acme"])))
    with another_process(world, serves=False):
        thread.start()
        wait_until(lambda: list_wishes(world, engine) == ["intent"])
        world.wait(3600)
        wait_until(lambda: has_lived(world, engine))
    with another_process(world):
        thread.join()
    assert whats(outcomes) == {"acme": ["collected"]}


def has_lived(world: BatchWorld, engine: Engine) -> bool:
    """Whether the command has given a sign of life in the last minute."""
    found = world.store.effects.list(make_batch_row(engine.batch))
    (sign,) = (each for each in found if each.name.startswith("asking/"))
    return world.store.now() - int(sign.content["at"]) < 60 * SECOND


def test_a_command_waits_as_long_as_another_ones_row_takes(
    world: BatchWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = begin(world)
    engine = world.engine(path)
    begun, goes_on = threading.Event(), threading.Event()

    def carry_out(_: Verb, key: str, __: str) -> Outcome:
        begun.set()
        assert goes_on.wait(60)
        return Outcome(key, state="done")

    outcomes: list[Outcome] = []
    threads = [
        threading.Thread(target=lambda key=key: outcomes.extend(act(engine, "collect", [key])))
        for key in ("acme", "bolt")
    ]
    store = world.open_store()
    monkeypatch.setattr(wishes, "_SIGN_WAIT", 0.0)
    with store.lock_runner(), wishes.serving_wishes(store, lambda _: carry_out):
        threads[0].start()
        assert begun.wait(60)
        monkeypatch.setattr(wishes, "PATIENCE", 0.4)
        threads[1].start()
        threads[1].join(1)
        assert outcomes == []
        monkeypatch.setattr(wishes, "PATIENCE", 60)
        goes_on.set()
        for thread in threads:
            thread.join()
    store.close()
    assert sorted((each.key, each.state) for each in outcomes) == [
        ("acme", "done"),
        ("bolt", "done"),
    ]


def test_what_a_killed_process_had_begun_is_told_by_the_next_one(world: BatchWorld) -> None:
    """Which has the lock before the command that waits has found it free."""
    path = begin(world)
    engine = world.engine(path)
    outcomes: list[Outcome] = []
    thread = threading.Thread(target=lambda: outcomes.extend(act(engine, "remind", ["acme"])))
    owner = make_batch_row(engine.batch)
    with another_process(world, serves=False):
        thread.start()
        wait_until(lambda: list_wishes(world, engine) == ["intent"])
        wish = find_wish(world, engine)
        assert world.store.effects.begin(owner, wish.name, wish.content) is not None
        store = world.open_store()
        with wishes.serving_wishes(store, lambda _: fail):
            thread.join()
        store.close()
    assert [each.problem for each in outcomes] == [
        "the process that ran the batch ended in the middle of it"
    ]
    assert len(world.messages("acme.example")) == 1


def fail(*_: object) -> Outcome:
    raise ZeroDivisionError


def wait_until(is_so: Callable[[], bool]) -> None:
    pause = threading.Event()
    while not is_so():
        pause.wait(0.01)


def test_an_error_of_one_wish_stops_no_other(world: BatchWorld) -> None:
    path = begin(world, "acme")
    engine = world.engine(path)

    def fail(verb: Verb, key: str, _: str) -> Outcome:
        if key == "acme":
            raise ZeroDivisionError
        return Outcome(key, (), "", "", verb)

    store = world.open_store()
    with store.lock_runner(), wishes.serving_wishes(store, lambda _: fail):
        first, second = act(engine, "collect", ["acme", "bolt"])
    store.close()
    assert first.problem.startswith("sealpipe raised an unexpected ZeroDivisionError")
    assert second == Outcome("bolt", (), "", "", "collect")
    assert json.dumps(second.to_members())


def test_a_runner_waits_for_who_acts_by_hand_and_another_command_asks(world: BatchWorld) -> None:
    path = begin(world)
    ready = threading.Event()
    first, second = world.open_store(), world.open_store()
    with first.join_runner() as is_free, second.join_runner() as is_free_too:
        assert (is_free, is_free_too) == (True, False)
        done = threading.Thread(target=lambda: (ready.set(), world.run(path)))
        done.start()
        ready.wait()
        done.join(0.3)
        assert done.is_alive()
    done.join()
    first.close()
    second.close()


def test_a_runner_does_not_wait_until_all_rows_are_done_by_hand(
    world: BatchWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actions, "_TURN", 0.0)
    path = world.write(FILE, MANY)
    world.run(path)
    engine, is_over = world.engine(path), threading.Event()
    served: list[str] = []

    def run() -> None:
        with another_process(world) as changes:
            is_over.wait()
        served.extend(changes)

    thread = threading.Thread(target=run)

    def begin_to_wait(_: Outcome) -> None:
        if thread.ident is None:
            thread.start()

    outcomes = act(engine, "remind", [], begin_to_wait)
    is_over.set()
    thread.join()
    assert [whats([each]) for each in outcomes] == [
        {f"v{number:02}": ["reminded"]} for number in range(20)
    ]
    assert 0 < len(served) < 20
