"""Worker threads for asyncio.

Each call of a task blocks in a thread of its own, and so many are at work at once.

The threads are daemons: a source that hangs must not delay the end of Python.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from inspect import isawaitable
from queue import Empty, SimpleQueue
from typing import Any, Final, NamedTuple, TypeVar

from anyio import CancelScope

from sealpipe.cancellation import Cancellation, CancelledCallError, make_current
from sealpipe.errors import ConnectError, OutcomeUnknownError, UsageError
from sealpipe.state.entry import JournaledLink

T = TypeVar("T")

IDLE_SECONDS: Final = 5.0
"""Seconds after which a thread without work ends."""
LAST_SECONDS: Final = 0.25
"""Seconds that an interrupted thread has to unlock what it holds, before its caller goes on without
it.
"""


class _Result(NamedTuple):
    """How a call ended."""

    value: Any
    error: BaseException | None


class _Callback(NamedTuple):
    """What the thread asks its task to call. `answer` gets the error that it raised, or None."""

    call: Callable[[], object]
    answer: Callable[[BaseException | None], object]


_Message = _Result | _Callback


class Workers:
    """The threads of one client.

    At most `number` calls are at work at once; the others wait for their turn.
    """

    def __init__(self, number: int) -> None:
        self._slots = _Slots(number)
        self._lock = threading.Lock()
        self._jobs: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._idle = 0  # threads that wait for a job which is not in the queue yet
        self._calls: set[Call] = set()

    async def run(self, work: Callable[[Call], T], *, timeout: float | None, grace: float) -> T:
        """Do the work in a thread, with the context variables of this task, and return its result.

        `timeout` is how long it may wait for its turn, in seconds; None: it takes none, and begins
        at once. If the task is cancelled, the thread ends as `Cancellation` says; the task waits
        for it at most `grace` seconds, and only if a change is under way. Raises ConnectError,
        OutcomeUnknownError if `end_calls` ends it after a change began, and UsageError where there
        is no event loop of asyncio.
        """
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            raise UsageError(
                "AsyncClient needs the event loop of asyncio, and another one runs here",
                remedy=(
                    "use asyncio.run; with trio, call the methods of Client in "
                    "trio.to_thread.run_sync"
                ),
            ) from None
        call = Call(self._slots, loop)
        self._calls.add(call)
        try:
            result = await self._attend(call, work, timeout, grace)
        except asyncio.CancelledError:
            call.raise_if_ended()
            raise
        finally:
            self._calls.discard(call)
            call.has_left.set()
        try:
            if result.error is not None:
                raise result.error
            value: T = result.value
            return value
        finally:
            del result  # the error's frames have it, and it has the error

    async def _attend(
        self, call: Call, work: Callable[[Call], object], timeout: float | None, grace: float
    ) -> _Result:
        if timeout is not None:
            await call.take_slot(timeout)
        try:
            self._start(partial(copy_context().run, call.execute, work))
            return await call.attend()
        except BaseException as error:
            # Nothing can be awaited any more.
            if isinstance(error, GeneratorExit) or call.loop.is_closed():
                call.cancel()
                call.interrupt()
            else:
                await call.leave(grace)
            raise

    async def end_calls(self) -> None:
        """End other tasks' calls as if they were cancelled, and wait for their end."""
        calls = [each for each in self._calls if each.task is not asyncio.current_task()]
        for call in calls:  # all of them, before one gets the turn of another
            call.end()
        for call in calls:
            if call.loop is asyncio.get_running_loop():
                await call.has_left.wait()

    def close(self) -> None:
        """Let the idle threads end."""
        with self._lock:
            idle, self._idle = self._idle, 0
        for _ in range(idle):
            self._jobs.put(None)

    def _start(self, job: Callable[[], object]) -> None:
        with self._lock:
            is_idle = self._idle > 0
            if is_idle:
                self._idle -= 1
                self._jobs.put(job)
        if not is_idle:
            threading.Thread(
                target=self._serve, args=[[job]], name="sealpipe-call", daemon=True
            ).start()

    def _serve(self, first: list[Callable[[], object]]) -> None:
        # Taken out of the list, which the thread keeps: a job has the arguments of its call.
        job: Callable[[], object] | None = first.pop()
        while job is not None:
            job()
            del job
            with self._lock:
                self._idle += 1
            job = self._wait_for_job()

    def _wait_for_job(self) -> Callable[[], object] | None:
        while True:
            with suppress(Empty):
                return self._jobs.get(timeout=IDLE_SECONDS)
            with self._lock:
                if self._idle:  # else a job was put a moment ago
                    self._idle -= 1
                    return None


