"""Rule D driven by hand: commands in threads, a service as the specification has it, a network that
does its worst.

Time is virtual and every choice comes from one seeded generator, so a schedule can be played again:
one thread runs at a time, and the schedule decides which. The state folder is real. Commands are
the real ones, and stop at each request, each wait and each call of their ledger; a kill ends one
wherever it stands, lets go of its lock as the kernel does, and may tear what it was writing.

A command that stops plays the schedule on itself, up to the moment when a command is to go on:
mostly the same one, so that few steps cost a change of threads.

What is taken for granted of the network, because no client could do without: a DELETE does not
arrive more than a minute after it left where the request ends by itself meanwhile, and never more
than an hour after. And of clocks: where the service does not tell its own, ours is not wrong by
more than minutes.
"""

from __future__ import annotations

import heapq
import json
import os
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from functools import partial
from pathlib import Path
from typing import Any, cast

from sealpipe.api.operation import Failure, Operation, Response
from sealpipe.budget import Budget
from sealpipe.errors import DeliveryError, NotFoundError, SealpipeError
from sealpipe.expire.purge import purge_request
from sealpipe.expire.request import EndedRequest, expire_request
from sealpipe.session import Session
from sealpipe.state.ledger import Ledger, open_ledger

CODE = "AbC/1"
BASE_URL = "https://api.example/v1"
EPOCH = datetime(2026, 11, 21, tzinfo=UTC)
HOUR = 3600.0
MOST_COMMANDS = 10
FAULTS = (
    "refused connection",
    "lost",
    "answer lost",
    "late",
    "500/11",
    "500/11 after",
    "502",
    "504, and late",
    "429",
    "401",
    "garbled",
    "no date",
)
READING = (*("answered",) * 40, *FAULTS)
DELETING = (*("answered",) * 6, *("late",) * 4, "answer lost", "answer lost", *FAULTS)


@dataclass
class Service:
    """One request at the service. `destroyed_by` is the kind of command whose DELETE removed it."""

    ends: float
    tells_removed: bool
    submissions: list[str] = field(default_factory=list)
    expired: bool = False
    destroyed_by: str | None = None
    destroyed: list[str] = field(default_factory=list)

    def active(self, now: float) -> bool:
        return not self.expired and now < self.ends

    def submit(self, now: float) -> None:
        if self.active(now):
            self.submissions.append(f"s{len(self.submissions)}")

    def handle(self, operation: Operation[Any], kind: str, now: float) -> Response:
        if operation.method == "DELETE":
            return self._delete(kind, now)
        if self.destroyed_by and (
            operation.path.endswith("/submissions") or not self.tells_removed
        ):
            return told(404, {"error_code": 70})
        if operation.path.endswith("/submissions"):
            rows = [
                {"short_code": code, "data": f"ciphertext of {code}"} for code in self.submissions
            ]
            return told(
                200,
                {"submissions": rows, "count": len(rows), "skipped_not_end_to_end_encrypted": 0},
            )
        if not self.active(now):
            return told(200, {"short_code": CODE, "expired_at": None})
        ends = (EPOCH + timedelta(seconds=self.ends)).isoformat(timespec="seconds")
        return told(200, {"short_code": CODE, "expired_at": ends, "public_key": "P"})

    def _delete(self, kind: str, now: float) -> Response:
        if self.destroyed_by:
            return told(404, {"error_code": 70})
        if self.active(now):
            self.expired = True
            return told(200, {"short_code": CODE, "outcome": "expired"})
        self.destroyed_by = kind
        self.destroyed, self.submissions = self.submissions, []
        return told(200, {"short_code": CODE, "outcome": "deleted"})


def told(status: int, members: dict[str, Any]) -> Response:
    return Response(status, {}, json.dumps(members).encode())


class Killed(BaseException):
    """Ends the thread of a command that is killed: whatever it still tries on its way out is not
    done.
    """


def nothing() -> None:
    """What there is to do about a killed command."""


