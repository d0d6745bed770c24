"""`sealpipe request --receipt` killed at one system call after another, and resumed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cli.outside import State, look
from sealpipe.state import receipt as receipts
from sealpipe.wire import keys
from sealpipe.wire.encoding import decode_base64url, encode_base64url
from sealpipe_rehearsal.running_service import RunningService
from support.job import Job, client_of
from support.strace import Point
from support.terminal import Done

MATTER = (
    "mkdir", "flock", "write", "fsync", "link", "linkat", "rename", "unlink", "sendto", "recvfrom",
    "ftruncate", "exit_group",
)  # fmt: skip
"""The calls that change what is on disk, at the service or on stdout, and the last one of all."""
RECEIPT, SEED = "r.json", "seed"
ASK = ("request", "-a", "Staging password", "-a", "user=User name:text")


def codes(job: Job) -> list[str]:
    """The active requests of the job's account, newest first."""
    with client_of(job) as client:
        return [row.short_code for row in client.iter_requests()]


@dataclass(frozen=True)
class Found:
    """What there was after a kill, and after `resume`."""

    point: Point
    code: int
    printed: str
    requests: list[str]
    listed: str
    resumed: int
    links: list[str]
    then: list[str]
    receipt: receipts.Receipt | None
    seed: str | None
    left: list[str]
    said: str
    state: State

    def wrong(self) -> str | None:
        """What broke the promise; None where it is kept."""
        if self.resumed != 0:
            return f"resume ended with {self.resumed}"
        if len(self.then) > 1 or len(set(self.links)) != len(self.then):
            return f"{self.then} requests, {self.links} links"
        if self.then and not self.links[0].endswith(f"/r/{self.then[0]}"):
            return "a link of another request"
        if bool(self.then) != (self.receipt is not None):
            return "no receipt of the request, or one of none"
        if self.receipt is not None and self.receipt.short_code != self.then[0]:
            return "the receipt of another request"
        if self.left:
            return f"litter: {self.left}"
        if self.listed and "request" not in self.listed:
            return f"it is listed as something else: {self.listed}"
        if self.seed is None:
            return (
                "a request without its seed"
                if self.receipt is not None and self.receipt.key == "new"
                else None
            )
        if self.receipt is not None:
            pair = keys.from_seed(decode_base64url(self.seed))
            if encode_base64url(pair.public_key) != self.receipt.public_key:
                return "the seed of another key"
        return "a traceback" if "Traceback" in self.said or "bug of ours" in self.said else None


@dataclass(frozen=True)
class Asking:
    """A request with a receipt, of the credential's key or of a fresh one."""

    service: RunningService
    words: tuple[str, ...]
    job: type[Job] = Job

    def points(self, place: Path) -> list[Point]:
        """The calls of an undisturbed one from the moment it touches what it writes; then one
        beyond.
        """
        job = self.job(place, self.service)
        return job.steps(
            place / "trace",
            lambda under: job.run(*ASK, *self.words, under=under),
            str(job.state),
            MATTER,
        )

    def kill_at(self, point: Point, place: Path) -> Found:
        job = self.job(place, self.service)
        killed = job.run(*ASK, *self.words, under=job.killing(point, place / "log"))
        state = look(job, killed)
        requests = codes(job)
        # Where there is no entry, these would have nothing to tell and nothing to do.
        listed = job.resume("--list").out if job.entries() else ""
        resumed = job.resume() if listed else Done(0, "", "")
        here = job.terminal.here
        return Found(
            point,
            killed.code,
            killed.out,
            requests,
            listed,
            resumed.code,
            list(dict.fromkeys((killed.out + resumed.out).split())),
            codes(job),
            receipts.read_receipt(here / RECEIPT) if (here / RECEIPT).exists() else None,
            (here / SEED).read_text() if (here / SEED).exists() else None,
            job.left(),
            killed.err + resumed.err,
            state,
        )


KEYS: dict[str, tuple[str, ...]] = {
    "the credential's key": ("--receipt", RECEIPT),
    "a fresh key": ("--receipt", RECEIPT, "--key", "new", "--seed-to", f"file:{SEED}"),
}
"""Whose key a request is sealed to, and the options that say so."""
