"""A share that sends its messages, or a reminder, killed at one step after another: no second
message, no link lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cli.outside import State, look
from sealpipe_rehearsal.running_service import RunningService
from support.fake_web import Receiver
from support.job import Job
from support.strace import Point
from support.terminal import Done

MATTER = (
    "write", "fsync", "ftruncate", "linkat", "unlink", "connect", "sendto", "recvfrom",
    "exit_group",
)  # fmt: skip
"""The calls that change what is on disk, at the receiver's or on stdout, and the last one of all:
each is tried.
"""

CODE = "code.txt"


@dataclass(frozen=True)
class Found:
    """What there was after a kill, after `resume`, and (where that was not enough) after `resume
    --resend`.
    """

    point: Point
    code: int
    messages: Sequence[str]
    then: Sequence[str]
    resumed: int
    finally_: Sequence[str]
    shares: int
    entries: list[str]
    left: list[str]
    opens: bool
    said: str
    state: State

    def wrong(self) -> str | None:
        """What broke the promise; None where it is kept."""
        if not self.shares:
            return (
                f"messages of no share: {self.finally_}" if self.finally_ or self.entries else None
            )
        if self.shares > 1:
            return "two shares"
        if len(self.then) > 1:
            return "a second message that nobody asked for"
        if self.resumed not in (0, 11):
            return f"resume ended with {self.resumed}"
        if self.resumed == 0 and len(self.then) != 1:
            return "resume says that all is out, and nothing is"
        if self.resumed == 11 and len(self.finally_) != len(self.then) + 1:
            return "--resend did not send once more"
        if len(set(self.finally_)) != 1:
            return "two messages with different links"
        if self.entries or self.left:
            return f"litter: {self.entries} {self.left}"
        if not self.opens:
            return "the link does not open"
        return "a traceback" if "Traceback" in self.said or "bug of ours" in self.said else None


@dataclass(frozen=True)
class Delivering:
    """A share that sends its link to a receiver and its passcode to a file, or one to a file and
    the other there.
    """

    service: RunningService
    to_file: bool
    kind: type[Job] = Job

    def job(self, place: Path) -> Job:
        job = self.kind(place, self.service)
        job.terminal.environ["SEALPIPE_PLUGIN_WEBHOOK__SECRET"] = "whsec-0123456789abcdef"
        job.terminal.environ["CODE"] = "open sesame"
        return job

    def words(self, receiver: Receiver) -> list[str]:
        channels = [receiver.target, f"file:{CODE}"]
        send, passcode_to = reversed(channels) if self.to_file else channels
        return ["--passcode-from", "env:CODE", "--send", send, "--passcode-to", passcode_to]

    def points(self, place: Path) -> list[Point]:
        """The calls of an undisturbed delivery that matter, from the service's answer on; then one
        beyond.
        """
        job = self.job(place)
        with Receiver() as receiver:
            words = self.words(receiver)
            found = job.steps(
                place / "trace", lambda under: job.share(*words, under=under), "recvfrom(", MATTER
            )
            assert len(receiver.hooks) == 1
            return found

    def kill_at(self, point: Point, place: Path) -> Found:
        job = self.job(place)
        with Receiver() as receiver:
            words = self.words(receiver)
            killed = job.share(*words, under=job.killing(point, place / "log"))
            messages = list(receiver.secrets)
            state = look(job, killed, messages)
            resumed = job.resume()
            then = list(receiver.secrets)
            last = job.resume("--resend") if resumed.code == 11 else resumed
            assert last.code == 0, last
            return Found(
                point,
                killed.code,
                messages,
                then,
                resumed.code,
                list(receiver.secrets),
                len(job.shares()),
                job.entries(),
                job.left(),
                self._opens(job, receiver),
                killed.err + resumed.err,
                state,
            )

    def _opens(self, job: Job, receiver: Receiver) -> bool:
        files = {path.name: path.read_text().rstrip("\n") for path in job.terminal.here.iterdir()}
        if not receiver.secrets:
            return not files
        there, here = receiver.secrets[0], files.get(CODE, "")
        link, passcode = (here, there) if self.to_file else (there, here)
        fields = self.service.recipient().open_link(link, passcode)
        return len(fields) == len(files) == 1


RECEIPT = "r.json"


@dataclass(frozen=True)
class Reminded:
    """Which messages there were after a kill, after the same command again, and after `resume`
    (`--resend` after 11).

    `again` and `resumed` are exit codes.
    """

    point: Point
    code: int
    messages: Sequence[str]
    again: int
    then: Sequence[str]
    resumed: int
    finally_: Sequence[str]
    link: str
    entries: list[str]
    left: list[str]
    said: str
    state: State

    def wrong(self) -> str | None:
        """What broke the promise; None where it is kept."""
        if len(self.messages) > 1:
            return "two messages of one reminder"
        if self.again == 0 and (
            len(self.then) != len(self.messages) + 1 or self.finally_ != self.then
        ):
            return "a reminder that was nothing but asked for was not sent once"
        if self.again not in (0, 11):
            return f"the second reminder ended with {self.again}"
        if self.again == 11 and self.then != self.messages:
            return "a second reminder was sent while the first one was not finished"
        if self.again == 11 and self.resumed == 0 and len(self.finally_) != 1:
            return "resume says that all is out, and nothing is"
        if self.again == 11 and self.resumed == 11 and len(self.finally_) != len(self.then) + 1:
            return "--resend did not send once more"
        if set(self.finally_) != {self.link}:
            return "a message with another link"
        if self.entries or self.left:
            return f"litter: {self.entries} {self.left}"
        return "a traceback" if "Traceback" in self.said or "bug of ours" in self.said else None


@dataclass(frozen=True)
class Reminding:
    """A request whose collect link is sent once more, to a receiver."""

    service: RunningService
    kind: type[Job] = Job

    def points(self, place: Path) -> list[Point]:
        """The steps of an undisturbed reminder; then one beyond."""
        with Receiver() as receiver:
            job, _ = self._ask(place)
            found = job.steps(
                place / "trace", lambda under: self._remind(job, receiver, under), "", MATTER
            )
            assert len(receiver.hooks) == 1
            return found

    def kill_at(self, point: Point, place: Path) -> Reminded:
        with Receiver() as receiver:
            job, link = self._ask(place)
            killed = self._remind(job, receiver, job.killing(point, place / "log"))
            messages = list(receiver.secrets)
            state = look(job, killed, messages)
            again = self._remind(job, receiver)
            then = list(receiver.secrets)
            resumed = job.resume()
            if resumed.code == 11:
                assert job.resume("--resend").code == 0
            return Reminded(
                point, killed.code, messages, again.code, then, resumed.code,
                list(receiver.secrets), link,
                job.entries(), job.left(), killed.err + again.err + resumed.err, state,
            )  # fmt: skip

    def _ask(self, place: Path) -> tuple[Job, str]:
        job = self.kind(place, self.service)
        job.terminal.environ["SEALPIPE_PLUGIN_WEBHOOK__SECRET"] = "whsec-0123456789abcdef"
        return job, job.run("request", "-a", "Password", "--receipt", RECEIPT).out.strip()

    def _remind(self, job: Job, receiver: Receiver, under: Any = ()) -> Done:
        return job.run("requests", "remind", RECEIPT, "--send", receiver.target, under=under)
