"""Reading from stores: at once, in as many threads as a source allows, and each by itself when one
fails.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import pytest

from sealpipe.errors import PayloadTooLargeError, PluginError, SecretNotFoundError, UnavailableError
from sealpipe.plugin import Context, Document, Locator, Source
from sealpipe.registry.fetching import MAX_CALLS, MAX_STORES, fetch_all

PATIENCE = 20
"""Seconds after which calls that should run at once, and do not, fail their test."""


class Watched(Source):
    """Notes which thread reads what; `meets` calls have to be under way before any of them ends."""

    meets = 1
    concurrency = 1

    def __init__(self, together: threading.Barrier | None = None) -> None:
        super().__init__(None, Context("watched", environ={}))
        self.together = together or threading.Barrier(self.meets)
        self.threads: dict[str, int] = {}

    def fetch(self, locator: Locator) -> Document:
        self.threads[locator.body] = threading.get_ident()
        self.together.wait(PATIENCE)
        return Document(locator.body)


def locators(name: str, count: int) -> list[Locator]:
    return [Locator(name, str(number), (), f"{name}:{number}") for number in range(count)]


def contents(answers: dict[Locator, Document | PluginError]) -> dict[str, Any]:
    return {str(locator): getattr(answer, "content", answer) for locator, answer in answers.items()}


def test_one_call_needs_no_thread() -> None:
    source = Watched()
    fetch_all(lambda _: source, {"one": locators("one", 5)})
    assert set(source.threads.values()) == {threading.get_ident()}


def test_as_many_calls_run_at_once_as_the_source_allows_and_no_more() -> None:
    class Three(Watched):
        meets = concurrency = 3

    source = Three()
    answers = fetch_all(lambda _: source, {"three": locators("three", 12)})
    assert contents(answers) == {f"three:{number}": str(number) for number in range(12)}
    assert len(set(source.threads.values())) == 3


@pytest.mark.parametrize(
    ("asked", "most"), [(10_000, MAX_CALLS), (0, 1), (-1, 1), ("many", 1), (2.5, 1), (None, 1)]
)
def test_what_a_source_asks_for_is_kept_within_bounds(asked: Any, most: int) -> None:
    class Odd(Watched):
        meets = most
        concurrency = asked

    source = Odd()
    assert len(fetch_all(lambda _: source, {"odd": locators("odd", most * 3)})) == most * 3
    assert len(set(source.threads.values())) == most


def test_a_batch_is_asked_once_whatever_it_allows() -> None:
    class Batch(Watched):
        concurrency = 8
        asked: ClassVar[list[int]] = []

        def fetch_many(self, locators: Sequence[Locator]) -> dict[Locator, Document | PluginError]:
            self.asked.append(len(locators))
            return {locator: Document("x") for locator in locators}

    source = Batch()
    assert len(fetch_all(lambda _: source, {"batch": locators("batch", 20)})) == 20
    assert source.asked == [20]


def test_stores_are_read_at_the_same_time_up_to_a_bound() -> None:
    together = threading.Barrier(MAX_STORES)
    sources = {f"store{number}": Watched(together) for number in range(2 * MAX_STORES)}
    answers = fetch_all(sources.__getitem__, {name: locators(name, 1) for name in sources})
    assert contents(answers) == {f"{name}:0": "0" for name in sources}
    assert (
        len({ident for source in sources.values() for ident in source.threads.values()})
        == MAX_STORES
    )


def failing(error: BaseException) -> Callable[[], Source]:
    class Fails(Watched):
        def fetch(self, locator: Locator) -> Document:
            raise error if locator.body else AssertionError

    return Fails


class Unmade(Watched):
    def __init__(self) -> None:
        raise SecretNotFoundError("it cannot be made", remedy="do not")


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (Unmade, "it cannot be made"),
        (failing(SecretNotFoundError("there is none")), "there is none"),
        (failing(UnavailableError("later")), "later"),
        (failing(RuntimeError("c4nary")), "the source bad raised an unexpected RuntimeError"),
        (failing(SystemExit("c4nary")), "the source bad raised an unexpected SystemExit"),
        (failing(MemoryError()), "the source bad raised an unexpected MemoryError"),
    ],
)
def test_a_store_that_fails_takes_nothing_from_another(
    make: Callable[[], Source], reason: str
) -> None:
    made: dict[str, Callable[[], Source]] = {"bad": make, "good": Watched, "fine": Watched}
    answers = fetch_all(lambda name: made[name](), {name: locators(name, 2) for name in made})
    told = contents(answers)
    assert [told[f"{name}:{number}"] for name in ("good", "fine") for number in range(2)] == [
        "0",
        "1",
        "0",
        "1",
    ]
    where = r" at test_fetching\.py:\d+" if "unexpected" in reason else ""
    for number in range(2):
        error = answers[locators("bad", 2)[number]]
        assert isinstance(error, PluginError)
        assert re.fullmatch(re.escape(reason) + where, error.message)
        assert error.locator.startswith("bad:")
        assert error.__cause__ is error.__context__ is error.__traceback__ is None


def test_one_that_fails_takes_nothing_from_those_beside_it() -> None:
    class Some(Watched):
        concurrency = 4

        def fetch(self, locator: Locator) -> Document:
            if int(locator.body) % 2:
                raise SecretNotFoundError("odd", locator=locator.text)
            return Document(locator.body)

    answers = contents(fetch_all(lambda _: Some(), {"some": locators("some", 6)}))
    assert [str(answers[f"some:{number}"]) for number in range(6)] == [
        "0",
        "odd",
        "2",
        "odd",
        "4",
        "odd",
    ]


def test_too_much_stops_everything() -> None:
    with pytest.raises(PayloadTooLargeError):
        fetch_all(
            lambda _: failing(PayloadTooLargeError("too much"))(),
            {"big": locators("big", 1), "other": locators("other", 1)},
        )


def test_a_shared_error_is_reported_for_each_reference() -> None:
    answers = fetch_all(lambda _: Unmade(), {"bad": locators("bad", 3)})
    told = [
        (answer.locator, answer.remedy)
        for answer in answers.values()
        if isinstance(answer, PluginError)
    ]
    assert told == [("bad:0", "do not"), ("bad:1", "do not"), ("bad:2", "do not")]


@pytest.mark.parametrize("calls", [1, 4])
def test_an_outage_costs_the_deadline_once(calls: int) -> None:
    """However many references a slow store has: once the time is over, those that are left are
    answered.
    """
    asked: list[str] = []

    class Slow(Watched):
        concurrency = calls

        def fetch(self, locator: Locator) -> Document:
            asked.append(locator.body)
            time.sleep(0.2)
            raise UnavailableError("no answer", locator=locator.text, retry_after=7)

    answers = fetch_all(lambda _: Slow(), {"slow": locators("slow", 40)}, 0.3)
    assert calls <= len(asked) <= 2 * calls  # a busy machine is late for the second
    told = [answer for answer in answers.values() if isinstance(answer, UnavailableError)]
    assert [answer.locator for answer in told] == [f"slow:{number}" for number in range(40)]
    assert {(answer.message, answer.retry_after) for answer in told} == {("no answer", 7)}


def test_a_store_that_answers_is_asked_after_the_deadline() -> None:
    """Only an outage stops the asking: neither slowness nor what another store does."""

    class Down(Watched):
        def fetch(self, locator: Locator) -> Document:
            raise UnavailableError("no answer", locator=locator.text)

    made: dict[str, Callable[[], Source]] = {"down": Down, "good": Watched}
    answers = contents(
        fetch_all(lambda name: made[name](), {name: locators(name, 3) for name in made}, 0.0)
    )
    assert [answers[f"good:{number}"] for number in range(3)] == ["0", "1", "2"]


def test_without_a_deadline_every_reference_is_asked_for() -> None:
    asked: list[str] = []

    class Down(Watched):
        def fetch(self, locator: Locator) -> Document:
            asked.append(locator.body)
            raise UnavailableError("no answer", locator=locator.text)

    fetch_all(lambda _: Down(), {"down": locators("down", 5)})
    assert asked == ["0", "1", "2", "3", "4"]
