"""What a command writes and the signals it gets, on the way through us until it has ended."""

from __future__ import annotations

import fcntl
import os
import selectors
import signal
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from types import FrameType
from typing import Final, Self

from sealpipe.run.redaction import Redactor
from sealpipe.signals import open_wakeup
from sealpipe.spellings import Finder

CHUNK: Final = 64 * 1024
LAST: Final = 1024 * 1024
"""Bytes that are still read from each stream at the very end: what a pipe can hold."""
GRACE: Final = 1.0
"""Seconds after the command's end during which its own children may still write."""
_SETTLED: Final = 0.05
"""Seconds without output after which the beginning of a possible value is shown, if it is short."""

_PASSED_ON: Final = (
    "SIGINT",
    "SIGTERM",
    "SIGHUP",
    "SIGQUIT",
    "SIGUSR1",
    "SIGUSR2",
    "SIGTSTP",
    "SIGCONT",
    "SIGWINCH",
)
_OUTPUT_FLAGS: Final = 1
"""Index of the flags in a terminal's attributes."""


class Signals:
    """Passes signals on to a command, in a `with` block.

    What comes before `start` is passed on then.

    A signal that is ignored stays ignored, here and in the command.
    """

    def __init__(self) -> None:
        self._wakeup = open_wakeup()
        self._early: list[int] = []
        self._pass_on: Callable[[int], object] = self._early.append

    def __enter__(self) -> Self:
        numbers = [getattr(signal, name) for name in _PASSED_ON]
        before = {number: signal.getsignal(number) for number in (*numbers, signal.SIGCHLD)}
        is_ours = {
            number: number == signal.SIGCHLD or each is not signal.SIG_IGN
            for number, each in before.items()
        }
        self._before = {number: each for number, each in before.items() if is_ours[number]}
        self._wakes = self._wakeup.__enter__()
        for number in self._before:
            signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        # One that came while its default is put back would be lost, and Python would say so on
        # stderr.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, self._before)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        self._wakeup.__exit__(None, None, None)

    def start(self, pass_on: Callable[[int], object]) -> None:
        """Pass signals on from now on: those that came before, too."""
        self._pass_on = pass_on
        for number in self._early:
            pass_on(number)

    def fileno(self) -> int:
        """Return what is readable once a signal has come, that of the command's end, too."""
        return self._wakes

    def clear(self) -> None:
        """Forget the signals that have come."""
        with suppress(BlockingIOError):
            os.read(self._wakes, CHUNK)

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        if number != signal.SIGCHLD:
            self._pass_on(number)


class Stream:
    """What the command writes to one of its streams, on the way to one of ours."""

    def __init__(self, source: int, target: int, redactor: Redactor) -> None:
        self.source = source
        self._target = target
        self._redactor = redactor
        os.set_blocking(source, False)

    def pass_on(self) -> bool:
        """Pass on what is there.

        Return False at the end: nothing more will come, or nobody reads it any longer.
        """
        try:
            data = os.read(self.source, CHUNK)
        except BlockingIOError:
            return True
        except OSError:  # the other end of a terminal is closed
            data = b""
        return self._write(self._redactor.feed(data) if data else self._redactor.finish()) and bool(
            data
        )

    def settle(self) -> None:
        """Show what may be shown while nothing comes."""
        self._write(self._redactor.settle())

    def finish(self) -> None:
        """Pass on what was written before the command ended, and no more."""
        for _ in range(LAST // CHUNK):
            try:
                data = os.read(self.source, CHUNK)
            except OSError:
                break
            if not data or not self._write(self._redactor.feed(data)):
                break
        self._write(self._redactor.finish())

    def _write(self, data: bytes) -> bool:
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self._target, view) :]
            except (
                BlockingIOError
            ):  # some programs leave the streams that they were given like that
                with selectors.DefaultSelector() as selector:
                    selector.register(self._target, selectors.EVENT_WRITE)
                    selector.select()
            except OSError:
                return False
        return True


def relay(
    streams: Sequence[Stream],
    signals: Signals,
    poll: Callable[[], int | None],
    others: Mapping[int, Callable[[selectors.BaseSelector], object]] | None = None,
) -> int:
    """Pass on what a command writes until it has ended and written everything.

    Return what `poll` does at its end.

    `others` are more descriptors to read, each with what to do then.
    """
    with selectors.DefaultSelector() as selector:
        selector.register(signals, selectors.EVENT_READ, lambda _: signals.clear())
        for descriptor, action in (others or {}).items():
            selector.register(descriptor, selectors.EVENT_READ, action)
        open_now = {stream.source: stream for stream in streams}
        for source in open_now:
            selector.register(source, selectors.EVENT_READ, None)
        code: int | None = None
        end = 0.0
        is_settled = True
        while code is None or (open_now and time.monotonic() < end):
            left = None if code is None else max(0.0, end - time.monotonic())
            ready = selector.select(left if is_settled else _SETTLED)
            written = [key.fd for key, _ in ready if key.fd in open_now]
            for source in written:
                if not open_now[source].pass_on():
                    selector.unregister(source)
                    os.close(source)
                    del open_now[source]
            if not written and not is_settled:
                for stream in open_now.values():
                    stream.settle()
            is_settled = not written
            for key, _ in ready:
                if key.data is not None:
                    key.data(selector)
            if code is None and (code := poll()) is not None:
                end = time.monotonic() + GRACE
        for source, stream in open_now.items():
            stream.finish()
            os.close(source)
        return code


def open_streams(
    numbers: Sequence[int], finder: Finder
) -> tuple[list[Stream], dict[int, int], Callable[[], object] | None]:
    """Open what the command gets as stdout and stderr.

    A terminal where ours is one, otherwise a pipe.

    Two that lead to the same place stay one, so that their order is kept. Also returns what copies
    our terminal's size.
    """
    streams: list[Stream] = []
    theirs: dict[int, int] = {}
    same: dict[tuple[int, int], int] = {}
    terminals: list[tuple[int, int]] = []
    for number in numbers:
        status = os.fstat(number)
        place = status.st_dev, status.st_ino
        if place not in same:
            if os.isatty(number):
                source, same[place] = open_screen(number)
                terminals.append((number, source))
            else:
                source, same[place] = os.pipe()
            streams.append(Stream(source, number, Redactor(finder)))
        theirs[number] = same[place]
    if not terminals:
        return streams, theirs, None
    return streams, theirs, partial(copy_sizes, terminals)


def copy_size(source: int, target: int) -> None:
    """Copy a terminal's size. Its programs are told of the change."""
    with suppress(OSError):
        fcntl.ioctl(target, termios.TIOCSWINSZ, fcntl.ioctl(source, termios.TIOCGWINSZ, bytes(8)))


def copy_sizes(pairs: Sequence[tuple[int, int]]) -> None:
    """Copy the sizes of terminals to others."""
    for source, target in pairs:
        copy_size(source, target)


def open_screen(number: int) -> tuple[int, int]:
    """Open a terminal for output only, like one of ours; return both ends.

    It changes no byte: ours does.
    """
    master, slave = os.openpty()
    attributes = termios.tcgetattr(number)
    attributes[_OUTPUT_FLAGS] &= ~termios.OPOST
    termios.tcsetattr(slave, termios.TCSANOW, attributes)
    copy_size(number, slave)
    return master, slave
