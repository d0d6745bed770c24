"""Reading from several stores at once: a thread for each, and more where a source allows it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from sealpipe.errors import PayloadTooLargeError, PluginError
from sealpipe.plugin import Document, Locator, Source
from sealpipe.registry.calls import call_plugin

Answers = dict[Locator, Document | PluginError]

MOST_STORES = 8
"""How many stores are read at the same time."""

MOST_CALLS = 32
"""How many calls of one store run at the same time, whatever its source allows."""


def fetch_all(source: Callable[[str], Source], wanted: Mapping[str, Sequence[Locator]]) -> Answers:
    """What every store answers. Blocks. Only PayloadTooLargeError is raised, never a PluginError."""
    jobs = [partial(_fetch, source, name, locators) for name, locators in wanted.items()]
    answers: Answers = {}
    for part in _at_once(jobs, MOST_STORES):
        answers |= part
    return answers


def _at_once(jobs: Sequence[Callable[[], Answers]], most: int) -> list[Answers]:
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


def _fetch(source: Callable[[str], Source], name: str, locators: Sequence[Locator]) -> Answers:
    try:
        made = source(name)
    except PluginError as error:
        return _failed(error, locators)
    most = _width(made)
    parts = [[locator] for locator in locators] if most > 1 else [list(locators)]
    answers: Answers = {}
    for part in _at_once([partial(_ask, made, name, part) for part in parts], most):
        answers |= part
    return answers


def _width(made: Source) -> int:
    """How many calls may run at once: one where the source has a batch, or says what is no number."""
    batch = type(made).fetch_many is not Source.fetch_many
    allowed: object = made.concurrency
    return 1 if batch or not isinstance(allowed, int) else max(1, min(allowed, MOST_CALLS))


def _ask(made: Source, name: str, locators: Sequence[Locator]) -> Answers:
    try:
        answers = call_plugin(f"the source {name}", lambda: made.fetch_many(locators))
        return {locator: _checked(locator, answers) for locator in locators}
    except PayloadTooLargeError:
        raise
    except PluginError as error:
        return _failed(error, locators)


def _checked(locator: Locator, answers: object) -> Document | PluginError:
    answer = answers.get(locator) if isinstance(answers, Mapping) else None
    if isinstance(answer, PluginError):
        answer.__cause__ = answer.__context__ = None
        return _located(answer.with_traceback(None), locator)
    if isinstance(answer, Document) and isinstance(answer.content, bytes | str | Mapping):
        return answer
    kind = type(answer.content if isinstance(answer, Document) else answer).__name__
    return PluginError(f"the source {locator.name} answered {locator} with {kind}", locator=locator.text)


def _failed(error: PluginError, locators: Sequence[Locator]) -> Answers:
    """The same failure for each: errors of their own, for each names its reference."""
    answers: Answers = {}
    for locator in locators:
        own = type(error).__new__(type(error), *error.args)  # whatever its author asks for in __init__
        vars(own).update(vars(error))
        answers[locator] = _located(own, locator)
    return answers


def _located(error: PluginError, locator: Locator) -> PluginError:
    error.locator = error.locator or locator.text
    return error
