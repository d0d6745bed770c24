"""Plan a collection, before anything is sent.

Which submissions to pick, and where to store them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

from sealpipe.api.requests import Submissions
from sealpipe.api.responses import escape_text
from sealpipe.collect.results import OnProgress, OpenedSubmission, describe_no_match
from sealpipe.errors import (
    CheckError,
    Remedy,
    SubmissionNotFoundError,
    TooManySubmissionsError,
    UsageError,
    find_similar,
)
from sealpipe.parsing import NAME_PLACEHOLDER, as_seconds, fill_name
from sealpipe.plugin import Mode, SinkField
from sealpipe.prompts import Prompt
from sealpipe.reference import Reference, parse
from sealpipe.requirements import Need
from sealpipe.secret import Secret
from sealpipe.share.options import list_needs
from sealpipe.sinks.targets import KeyMapping, SinkTarget, make_plain_name, map_keys, parse_targets
from sealpipe.sinks.write import SinkWrite, merge_writes
from sealpipe.state.ledger import LedgerOpener
from sealpipe.state.receipt import Receipt
from sealpipe.wire.keys import KeyPair
from sealpipe.wire.link import called

PICK_RULES = ("only", "newest", "oldest", "each")
"""The words for `pick`; anything else is the short code of a submission, or its marker."""
_SYNONYMS = {
    **dict.fromkeys(("last", "latest", "recent", "youngest"), "newest"),
    **dict.fromkeys(("first", "earliest"), "oldest"),
    **dict.fromkeys(("all", "every", "both"), "each"),
    **dict.fromkeys(("any", "one", "single"), "only"),
}
"""Other words that people use for them."""
_SIMILARITY = 0.75
"""Minimum similarity of a mistyped word to one of ours.

Our words have at most ten letters; codes have twelve.
"""
_SHOWN = 10
_EARLIEST = datetime.min.replace(tzinfo=UTC)


def pick(
    submissions: Sequence[OpenedSubmission], rule: str, short_code: str
) -> list[OpenedSubmission]:
    """Return the submissions that the rule picks; none if there is none.

    Raises TooManySubmissionsError.
    """
    if rule == "each":
        return list(submissions)
    if rule not in ("newest", "oldest"):
        matching = [each for each in submissions if rule in ("only", each.short_code, each.marker)]
        if len(matching) > 1:
            raise _make_too_many_error(matching, len(submissions), short_code)
        return matching
    if not submissions:
        return []
    # A submission without a time is the oldest; else in the service's order.
    ordered = sorted(
        enumerate(submissions), key=lambda each: (each[1].created_at or _EARLIEST, each[0])
    )
    return [ordered[-1 if rule == "newest" else 0][1]]


def check_pick(rule: str) -> None:
    """Raise UsageError for a mistyped word.

    It would be taken for a code, and collect would wait for it.
    """
    if rule in PICK_RULES:
        return

    word = rule.lower()
    # A code that looks like one of our words can still be named by its marker, which contains a
    # dot.
    suggestion = _SYNONYMS.get(word) or next(
        iter(find_similar(word, PICK_RULES, similarity=_SIMILARITY)), None
    )
    if suggestion and word.isascii() and word.isalpha():
        raise UsageError(
            (
                f"{rule!r} is not one of {', '.join(PICK_RULES)}, and does not look like a "
                "submission's code"
            ),
            remedy=f"did you mean {suggestion}? Name a submission with such a code by its marker",
        )


def has_match(submissions: Sequence[OpenedSubmission], rule: str) -> bool:
    """Return whether there is a submission to pick, even if there are too many."""
    return any(rule in PICK_RULES or rule in (each.short_code, each.marker) for each in submissions)


def _make_too_many_error(
    matching: Sequence[OpenedSubmission], count: int, short_code: str
) -> TooManySubmissionsError:
    return TooManySubmissionsError(
        f"{short_code} has {count} submissions, but --pick only accepts exactly one: "
        f"{_name_submissions(matching)}; "
        "nothing was stored",
        short_code=short_code,
    )


def make_no_match_error(
    submissions: Sequence[OpenedSubmission], rule: str, short_code: str
) -> SubmissionNotFoundError:
    """Make the error for a request that ended without a match; `submissions` is not empty."""
    return SubmissionNotFoundError(
        f"{short_code} has ended, and {describe_no_match(len(submissions), rule)}: "
        f"{_name_submissions(submissions)}; nothing was stored",
        short_code=short_code,
    )


def _name_submissions(submissions: Sequence[OpenedSubmission]) -> str:
    shown = submissions[:_SHOWN]
    codes = [each.short_code for each in shown]
    # If two submissions have one code, their markers differ.
    is_unique = [
        each.short_code is not None and codes.count(each.short_code) == 1 for each in shown
    ]
    names = [
        escape_text(str(each.short_code), 60) if unique else each.marker
        for each, unique in zip(shown, is_unique, strict=True)
    ]
    return ", ".join(names) + (", ..." if len(submissions) > _SHOWN else "")


AfterCollect = Literal["keep", "expire"]
KeyChoice = str | Secret | Reference | KeyPair
"""How a key is given: `credential`, a reference, or the seed, access link or credential itself."""
PLACEHOLDERS = ("submission", "request")
"""Placeholders of a target. With the request's receipt there is another one, its `name`."""


