"""Reading many at once where the backend has a batch, and one by one what the batch does not answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from sealpipe.plugin import Document, Locator, PluginError

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


def _each(job: Callable[[T], Answers], over: Sequence[T], threads: int) -> list[Answers]:
    if len(over) <= 1:
        return [job(one) for one in over]
    with ThreadPoolExecutor(min(threads, len(over)), thread_name_prefix="sealpipe-batch") as pool:
        return list(pool.map(job, over))