class Command:
    """One run of `requests expire` or `requests purge --confirm`, in a thread that stops at each
    step.
    """

    def __init__(self, schedule: Schedule, kind: str, *, faults: bool) -> None:
        self.kind = kind
        self.faults = faults
        self.deletes = 0
        self.read: set[str] | None = None
        """What the service has handed out to it."""
        self.record: Ledger | None = None
        self.ended: EndedRequest | SealpipeError | None = None
        self.killed = False
        self.runs = False
        """Whether it has begun, and not ended in any way."""
        self.answer: tuple[Any, Exception | None] = None, None
        """What its last step came to."""
        self._schedule = schedule
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._baton = threading.Event()
        session = cast(Session, Clocked(schedule, self))
        if kind == "purge":
            self._run = partial(purge_request, session, CODE, CODE, self._open, schedule.our_clock)
        else:
            self._run = partial(expire_request, session, CODE, self._open, schedule.our_clock)

    def resume(self) -> None:
        """Let its thread run."""
        if self.runs:
            self._baton.set()
        else:
            self.runs = True
            self._thread.start()

    def stop(self, what: Callable[[], None]) -> Any:
        """In its thread: let the schedule do something about a step, and return what the step came
        to.
        """
        if not self.killed and self._schedule.play_on(what) is not self:
            self._schedule.resume_next()
            self._baton.wait()
            self._baton.clear()
        if self.killed:
            raise Killed
        result, error = self.answer
        if error is not None:
            raise error
        return result

    def kill(self) -> None:
        """Let it do nothing any more."""
        self.killed = True
        if self.record is not None:
            self.record._release()  # type: ignore[attr-defined]

    def join(self) -> None:
        """Wait for its thread, if there was one."""
        if self._thread.ident is not None:
            self._thread.join()

    def _work(self) -> None:
        try:
            what = partial(self._schedule.ended, self, self._run())
        except SealpipeError as error:
            what = partial(self._schedule.ended, self, error)
        except Killed:
            what = partial(nothing)
        except BaseException as error:  # noqa: BLE001 - the schedule raises it
            what = partial(self._schedule.fail, error)
        self.runs = False
        self._schedule.play_on(what)
        self._schedule.resume_next()

    def _open(self, base_url: str, short_code: str) -> Ledger | None:
        work = partial(open_ledger, self._schedule.folder, base_url, short_code)
        record: Ledger | None = self.stop(partial(self._schedule.do, self, work))
        return None if record is None else cast(Ledger, Stopping(record, self))


@dataclass
class Clocked:
    """What a command needs of a session: who it talks to, and time that the schedule moves."""

    schedule: Schedule
    command: Command
    base_url: str = BASE_URL
    policy_hooks: tuple[()] = ()
    deadline: float = 60.0

    def start_budget(self) -> Budget:
        return Budget(self.deadline, lambda: self.schedule.now, self.schedule.random.random, self)

    def send(self, operation: Operation[Any], timeout: float) -> Response | Failure:
        answer: Response | Failure = self.command.stop(
            partial(self.schedule.send, self.command, operation, timeout)
        )
        return answer

    def wait(self, seconds: float) -> None:
        self.command.stop(partial(self.schedule.wait, self.command, seconds))

    def check_clear(self, *texts: str | None) -> None:
        """It has no credential that a text could hold."""


@dataclass
class Stopping:
    """A ledger each of whose calls is a step of its command."""

    ledger: Ledger
    command: Command

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.ledger, name)
        if not callable(found) or name == "close":
            return found
        return lambda *words: self.command.stop(
            partial(self.command._schedule.do, self.command, partial(found, *words))
        )


