"""Calls plugins so that only errors of the contract come out, whatever a plugin does.

Of any other error only type, file and line are shown, because its text may contain secrets.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib import import_module
from operator import call
from typing import TYPE_CHECKING, Any, Final, TypeVar

from sealpipe.errors import PayloadTooLargeError, PluginError, UnavailableError
from sealpipe.plugin import (
    CONFIRMS,
    Delivery,
    Document,
    Info,
    Locator,
    Message,
    Mode,
    Sink,
    SinkField,
    Source,
    WriteResult,
)

if TYPE_CHECKING:
    from sealpipe.registry import Registry

T = TypeVar("T")
_CORE_FOLDER = os.path.dirname(os.path.dirname(__file__)) + os.sep  # noqa: PTH120 - as text, like the names it is compared with


watch: Callable[[str, Callable[[], Any]], Any] | None = None
"""Makes each call of a plugin, which it gets with its name, and returns its result (`--debug`)."""


def import_object(spec: str) -> Any:
    """Import the object that an import string names."""
    module, _, name = spec.partition(":")
    return getattr(import_module(module), name)


def call_plugin(what: str, call: Callable[[], T], make_error: Callable[[str], PluginError] | None = None) -> T:
    """Call a plugin. Only errors of the contract come out, without their causes."""
    error_to_raise: PluginError | PayloadTooLargeError
    try:
        return call() if watch is None else watch(what, call)
    except (PluginError, PayloadTooLargeError) as error:
        error_to_raise = error
    except (Exception, SystemExit) as error:  # noqa: BLE001  # its text is not shown
        kind = type(error).__name__
        error_to_raise = (
            make_error(kind) if make_error else PluginError(f"{what} raised an unexpected {kind}{_locate_error(error)}")
        )
    # Outside the handler there is no context; the error's own causes and frames are removed.
    error_to_raise.__cause__ = error_to_raise.__context__ = None
    raise error_to_raise.with_traceback(None)


def _locate_error(error: BaseException) -> str:
    """Return where in the plugin's own folder an error was raised, as ` at shelf.py:41`; empty if unknown."""
    trace = error.__traceback__
    folder = location = ""
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if not folder and not name.startswith(_CORE_FOLDER):
            folder = os.path.dirname(name)  # noqa: PTH120 - no name of a file need be a path
        if folder and os.path.dirname(name) == folder:  # noqa: PTH120 - as above
            location = f" at {os.path.basename(name)}:{trace.tb_lineno}"  # noqa: PTH119 - as above
        trace = trace.tb_next
    return location


def format_install_command(info: Info) -> str:
    """Return the command that installs the packages of a plugin; empty if it needs none."""
    from sealpipe.installation import format_command  # for an error only

    return format_command([f"sealpipe[{info.extra}]"] if info.extra else info.needs)


def suggest(word: str, known: Iterable[str], plural: str) -> str:
    """Suggest the nearest known names, or all of them."""
    from difflib import get_close_matches  # for an error only

    names = sorted(known)
    matches = get_close_matches(word.lower(), names, n=2, cutoff=0.6)
    matches = [name for name in matches if sorted(name) == sorted(word.lower())] or matches  # transposed letters
    return f"did you mean {' or '.join(matches)}?" if matches else f"known {plural}: {', '.join(names)}"


def check_recipient(registry: Registry, name: str, to: str) -> str:
    """Return the recipient in canonical spelling. Sends nothing. Raises PluginError, ReferenceSyntaxError."""
    channel = registry.channel(name)

    def canonicalize() -> str:
        channel.validate(to)
        return channel.canonical(to)

    recipient = call_plugin(f"the channel {name}", canonicalize)
    if not isinstance(recipient, str):
        raise PluginError(
            f"the channel {name} returned {type(recipient).__name__} as its recipient", locator=f"{name}:"
        )
    return recipient


def send_message(registry: Registry, name: str, message: Message, to: str) -> Delivery:
    """Send a message by a channel, once. Blocks. Raises PluginError; only some of them mean that it was not sent."""
    channel = registry.channel(name)
    delivery = call_plugin(f"the channel {name}", lambda: channel.send(message, to))
    return delivery if isinstance(delivery, Delivery) else Delivery()


def confirms_delivery(registry: Registry, name: str) -> bool:
    """Return whether the channel itself ensures that no message is sent twice."""
    return CONFIRMS in registry.channel_info(name).capabilities


def describe_write(registry: Registry, name: str, locator: Locator, mode: Mode) -> str:
    """Describe what the sink would do, without asking a backend. Raises PluginError, SettingError."""
    return str(_call_sink(registry, name, locator, lambda sink: sink.describe(locator, mode)))


