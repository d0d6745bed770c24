"""What is to be collected, and where it goes, checked before anything is asked. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from sealpipe.errors import UsageError
from sealpipe.flows.collect.key import OpensWith
from sealpipe.flows.collect.pick import WORDS, check_pick
from sealpipe.flows.store.targets import KeyMapping, SinkTarget, make_plain_name, map_keys, parse_targets
from sealpipe.flows.store.write import SinkWrite, merge_writes
from sealpipe.plugin import Mode, Stored
from sealpipe.reference import Reference
from sealpipe.secret import Secret
from sealpipe.times import as_seconds
from sealpipe.wire.link import called

if TYPE_CHECKING:
    from sealpipe.prompts import Prompt
    from sealpipe.state.receipt import Receipt

After = Literal["keep", "expire"]
PLACES = ("submission", "request")


@dataclass(frozen=True, slots=True)
class CollectJob:
    """One request: its short code, what its receipt tells where there is one, and what each target takes of it."""

    short_code: str
    receipt: Receipt | None
    takes: tuple[tuple[SinkTarget, tuple[KeyMapping, ...]], ...]

    @property
    def prompts(self) -> tuple[Prompt, ...] | None:
        """What was asked; None where nobody here knows."""
        return None if self.receipt is None else self.receipt.prompts


@dataclass(frozen=True, slots=True)
class CollectPlan:
    """What is to be collected. `wait` is in seconds; `folder` takes each submission as a folder of files.

    `state` is where ciphertext and ledger are kept, None for nowhere on disk.
    """

    jobs: tuple[CollectJob, ...]
    key: OpensWith = field(default="credential", repr=False)
    wait: float = 0.0
    pick: str = "only"
    after: After = "keep"
    folder: Path | None = None
    state: Path | None = None
    dry_run: bool = False


def plan_collect(
    requests: Sequence[str | Receipt],
    *,
    key: OpensWith = "credential",
    wait: timedelta | str | None = None,
    pick: str = "only",
    to: Sequence[str | Reference] = (),
    mode: Mode = "create",
    folder: str | Path | None = None,
    after: After = "keep",
    state: str | Path | None = None,
    dry_run: bool = False,
) -> CollectPlan:
    """Check what is asked for. Each request is a short code or a receipt. Raises UsageError."""
    if not requests:
        raise UsageError("there is nothing to collect", remedy="name a request: its short code, or its receipt's file")
    if after not in ("keep", "expire"):
        raise UsageError("after is neither keep nor expire")
    if not pick:
        raise UsageError("pick is empty", remedy="it is one of " + ", ".join(WORDS) + ", or a submission's short code")
    check_pick(pick)
    seconds = 0.0 if wait is None else as_seconds(wait)
    if seconds < 0:
        raise UsageError("wait is less than nothing", remedy="leave it out to look once")
    targets = parse_targets(to, mode, PLACES)
    jobs = [_plan_job(each, targets) for each in requests]
    codes = [job.short_code for job in jobs]
    for code in codes:
        called(code)
        if codes.count(code) > 1:
            raise UsageError(f"the request {code} is named twice", remedy="name each once")
    for target in targets:
        _check_places(target, several=len(codes) > 1, each=pick == "each")
    return CollectPlan(
        tuple(jobs),
        key,
        seconds,
        pick,
        after,
        None if folder is None else Path(folder).absolute(),
        None if state is None else Path(state),
        dry_run,
    )


def sample_writes(job: CollectJob) -> list[SinkWrite]:
    """What goes where, with places filled and without values: whether it can be is known before anything is asked."""
    places = {"submission": "submission", "request": make_plain_name(job.short_code)}
    return merge_writes(
        SinkWrite(target.filled(places), tuple(Stored(each.key, Secret("")) for each in taken), target.mode, "")
        for target, taken in job.takes
    )


def _plan_job(request: str | Receipt, targets: Sequence[SinkTarget]) -> CollectJob:
    receipt = None if isinstance(request, str) else request
    prompts = None if receipt is None else receipt.prompts
    code = request if isinstance(request, str) else request.short_code
    job = CollectJob(code, receipt, tuple((target, tuple(map_keys(target, prompts))) for target in targets))
    sample_writes(job)
    return job


def _check_places(target: SinkTarget, *, several: bool, each: bool) -> None:
    """A place without `{submission}` takes exactly one: a second answer must not meet the first there."""
    if each and "submission" not in target.places:
        raise UsageError(
            f"{target.shown} takes one submission, and each is asked for",
            remedy="put {submission} into it, or choose one with --pick",
        )
    if several and not target.places:
        raise UsageError(
            f"{target.shown} takes one submission, and several requests are named",
            remedy="put {request} or {submission} into it",
        )