@dataclass(frozen=True, slots=True)
class CollectJob:
    """A request to collect, by short code or receipt, and the keys that each target takes."""

    short_code: str
    receipt: Receipt | None
    mappings: tuple[tuple[SinkTarget, tuple[KeyMapping, ...]], ...]
    listed: Submissions | None = field(default=None, repr=False)
    """What its caller has listed just now, which spares the first call."""

    @property
    def targets(self) -> list[SinkTarget]:
        """Where its submissions go."""
        return [target for target, _ in self.mappings]

    @property
    def prompts(self) -> tuple[Prompt, ...] | None:
        """The request's prompts; None if they are unknown."""
        return None if self.receipt is None else self.receipt.prompts

    @property
    def name(self) -> str | None:
        """The owner's name for the request; None if it has none, or it is unknown."""
        return None if self.receipt is None else self.receipt.name

    def make_placeholders(self, submission: str) -> dict[str, str]:
        """Return the values of placeholders in targets, by name; `submission` is a marker."""
        names = {} if self.name is None else {"name": self.name}
        return {"submission": submission, "request": make_plain_name(self.short_code), **names}


SubmissionCheck = Callable[[CollectJob, OpenedSubmission], CheckError | None]
"""Returns an error for a submission that must not be stored."""


@dataclass(frozen=True, repr=False, eq=False)
class CollectPlan:
    """What to collect, and how: checked and parsed. `plan_collect` makes it."""

    jobs: tuple[CollectJob, ...]
    """The requests, each with its keys for each target."""
    key: KeyChoice
    """What opens submissions."""
    seconds: float
    """How long to wait for a submission."""
    pick: str
    folder: Path | None
    """The folder that receives each submission as a folder of files, absolute."""
    check: str | None
    """The name of a check in the user's config file."""
    after: AfterCollect
    state: Path | LedgerOpener | None
    """The folder for ciphertext and ledger, or what opens a ledger instead; None: nothing is stored
    on disk.
    """
    on_progress: OnProgress | None

    @property
    def needs(self) -> tuple[Need, ...]:
        """The sources and sinks that it uses."""
        receipts = [
            job.receipt for job in self.jobs if job.receipt is not None and job.receipt.key == "new"
        ]
        seeds = (
            [each.seed for each in receipts if each.seed is not None]
            if self.key == "credential"
            else [self.key]
        )
        refs = [parse(each, "the key") if isinstance(each, str) else each for each in seeds]
        return list_needs(
            refs, [target.ref for job in self.jobs for target, _ in job.mappings], None
        )