def write_fields(
    registry: Registry, name: str, locator: Locator, fields: Sequence[SinkField], mode: Mode, marker: str
) -> WriteResult:
    """Write the fields into the sink. Blocks. Raises PluginError."""
    receipt = _call_sink(registry, name, locator, lambda sink: sink.put(locator, fields, mode=mode, marker=marker))
    if not isinstance(receipt, WriteResult):
        raise PluginError(
            f"the sink {name} returned {type(receipt).__name__} for {locator}: it is unknown what it stored",
            locator=locator.text,
        )
    return receipt


def _call_sink(registry: Registry, name: str, locator: Locator, call: Callable[[Sink], T]) -> T:
    failure: PluginError
    try:
        sink = registry.sink(name)  # its error, such as a missing package, names the target, too
        return call_plugin(f"the sink {name}", lambda: call(sink))
    except PayloadTooLargeError as error:
        failure = PluginError(error.message, remedy=error.remedy)
    except PluginError as error:
        failure = error
    failure.locator = failure.locator or locator.text
    raise failure


FetchResults = dict[Locator, Document | PluginError]

MAX_STORES = 8
"""Maximum number of stores read at the same time."""

MAX_CALLS = 32
"""Maximum number of concurrent calls of one store, whatever its source allows."""


def fetch_all(
    source: Callable[[str], Source], locators_by_store: Mapping[str, Sequence[Locator]], deadline: float | None = None
) -> FetchResults:
    """Fetch documents from all stores. Blocks. Only PayloadTooLargeError is raised, never a PluginError.

    `deadline` is in seconds, for the whole call: after it, a store that was unavailable once is not asked again, and
    its remaining references get the same error.
    """
    end = None if deadline is None else time.monotonic() + deadline
    jobs = [partial(_fetch_from, source, name, locators, end) for name, locators in locators_by_store.items()]
    results: FetchResults = {}
    for part_results in _run_concurrently(jobs, MAX_STORES):
        results |= part_results
    return results


def _run_concurrently(jobs: Sequence[Callable[[], FetchResults]], max_threads: int) -> list[FetchResults]:
    if len(jobs) <= 1 or max_threads == 1:
        return [*map(call, jobs)]  # no thread is needed
    results: list[FetchResults] = [{} for _ in jobs]
    indices = iter(range(len(jobs)))  # a future for each job would cost more than some jobs do
    errors: list[BaseException] = []
    ended = threading.Semaphore(0)  # a signal interrupts this wait, but not reliably the join of a thread

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
        threading.Thread(target=work, name="sealpipe-source", daemon=True) for _ in range(min(max_threads, len(jobs)))
    ]
    for thread in threads:
        thread.start()
    for _ in threads:
        ended.acquire()
    if errors:
        raise errors[0]
    return results


CLOSING_TIME: Final = 0.5
"""Seconds that plugins have to close after an interruption."""


def close_in_time(close: Callable[[], None]) -> None:
    """Close what plugins hold; after an interruption, wait at most `CLOSING_TIME`."""
    error = sys.exception()
    if error is None or isinstance(error, Exception | GeneratorExit):
        close()
        return
    thread = threading.Thread(target=close, name="sealpipe-close", daemon=True)
    thread.start()
    thread.join(CLOSING_TIME)


def _fetch_from(
    source: Callable[[str], Source], name: str, locators: Sequence[Locator], end: float | None
) -> FetchResults:
    try:
        reader = _StoreReader(name, source(name), end)
    except PluginError as error:
        return _repeat_failure(error, locators)
    parts = [list(locators)] if reader.is_batch else [[locator] for locator in locators]
    results: FetchResults = {}
    for part in _run_concurrently([partial(reader.read, part) for part in parts], reader.concurrency):
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
        """How many calls may run at once: one if the source fetches in batches, or gives no number."""
        allowed: object = self._source.concurrency
        return 1 if self.is_batch or not isinstance(allowed, int) else max(1, min(allowed, MAX_CALLS))

    def read(self, locators: Sequence[Locator]) -> FetchResults:
        """Read some documents. A slow store costs its deadline once, not once per reference."""
        if self._outage is not None and self._end is not None and time.monotonic() >= self._end:
            return {locator: _copy_error(self._outage, locator.text) for locator in locators}
        try:
            fetched = call_plugin(f"the source {self._name}", partial(self._source.fetch_many, locators))
            results: FetchResults = {locator: _check_result(locator, fetched) for locator in locators}
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
    return PluginError(f"the source {locator.name} returned {kind} for {locator}", locator=locator.text)


def _repeat_failure(error: PluginError, locators: Sequence[Locator]) -> FetchResults:
    """Return a copy of the failure for each locator, because each names its reference."""
    return {locator: _copy_error(error, error.locator or locator.text) for locator in locators}


def _copy_error(error: PluginError, locator: str) -> PluginError:
    copy = type(error).__new__(type(error), *error.args)  # without its __init__, which may take other arguments
    vars(copy).update(vars(error))
    copy.locator = locator
    return copy


def _locate(error: PluginError, locator: Locator) -> PluginError:
    error.locator = error.locator or locator.text
    return error
