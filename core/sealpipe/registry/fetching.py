"""Fetches documents from several stores at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextvars import copy_context
from functools import partial
from operator import call

from sealpipe.errors import PluginError, UnavailableError
from sealpipe.plugin import Document, Locator, Source
from sealpipe.registry.safe_calls import call_plugin

FetchResults = dict[Locator, Document | PluginError]

MAX_STORES = 8
"""Maximum number of stores read at the same time."""

MAX_CALLS = 32
"""Maximum number of concurrent calls of one store, whatever its source allows."""


def fetch_all(
    source: Callable[[str], Source],
    locators_by_store: Mapping[str, Sequence[Locator]],
    deadline: float | None = None,
) -> FetchResults:
    """Fetch documents from all stores. Only PayloadTooLargeError is raised, never a PluginError.

    `deadline` is in seconds, for the whole call: after it, a store that was unavailable once is not
    asked again, and its remaining references get the same error.
    """
    end = None if deadline is None else time.monotonic() + deadline
    jobs = [
        partial(_fetch_from, source, name, locators, end)
        for name, locators in locators_by_store.items()
    ]
    results: FetchResults = {}
    for part_results in _run_concurrently(jobs, MAX_STORES):
        results |= part_results
    return results


def _run_concurrently(
    jobs: Sequence[Callable[[], FetchResults]], max_threads: int
) -> list[FetchResults]:
    if len(jobs) <= 1 or max_threads == 1:
        return [*map(call, jobs)]  # no thread is needed
    results: list[FetchResults] = [{} for _ in jobs]
    indices = iter(range(len(jobs)))  # a future for each job would cost more than some jobs do
    errors: list[BaseException] = []
    # A signal interrupts this wait, but not reliably the join of a thread.
    ended = threading.Semaphore(0)

    def work() -> None:
        try:
            for number in indices:
                results[number] = jobs[number]()
        except BaseException as error:  # noqa: BLE001 - raised in the waiting thread
            errors.append(error)
        finally:
            ended.release()

    # daemon threads: after an interruption, a store that hangs must not delay the end of Python
    threads = [
        # in a context of its own, a copy: the call that it works for may be cancelled
        threading.Thread(
            target=copy_context().run, args=[work], name="sealpipe-source", daemon=True
        )
        for _ in range(min(max_threads, len(jobs)))
    ]
    for thread in threads:
        thread.start()
    for _ in threads:
        ended.acquire()
    if errors:
        raise errors[0]
    return results


def _fetch_from(
    source: Callable[[str], Source], name: str, locators: Sequence[Locator], end: float | None
) -> FetchResults:
    try:
        reader = _StoreReader(name, source(name), end)
    except PluginError as error:
        return _repeat_failure(error, locators)
    parts = [list(locators)] if reader.is_batch else [[locator] for locator in locators]
    results: FetchResults = {}
    for part in _run_concurrently(
        [partial(reader.read, part) for part in parts], reader.concurrency
    ):
        results |= part
    return results


class _StoreReader:
    """One store in one fetch. `end` is the deadline in monotonic time; None for no deadline."""

    def __init__(self, name: str, source: Source, end: float | None) -> None:
        self._name = name
        self._source = source
        self._end = end
        self._outage: UnavailableError | None = None
        self.is_batch = type(source).fetch_many is not Source.fetch_many

    @property
    def concurrency(self) -> int:
        """How many calls may run at once.

        One if the source fetches in batches, or gives no number.
        """
        allowed: object = self._source.concurrency
        return (
            1 if self.is_batch or not isinstance(allowed, int) else max(1, min(allowed, MAX_CALLS))
        )

    def read(self, locators: Sequence[Locator]) -> FetchResults:
        """Read some documents. A slow store costs its deadline once, not once per reference."""
        if self._outage is not None and self._end is not None and time.monotonic() >= self._end:
            return {locator: _copy_error(self._outage, locator.text) for locator in locators}
        try:
            fetched = call_plugin(
                f"the source {self._name}", partial(self._source.fetch_many, locators)
            )
            results: FetchResults = {
                locator: _check_result(locator, fetched) for locator in locators
            }
        except PluginError as error:
            results = _repeat_failure(error, locators)
        outages = (result for result in results.values() if isinstance(result, UnavailableError))
        self._outage = next(outages, self._outage)
        return results


def _check_result(locator: Locator, results: object) -> Document | PluginError:
    result = results.get(locator) if isinstance(results, Mapping) else None
    if isinstance(result, PluginError):
        result.__cause__ = result.__context__ = None
        return _locate(result.with_traceback(None), locator)
    if isinstance(result, Document) and isinstance(result.content, bytes | str | Mapping):
        return result
    kind = type(result.content if isinstance(result, Document) else result).__name__
    return PluginError(
        f"the source {locator.name} returned {kind} for {locator}", locator=locator.text
    )


def _repeat_failure(error: PluginError, locators: Sequence[Locator]) -> FetchResults:
    """Return a copy of the failure for each locator, because each names its reference."""
    return {locator: _copy_error(error, error.locator or locator.text) for locator in locators}


def _copy_error(error: PluginError, locator: str) -> PluginError:
    # Without its __init__, which may take other arguments.
    copy = type(error).__new__(type(error), *error.args)
    vars(copy).update(vars(error))
    copy.locator = locator
    return copy


def _locate(error: PluginError, locator: Locator) -> PluginError:
    error.locator = error.locator or locator.text
    return error