def plan_collect(
    requests: Sequence[str | Receipt],
    *,
    key: KeyChoice = "credential",
    wait: timedelta | str | None = None,
    pick: str = "only",
    to: Sequence[Reference | str] = (),
    mode: Mode = "create",
    folder: str | Path | None = None,
    check: str | None = None,
    after: AfterCollect = "keep",
    state: str | Path | LedgerOpener | None = None,
    on_progress: OnProgress | None = None,
) -> CollectPlan:
    """Plan a collection, with the arguments of `Client.collect_each`.

    Checks what they say together, as far as possible without a source, a sink or the service; each
    by itself was checked where it came in. Raises UsageError.
    """
    if not requests:
        remedy = "name a request: its short code, or its receipt's file"
        raise UsageError("there is nothing to collect", remedy=remedy)
    if not pick:
        remedy = "it is one of " + ", ".join(PICK_RULES) + ", or a submission's short code"
        raise UsageError("pick is empty", remedy=remedy)
    check_pick(pick)
    if check == "":
        raise UsageError(
            "check is empty", remedy="name a check of the config file, or leave it out"
        )
    seconds = 0.0 if wait is None else as_seconds(wait)
    if seconds < 0:
        raise UsageError("wait is negative", remedy="leave it out to poll once")
    targets = parse_targets(to, mode, (*PLACEHOLDERS, "name"))
    jobs = [_plan_job(each, targets, folder) for each in requests]
    codes = [job.short_code for job in jobs]
    for code in codes:
        called(code)
        if codes.count(code) > 1:
            raise UsageError(f"the request {code} is given twice", remedy="give each once")
    for target in targets:
        _check_placeholders(target, [job.name for job in jobs], takes_each=pick == "each")
    return CollectPlan(
        jobs=tuple(jobs),
        key=key,
        seconds=seconds,
        pick=pick,
        folder=None if folder is None else Path(folder).absolute(),
        check=check,
        after=after,
        state=state if state is None or callable(state) else Path(state),
        on_progress=on_progress,
    )


def plan_sample_writes(job: CollectJob) -> list[SinkWrite]:
    """Plan writes without values, to find mistakes before anything is read or sent."""
    placeholders = job.make_placeholders("submission")
    return merge_writes(
        SinkWrite(
            target.fill(placeholders),
            tuple(SinkField(each.key, Secret("")) for each in key_mappings),
            target.mode,
            "",
        )
        for target, key_mappings in job.mappings
    )


def _plan_job(
    request: str | Receipt, targets: Sequence[SinkTarget], folder: str | Path | None
) -> CollectJob:
    receipt = None if isinstance(request, str) else request
    prompts = None if receipt is None else receipt.prompts
    code = request if isinstance(request, str) else request.short_code
    job = CollectJob(
        code, receipt, tuple((target, tuple(map_keys(target, prompts))) for target in targets)
    )
    texts = [target.text for target in targets if "name" in target.placeholders]
    texts += [] if folder is None or NAME_PLACEHOLDER not in str(folder) else [str(folder)]
    if texts and job.name is None:
        raise UsageError(
            f"{texts[0]} contains {{name}}, and the name of request {code} is not known",
            remedy=Remedy(
                "collect by a receipt of `sealpipe request --name NAME --receipt FILE`",
                python="collect by the .receipt of client.request(..., name=NAME)",
            ),
        )
    plan_sample_writes(job)
    filled = Path(fill_name("" if folder is None else str(folder), job.name, "--dir"))
    with suppress(OSError):  # what cannot be looked up is told where it is made
        if filled.exists() and not filled.is_dir():
            raise UsageError(
                "--dir names a file, and takes a folder",
                remedy="name a folder, which may be a new one",
            )
    return job


def _check_placeholders(
    target: SinkTarget, names: Sequence[str | None], *, takes_each: bool
) -> None:
    """Check that a target without `{submission}` gets exactly one.

    A second submission must not overwrite the first.

    `names` are those of the requests.
    """
    if takes_each and "submission" not in target.placeholders:
        raise UsageError(
            f"{target.text} accepts one submission, but --pick each can give several",
            remedy=Remedy(
                "add {submission} to the target, or choose one with --pick",
                python='add {submission} to the target, or choose one, such as pick="newest"',
            ),
        )
    is_by_name = set(target.placeholders) == {"name"} and len(set(names)) == len(names)
    if len(names) > 1 and not is_by_name and not set(target.placeholders) & {*PLACEHOLDERS}:
        raise UsageError(
            f"{target.text} accepts one submission, but there are several requests",
            remedy="add {request} or {submission} to the target",
        )
