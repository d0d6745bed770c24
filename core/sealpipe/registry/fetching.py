"""Reading from several stores at once: a thread for each, and more where a source allows it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from sealpipe.errors import PluginError, UnavailableError
from sealpipe.plugin import Document, Locator, Source
from sealpipe.registry.calls import call_plugin

Answers = dict[Locator, Document | PluginError]

MAX_STORES = 8
"""How many stores are read at the same time."""

MAX_CALLS = 32
"""How many calls of one store run at the same time, whatever its source allows."""


def fetch_all(
    source: Callable[[str], Source], wanted: Mapping[str, Sequence[Locator]], deadline: float | None = None
) -> Answers:
    """What every store answers. Blocks. Only PayloadTooLargeError is raised, never a PluginError.

    `deadline` is in seconds, for all of it: after it, a store that was unavailable once is not asked again, and its
    remaining references are answered with the same error.
    """
    end = None if deadline is None else time.monotonic() + deadline
    jobs = [partial(_fetch_from, source, name, locators, end) for name, locators in wanted.items()]
    answers: Answers = {}
    for part in _run_concurrently(jobs, MAX_STORES):
        answers |= part
    return answers


def _run_concurrently(jobs: Sequence[Callable[[], Answers]], most: int) -> list[Answers]:
    if len(jobs) <= 1 or most == 1:
        return [job() for job in jobs]  # no thread where one will do
    from concurrent.futures import ThreadPoolExecutor  # it loads logging, too

    answers: list[Answers] = [{} for _ in jobs]
    left = iter(range(len(jobs)))  # a future for each job would cost more than some jobs do

    def work() -> None:
        for number in left:
            answers[number] = jobs[number]()

    with ThreadPoolExecutor(most := min(most, len(jobs)), thread_name_prefix="sealpipe-source") as pool:
        for worker in [pool.submit(work) for _ in range(most)]:
            worker.result()
    return answers


def _fetch_from(source: Callable[[str], Source], name: str, locators: Sequence[Locator], end: float | None) -> Answers:
    try:
        reader = _StoreReader(name, source(name), end)
    except PluginError as error:
        return _fail_all(error, locators)
    parts = [list(locators)] if reader.is_batch else [[locator] for locator in locators]
    answers: Answers = {}
    for part in _run_concurrently([partial(reader.read, part) for part in parts], reader.concurrency):
        answers |= part
    return answers


class _StoreReader:
    """One store in one fetch. `end` is the monotonic time at which the deadline is over; None for no deadline."""

    def __init__(self, name: str, source: Source, end: float | None) -> None:
        self._name = name
        self._source = source
        self._end = end
        self._outage: UnavailableError | None = None
        self.is_batch = type(source).fetch_many is not Source.fetch_many

    @property
    def concurrency(self) -> int:
        """How many calls may run at once: one where the source has a batch, or does not give a number."""
        allowed: object = self._source.concurrency
        return 1 if self.is_batch or not isinstance(allowed, int) else max(1, min(allowed, MAX_CALLS))

    def read(self, locators: Sequence[Locator]) -> Answers:
        """Ask for some documents. A slow store costs its deadline once, not once for each reference."""
        if self._outage is not None and self._end is not None and time.monotonic() >= self._end:
            return {locator: _copy(self._outage, locator.text) for locator in locators}
        try:
            found = call_plugin(f"the source {self._name}", lambda: self._source.fetch_many(locators))
            answers: Answers = {locator: _check_answer(locator, found) for locator in locators}
        except PluginError as error:
            answers = _fail_all(error, locators)
        outages = (answer for answer in answers.values() if isinstance(answer, UnavailableError))
        self._outage = next(outages, self._outage)
        return answers


def _check_answer(locator: Locator, answers: object) -> Document | PluginError:
    answer = answers.get(locator) if isinstance(answers, Mapping) else None
    if isinstance(answer, PluginError):
        answer.__cause__ = answer.__context__ = None
        return _with_locator(answer.with_traceback(None), locator)
    if isinstance(answer, Document) and isinstance(answer.content, bytes | str | Mapping):
        return answer
    kind = type(answer.content if isinstance(answer, Document) else answer).__name__
    return PluginError(f"the source {locator.name} returned {kind} for {locator}", locator=locator.text)


def _fail_all(error: PluginError, locators: Sequence[Locator]) -> Answers:
    """The same failure for each: errors of their own, because each names its reference."""
    return {locator: _copy(error, error.locator or locator.text) for locator in locators}


def _copy(error: PluginError, locator: str) -> PluginError:
    own = type(error).__new__(type(error), *error.args)  # whatever its author asks for in __init__
    vars(own).update(vars(error))
    own.locator = locator
    return own


def _with_locator(error: PluginError, locator: Locator) -> PluginError:
    error.locator = error.locator or locator.text
    return error
