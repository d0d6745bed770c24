"""Reading many secrets of AWS in one call, and one by one what such a call does not answer."""

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
from sealpipe_plugins.aws.errors import FAILURES, told

Answers = dict[Locator, Document | PluginError]
T = TypeVar("T")


def in_batches(
    locators: Sequence[Locator],
    batches: Sequence[Sequence[Locator]],
    batch: Callable[[Sequence[Locator]], Answers],
    single: Callable[[Locator], Document],
    threads: int,
) -> Answers:
    """Every locator's answer. `batch` leaves out what has to be asked for singly; none of the two raises others
    than PluginError. At most `threads` calls run at once."""
    answers: Answers = {}

    def alone(locator: Locator) -> Answers:
        try:
            return {locator: single(locator)}
        except PluginError as error:
            return {locator: error}

    for part in _each(batch, batches, threads):
        answers |= part
    for part in _each(alone, [locator for locator in locators if locator not in answers], threads):
        answers |= part
    return answers


def parted(locators: Sequence[Locator], size: int) -> list[Sequence[Locator]]:
    """In groups of at most `size`."""
    return [locators[start : start + size] for start in range(0, len(locators), size)]


_OF_ONE_SECRET: Final = (AccessDeniedError, SecretNotFoundError, UnsupportedError, ReferenceValueError, PluginError)
"""Kinds of errors that a single secret of a batch may cause."""


def answer_batch(
    ask: Callable[[], Answers], locators: Sequence[Locator], action: str
) -> tuple[Answers, type[PluginError] | None]:
    """Return the answers of a batch, and the kind of its error where the whole batch failed.

    What may be the fault of a single secret has no answer: it is asked for singly. `action` is the permission.
    """
    try:
        return ask(), None
    except FAILURES as error:
        errors = {locator: told(error, locator, action) for locator in locators}
    except PluginError as error:
        return {locator: copy(error) for locator in locators}, None  # each gets its own locator
    kind = type(errors[locators[0]])
    return ({} if kind in _OF_ONE_SECRET else dict(errors)), kind


def _each(job: Callable[[T], Answers], over: Sequence[T], threads: int) -> list[Answers]:
    if len(over) <= 1:
        return [job(one) for one in over]
    with ThreadPoolExecutor(min(threads, len(over)), thread_name_prefix="sealpipe-batch") as pool:
        return list(pool.map(job, over))
