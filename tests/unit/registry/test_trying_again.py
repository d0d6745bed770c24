"""Which answers of a source are asked for once more, when, and how often.

Nobody waits: the pauses are played.
"""

from __future__ import annotations

from typing import Any

import pytest

from sealpipe.budget import FIRST_BACKOFF, MAX_BACKOFF
from sealpipe.errors import PluginError, SecretNotFoundError, UnavailableError
from sealpipe.reference import parse_field
from sealpipe.registry import Registry
from sealpipe.sources.resolve import MAX_TRIES, Cache, resolve
from support.distributions import Site, of
from support.playing import play

ATTIC = """
asked = []
answers = {}

class It(Source):
    def fetch(self, locator):
        asked.append(locator.text)
        left = answers.get(locator.text, [])
        answer = left.pop(0) if left else None
        if isinstance(answer, Exception):
            raise answer
        return Document(answer or "value")
"""


class Attic:
    """The module of a source that answers what a test lays out for it, and then a value."""

    def __init__(self, site: Site) -> None:
        self.module = site.source("attic", ATTIC)
        self.other = site.source("other", ATTIC)
        self.registry = Registry()
        for name in ("attic", "other"):
            self.registry.source(name)  # imports it

    def lay_out(self, **answers: list[Any]) -> None:
        for name, answer in answers.items():
            source, _, body = name.partition("_")
            of(self.module if source == "attic" else self.other).answers[f"{source}:{body}"] = (
                answer
            )

    def resolve(
        self, *references: str, cache: Cache | None = None
    ) -> tuple[list[str], list[float]]:
        """The keys of the fields, and the pauses. Raises what `resolve` raises."""
        self.pauses: list[float] = []
        fields = [parse_field(text) for text in references]
        found = play(lambda: resolve(fields, lambda: self.registry, cache), wait=self.pauses.append)
        return [field.key for field in found], self.pauses

    @property
    def asked(self) -> list[str]:
        return [*of(self.module).asked, *of(self.other).asked]


@pytest.fixture
def attic(site: Site) -> Attic:
    return Attic(site)


def later(seconds: Any = None) -> UnavailableError:
    return UnavailableError("come back later", retry_after=seconds)


def test_an_unavailable_source_is_tried_four_times_then_reported(attic: Attic) -> None:
    attic.lay_out(attic_a=[later() for _ in range(9)])
    with pytest.raises(UnavailableError, match="come back later") as told:
        attic.resolve("attic:a")
    assert attic.asked == ["attic:a"] * MAX_TRIES == ["attic:a"] * 4
    assert told.value.locator == "attic:a"
    assert len(attic.pauses) == 3
    for number, pause in enumerate(attic.pauses):
        assert 0 <= pause <= FIRST_BACKOFF * 2**number


def test_an_answer_in_between_ends_it(attic: Attic) -> None:
    attic.lay_out(attic_a=[later(), later()])
    keys, pauses = attic.resolve("attic:a")
    assert (keys, len(pauses), len(attic.asked)) == (["a"], 2, 3)


@pytest.mark.parametrize(
    ("asked", "least"), [(3.0, 3.0), (5, 5.0), (1000.0, MAX_BACKOFF), (float("inf"), MAX_BACKOFF)]
)
def test_what_the_backend_asks_for_is_waited_for_within_bounds(
    attic: Attic, asked: float, least: float
) -> None:
    attic.lay_out(attic_a=[later(asked)])
    _, pauses = attic.resolve("attic:a")
    assert pauses == [least]


@pytest.mark.parametrize("asked", ["7", -5.0, float("nan"), None, [1], 0])
def test_what_is_no_time_is_not_waited_for(attic: Attic, asked: Any) -> None:
    attic.lay_out(attic_a=[later(asked)])
    _, (pause,) = attic.resolve("attic:a")
    assert 0 <= pause <= FIRST_BACKOFF


def test_the_longest_of_what_several_ask_for_counts(attic: Attic) -> None:
    attic.lay_out(attic_a=[later(2.0)], attic_b=[later(4.0)], other_c=[later(3.0)])
    _, pauses = attic.resolve("attic:a", "attic:b", "other:c")
    assert pauses == [4.0]


def test_only_what_was_unavailable_is_asked_for_again(attic: Attic) -> None:
    attic.lay_out(attic_b=[later()], other_c=[later(), later()])
    keys, pauses = attic.resolve("attic:a", "attic:b", "other:c", "other:d")
    assert keys == ["a", "b", "c", "d"]
    assert {text: attic.asked.count(text) for text in attic.asked} == {
        "attic:a": 1, "attic:b": 2, "other:c": 3, "other:d": 1,
    }  # fmt: skip
    assert len(pauses) == 2


@pytest.mark.parametrize(
    "kind",
    [
        "SecretNotFoundError",
        "AccessDeniedError",
        "NotConfiguredError",
        "BackendAuthError",
        "ReferenceValueError",
        "UnsupportedError",
        "WriteConflictError",
        "UnknownOutcomeError",
        "PluginError",
    ],
)
def test_no_other_error_is_tried_again(attic: Attic, kind: str) -> None:
    from sealpipe import errors

    attic.lay_out(attic_a=[getattr(errors, kind)("no")])
    with pytest.raises(PluginError, match="no"):
        attic.resolve("attic:a")
    assert (attic.asked, attic.pauses) == (["attic:a"], [])


def test_an_error_that_the_contract_does_not_know_is_not_tried_again(attic: Attic) -> None:
    attic.lay_out(attic_a=[ConnectionError("c4nary")])
    with pytest.raises(PluginError, match=r"an unexpected ConnectionError at others_\w+\.py:\d+$"):
        attic.resolve("attic:a")
    assert attic.asked == ["attic:a"]


def test_a_document_is_read_once_in_a_run_and_so_is_one_that_is_not_there(attic: Attic) -> None:
    cache: Cache = {}
    attic.lay_out(attic_no=[SecretNotFoundError("none")])
    attic.resolve("attic:a", "A=attic:a", "attic:no?optional=1", cache=cache)
    attic.resolve("attic:a", "attic:no?optional=1", cache=cache)
    with pytest.raises(SecretNotFoundError):
        attic.resolve("attic:no", cache=cache)
    assert attic.asked == ["attic:a", "attic:no"]
