"""Read many AWS secrets in one call, and those that the call does not return one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from typing import Final, TypeVar

from sealpipe.plugin import (
    AccessDeniedError,
    Document,
    Locator,
    PluginError,
    ReferenceValueError,
    SecretNotFoundError,
    UnsupportedError,
)
from sealpipe_plugins.aws.errors import FAILURES, map_error

Results = dict[Locator, Document | PluginError]
T = TypeVar("T")


def fetch_in_batches(
    locators: Sequence[Locator],
    batches: Sequence[Sequence[Locator]],
    batch: Callable[[Sequence[Locator]], Results],
    single: Callable[[Locator], Document],
    threads: int,
) -> Results:
    """Return every locator's result, with at most `threads` calls at once.

    `batch` omits secrets that must be fetched singly. Both functions raise only PluginError.
    """
    results: Results = {}

    def fetch_single(locator: Locator) -> Results:
        try:
            return {locator: single(locator)}
        except PluginError as error:
            return {locator: error}

    for partial in _run_all(batch, batches, threads):
        results |= partial
    for partial in _run_all(
        fetch_single, [locator for locator in locators if locator not in results], threads
    ):
        results |= partial
    return results


def split(locators: Sequence[Locator], size: int) -> list[Sequence[Locator]]:
    """Split locators into groups of at most `size`."""
    return [locators[start : start + size] for start in range(0, len(locators), size)]


_SINGLE_SECRET_ERRORS: Final = (
    AccessDeniedError,
    SecretNotFoundError,
    UnsupportedError,
    ReferenceValueError,
    PluginError,
)
"""Kinds of errors that a single secret of a batch may cause."""


def run_batch(
    ask: Callable[[], Results], locators: Sequence[Locator], action: str
) -> tuple[Results, type[PluginError] | None]:
    """Return the batch's results, and the kind of error if all failed. `action` is the permission.

    A secret that may itself have caused the error has no result: it is fetched singly.
    """
    try:
        return ask(), None
    except FAILURES as error:
        errors = {locator: map_error(error, locator, action) for locator in locators}
    except PluginError as error:
        return {
            locator: copy(error) for locator in locators
        }, None  # each locator needs an error of its own
    kind = type(errors[locators[0]])
    return ({} if kind in _SINGLE_SECRET_ERRORS else dict(errors)), kind


def _run_all(job: Callable[[T], Results], items: Sequence[T], threads: int) -> list[Results]:
    if len(items) <= 1:
        return [job(item) for item in items]
    pool = ThreadPoolExecutor(min(threads, len(items)), thread_name_prefix="sealpipe-batch")
    try:
        results = list(pool.map(job, items))
    except BaseException as error:  # an interruption does not wait for calls that hang
        pool.shutdown(wait=isinstance(error, Exception), cancel_futures=True)
        raise
    pool.shutdown()
    return results