@dataclass
class Schedule:
    """One schedule. `wrong` are the promises that it broke."""

    seed: int
    folder: Path
    now: float = 0.0
    wrong: list[str] = field(default_factory=list)
    commands: list[Command] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = chance = random.Random(self.seed)  # noqa: S311 - to be played again
        near = chance.random() < 0.3
        ends = chance.uniform(20, 900) if near else chance.uniform(3 * HOUR, 30 * 24 * HOUR)
        self.service = Service(ends, tells_removed=chance.random() < 0.5)
        self.dateless = chance.random() < 0.1
        # Where the service tells its clock, ours may be as wrong as it likes.
        self.wild = not self.dateless and chance.random() < 0.5
        self.skew = chance.choice([-9 * HOUR, 9 * HOUR]) if self.wild else chance.uniform(-600, 600)
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._number = 0
        self._next: Command | None = None
        self._failure: BaseException | None = None
        self._baton = threading.Event()

    def our_clock(self) -> datetime:
        return EPOCH + timedelta(seconds=self.now + self.skew)

    # -- time -------------------------------------------------------------------------------------

    def at(self, when: float, what: Callable[[], None]) -> None:
        self._number += 1
        heapq.heappush(self._events, (when, self._number, what))

    def play(self) -> None:
        """Everything that was planned, and then a quiet run that must bring it to its end."""
        chance = self.random
        span = chance.choice([5.0, 60.0, 300.0, 2 * HOUR])
        for _ in range(chance.randint(0, 6)):
            self.at(chance.uniform(0, span), lambda: self.service.submit(self.now))
        purges = chance.random() < 0.2
        for number in range(chance.randint(1, 4)):
            kind = "purge" if purges and number and chance.random() < 0.5 else "expire"
            self.at(chance.uniform(0, span), lambda kind=kind: self.start(kind, faults=True))
        self._run()
        self._finish()

    def _run(self) -> None:
        if self.play_on(nothing) is not None:
            self.resume_next()
            self._baton.wait()
            self._baton.clear()
        if self._failure is not None:
            raise self._failure

    def play_on(self, what: Callable[[], None]) -> Command | None:
        """Do that and then all that is planned, until a command is to go on: which? None at the
        end.
        """
        self._next = None
        try:
            what()
            while self._next is None and self._events:
                when, _, what = heapq.heappop(self._events)
                self.now = max(self.now, when)
                what()
        except BaseException as error:  # noqa: BLE001 - raised in the thread that began
            self._failure, self._next = error, None
        return self._next

    def resume_next(self) -> None:
        """Let the command that is to go on do so, or at the end the thread that began."""
        if self._next is None:
            self._baton.set()
        else:
            self._next.resume()

    def fail(self, error: BaseException) -> None:
        """End it: a command has failed with what is no error of ours."""
        raise error

    def close(self) -> None:
        """End all threads. One that still runs is killed."""
        self._events.clear()
        for command in self.commands:
            if command.runs:
                command.kill()
                command.resume()
                self._baton.wait()
                self._baton.clear()
            command.join()

    def _finish(self) -> None:
        """A user who runs it again and again, an hour apart, without faults: at most three
        times.
        """
        for _ in range(3):
            self.at(self.now + HOUR + 1, lambda: self.start("expire", faults=False))
            self._run()
            last = self.commands[-1].ended
            if isinstance(last, EndedRequest) and last.outcome != "expiring":
                return
            if isinstance(last, NotFoundError) and self.service.destroyed_by:
                return
        self.wrong.append(f"never came to an end: {self.commands[-1].ended!r}")

    # -- commands ---------------------------------------------------------------------------------

    def start(self, kind: str, *, faults: bool) -> None:
        command = Command(self, kind, faults=faults)
        self.commands.append(command)
        self.go_on(command, None, None)

    def go_on(self, command: Command, result: Any, error: Exception | None) -> None:
        if command.killed:
            return
        if command.faults and self.random.random() < 0.03:
            self.kill(command)
            return
        command.answer = result, error
        self._next = command

    def wait(self, command: Command, seconds: float) -> None:
        self.at(self.now + seconds, lambda: self.go_on(command, None, None))

    def do(self, command: Command, work: Callable[[], Any]) -> None:
        size = self.size()
        result, error = None, None
        try:
            result = work()
        except SealpipeError as failed:
            error = failed
        if isinstance(result, Ledger):
            command.record = result
        if command.faults and 0 < size < self.size() and self.random.random() < 0.03:
            self.kill(command, torn_after=size)
            return
        stall = self.random.choice([*[0.01] * 20, 0.3, 20.0, 90.0]) if command.faults else 0.0
        self.at(self.now + stall, lambda: self.go_on(command, result, error))

    def again(self, command: Command) -> None:
        """Whoever sees a command fail mostly runs it again, sooner or later."""
        if command.faults and len(self.commands) < MOST_COMMANDS and self.random.random() < 0.8:
            when = self.now + self.random.uniform(0, self.random.choice([2, 60, 1200]))
            self.at(when, lambda: self.start(command.kind, faults=True))

    def kill(self, command: Command, torn_after: int | None = None) -> None:
        """As SIGKILL: nothing of ours runs any more, and the kernel lets go of the lock."""
        self.again(command)
        if torn_after is not None:
            (file,) = self.folder.iterdir()
            os.truncate(file, self.random.randint(torn_after, self.size()))
        command.kill()
        if command.runs:
            self._next = command  # its thread ends

    def ended(self, command: Command, result: EndedRequest | SealpipeError) -> None:
        command.ended = result
        if command.kind == "expire" and command.deletes > 1:
            self.wrong.append(f"one expire sent {command.deletes} DELETEs")
        if not isinstance(result, EndedRequest):
            self.again(command)
            if isinstance(result, DeliveryError) and self.service.active(self.now):
                self.wrong.append("told to have expired, and has not")
            if isinstance(result, NotFoundError) and not self.service.destroyed_by:
                self.wrong.append("told to be missing, and is not")
            return
        if result.outcome != "expiring":
            if self.service.active(self.now):
                self.wrong.append(f"{result.outcome}, and still active")
            missing = {*self.service.submissions, *self.service.destroyed} - self.kept()
            if missing:
                self.wrong.append(
                    f"{command.kind}: {result.outcome}, and {sorted(missing)} not kept"
                )
        elif command.deletes:
            self.wrong.append("a DELETE was sent to a request that ends by itself")

    # -- the network ------------------------------------------------------------------------------

    def send(self, command: Command, operation: Operation[Any], timeout: float) -> None:
        deleting = operation.method == "DELETE"
        fate = (
            self.random.choice(DELETING if deleting else READING) if command.faults else "answered"
        )
        if deleting:
            self.on_delete(command, operation)
        travel = self.random.choice([0.01, 0.2, 3.0, 25.0]) if command.faults else 0.01
        if fate in ("refused connection", "lost"):
            pause = self.random.choice([0.0, timeout])
            failure = Failure(sent=fate == "lost", detail=fate)
            self.at(self.now + pause, lambda: self.go_on(command, failure, None))
            return
        if fate in ("429", "401", "500/11", "502"):
            members = {
                "429": {"error_code": 107},
                "500/11": {"error_code": 11},
                "401": {"message": "Unauthorized"},
            }
            status = int(fate[:3])
            answer = Response(
                status, {}, json.dumps(members[fate]).encode() if fate in members else b"<html>"
            )
            self.at(self.now + travel, lambda: self.go_on(command, answer, None))
            return
        if "late" in fate:
            travel = self.late(deleting=deleting)
        gives_up = self.now + timeout
        answered_early = fate == "504, and late"

        def arrives() -> None:
            answer = self.dated(self.service.handle(operation, command.kind, self.now), fate)
            if fate == "500/11 after":
                answer = told(500, {"error_code": 11})
            if fate == "garbled":
                answer = Response(200, {}, b'{"short_code":')
            if fate != "answer lost" and not answered_early and self.now < gives_up:
                if operation.path.endswith("/submissions") and fate not in (
                    "garbled",
                    "500/11 after",
                ):
                    command.read = set(self.service.submissions)
                self.go_on(command, answer, None)

        left = (travel < timeout and fate != "answer lost") and not answered_early
        self.at(self.now + travel, arrives)
        if not left:
            silent = (
                Response(504, {}, b"<html>") if answered_early else Failure(sent=True, detail=fate)
            )
            self.at(
                min(gives_up, self.now + self.random.choice([0.1, timeout])),
                lambda: self.go_on(command, silent, None),
            )

    def late(self, *, deleting: bool) -> float:
        """Seconds until something late arrives; see the top for what may be counted on."""
        longest = HOUR - 1 if deleting and self.service.ends > self.now + HOUR else 59.0
        return self.random.choice([self.random.uniform(0, 59.0), self.random.uniform(0, longest)])

    def dated(self, answer: Response, fate: str) -> Response:
        if self.dateless or (fate == "no date" and not self.wild):
            return answer
        date = format_datetime(
            (EPOCH + timedelta(seconds=self.now)).replace(microsecond=0), usegmt=True
        )
        return Response(answer.status, {"date": date}, answer.body)

    def on_delete(self, command: Command, operation: Operation[Any]) -> None:
        command.deletes += 1
        assert operation.own_connection
        if command.read is None or command.read - self.kept():
            self.wrong.append("a DELETE before everything that was read was kept")

    # -- the state folder -------------------------------------------------------------------------

    def size(self) -> int:
        return (
            sum(path.stat().st_size for path in self.folder.iterdir())
            if self.folder.is_dir()
            else 0
        )

    def kept(self) -> set[str]:
        """The codes of the submissions that are kept, by our own reading of the file."""
        found = set()
        for path in self.folder.glob("*.jsonl"):
            for line in path.read_text().splitlines(keepends=True):
                if line.endswith("\n") and "submission" in (event := json.loads(line)):
                    row = event["submission"]
                    assert row["data"] == f"ciphertext of {row['short_code']}"
                    found.add(row["short_code"])
        return found

    def verdict(self) -> list[str]:
        """Every promise that was broken."""
        if self.service.destroyed_by == "expire":
            self.wrong.append(f"destroyed without purge: {self.service.destroyed}")
        return self.wrong


def played(seed: int, folder: Path) -> Schedule:
    """A schedule, played to its end in a state folder of its own."""
    schedule = Schedule(seed, folder)
    try:
        schedule.play()
    finally:
        schedule.close()
    schedule.verdict()
    return schedule