class Call(Cancellation):
    """One call, between its task and its thread.

    It has a slot, but not while the thread sleeps or calls back.
    """

    def __init__(self, slots: _Slots, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self.loop = loop
        self.task = asyncio.current_task(loop)
        self.has_left = asyncio.Event()
        """Whether its task has left it."""
        self._is_ended_by_other = False
        self._cancels = self.task.cancelling() if self.task else 0
        self._messages: asyncio.Queue[_Message] = asyncio.Queue()
        self._ended = asyncio.Event()
        self._slots = slots
        self._holding = threading.Lock()
        self._has_slot = False
        self.waited = 0.0
        """Seconds that it waited for its turn."""

    # The task's part:

    async def take_slot(self, timeout: float) -> None:
        """Wait for a slot, at most so many seconds. Raises ConnectError."""
        granted = asyncio.Event()
        wake = partial(self.loop.call_soon_threadsafe, granted.set)
        if not self._slots.take(wake):
            began = self.loop.time()
            try:
                async with asyncio.timeout(timeout):
                    await granted.wait()
                self.waited = self.loop.time() - began
            except BaseException as error:
                self._slots.give_up(wake)
                if not isinstance(error, TimeoutError):
                    raise
                raise ConnectError(
                    "the deadline passed while other calls of this client were at work"
                ) from None
        self._has_slot = True

    async def attend(self) -> _Result:
        """Call back what the thread wants called back, and return its result."""
        while isinstance(message := await self._messages.get(), _Callback):
            try:
                outcome = message.call()
                if isawaitable(outcome):
                    await outcome
            except Exception as error:  # noqa: BLE001 - the thread raises it
                message.answer(error)
            except BaseException:
                message.answer(CancelledCallError())
                raise
            else:
                message.answer(None)
        return message

    def end(self) -> None:
        """Cancel it for another task: its own gets an error, which `raise_if_ended` raises."""

        def cancel() -> None:
            if self.task is not None and not self.has_left.is_set():
                self._is_ended_by_other = True
                self.task.cancel()

        with suppress(RuntimeError):  # its event loop is closed
            self.loop.call_soon_threadsafe(cancel)

    def raise_if_ended(self) -> None:
        """Raise ConnectError or OutcomeUnknownError if only `end` has cancelled the task."""
        if not self._is_ended_by_other or self.task is None or self.task.uncancel() > self._cancels:
            return
        problem = "the client was closed while this call was at work"
        if self.has_begun_change:
            raise OutcomeUnknownError(
                problem, remedy="check what came of it; `resume` finishes an outbox entry"
            ) from None
        raise ConnectError(problem, remedy="await all calls before you close the client") from None

    async def leave(self, grace: float) -> None:
        """Cancel, and let the thread end.

        Within `grace` seconds if a change is under way, else at once.
        """
        is_changing = self.cancel()
        while not self._messages.empty():
            self._drop(self._messages.get_nowait())
        with CancelScope(shield=True):  # a scope of anyio would cancel again and again
            try:
                if is_changing:
                    await self._wait_for_end(grace - LAST_SECONDS)
            finally:
                self.interrupt()
                try:
                    await self._wait_for_end(LAST_SECONDS)
                finally:
                    self._give_slot()

    async def _wait_for_end(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._ended.wait()

    def _receive(self, message: _Message) -> None:
        if self.is_cancelled:
            self._drop(message)
        else:
            self._messages.put_nowait(message)

    def _drop(self, message: _Message) -> None:
        _discard(message)
        if isinstance(message, _Result):
            self._ended.set()

    # The thread's part:

    def execute(self, work: Callable[[Call], object]) -> None:
        """Do the work, and send its result."""
        make_current(self)
        try:
            result = _Result(work(self), None)
        except BaseException as error:  # noqa: BLE001 - the task raises it
            result = _Result(None, error)
        self._give_slot()
        self._send(result)
        del result  # the error's frames have it, and it has the error

    def wait(self, seconds: float) -> None:
        """Sleep between two steps, while other calls are at work. Raises CancelledCallError."""
        self.raise_if_cancelled()
        self._give_slot()
        self.sleep(seconds)
        self._take_slot_again()

    def notify(self, callback: Callable[[], object]) -> None:
        """Call back in the task, while other calls are at work.

        Raises what it raises, and CancelledCallError.
        """
        self.raise_if_cancelled()
        self._give_slot()
        answers: SimpleQueue[BaseException | None] = SimpleQueue()
        try:
            if not self.start_blocking(lambda: answers.put(CancelledCallError())):
                raise CancelledCallError
            self._send(_Callback(callback, answers.put))
            error = answers.get()
        finally:
            self.stop_blocking()
        if error is not None:
            raise error
        self._take_slot_again()

    def _take_slot_again(self) -> None:
        """Take a slot before those that have not begun."""
        free = threading.Event()
        if not self._slots.take(free.set, is_first=True):
            if self.start_blocking(free.set):
                free.wait()
            self.stop_blocking()
            if self.is_cancelled:
                self._slots.give_up(free.set)
                raise CancelledCallError
        self._has_slot = True

    def _send(self, message: _Message) -> None:
        try:
            self.loop.call_soon_threadsafe(self._receive, message)
        except RuntimeError:  # the loop is closed
            _discard(message)

    # Both:

    def _give_slot(self) -> None:
        with self._holding:
            has_slot, self._has_slot = self._has_slot, False
        if has_slot:
            self._slots.give()


def _discard(message: _Message) -> None:
    """Take a message of a thread whose task has left it."""
    if isinstance(message, _Callback):
        message.answer(CancelledCallError())
    elif isinstance(message.value, JournaledLink):
        message.value.keep()  # for `resume`


class _Slots:
    """Places for calls that are at work: first come, first served, for tasks and threads alike.

    `wake` is called when the place is there; it raises RuntimeError if nobody can take it any more.
    """

    def __init__(self, number: int) -> None:
        self._lock = threading.Lock()
        self._free = number
        self._waiting: deque[Callable[[], object]] = deque()
        self._gone: set[Callable[[], object]] = set()
        """Those whose event loop was closed when it was their turn: they got no place, and will
        give up.
        """

    def take(self, wake: Callable[[], object], *, is_first: bool = False) -> bool:
        """Take a place.

        False if none is free: `wake` will be called once there is one, and has been taken.
        """
        with self._lock:
            if self._free:
                self._free -= 1
                return True
            (self._waiting.appendleft if is_first else self._waiting.append)(wake)
            return False

    def give(self) -> None:
        """Give a place to the next."""
        while True:
            with self._lock:
                if not self._waiting:
                    self._free += 1
                    return
                wake = self._waiting.popleft()
            try:
                wake()
                return
            except RuntimeError:  # its event loop is closed
                with self._lock:
                    self._gone.add(wake)

    def give_up(self, wake: Callable[[], object]) -> None:
        """Wait no longer. If the place was there at that moment, the next gets it."""
        with self._lock:
            has_place = wake not in self._waiting and wake not in self._gone
            if wake in self._waiting:
                self._waiting.remove(wake)
            self._gone.discard(wake)
        if has_place:
            self.give()
