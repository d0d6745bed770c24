"""Collect one request.

Poll until there is a submission, then decrypt it, store it and, on request, expire the request.

poll     GET: is the key ours, and can the request still get submissions? then the submissions
open     each once; one that cannot be decrypted, or does not fit the targets, does not stop the
others keep     the ciphertext of what cannot be used, before all else pick     the submissions that
are taken: if there are more, nothing is stored check    each by the user's command, if there is
one: what does not pass is kept as ciphertext store    every target, confirmed by its sink; what is
stored already is not written again expire   only when every target is confirmed; late submissions
are kept
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from math import inf
from pathlib import Path

from sealpipe import actions, policy
from sealpipe.api import requests as api
from sealpipe.api.requests import RequestInfo, Submission
from sealpipe.budget import Budget, call
from sealpipe.collect.open import OpeningKey, SubmissionSet, check_key, plan_writes
from sealpipe.collect.options import (
    CollectJob,
    CollectPlan,
    SubmissionCheck,
    has_match,
    make_no_match_error,
    pick,
)
from sealpipe.collect.results import (
    CollectResult,
    Event,
    OpenedSubmission,
    PlannedWrite,
    Progress,
    ProgressReporter,
    Status,
    StoredValues,
)
from sealpipe.errors import (
    CheckError,
    PluginError,
    PublicKeyMismatchError,
    SealpipeError,
    StateError,
    TooManySubmissionsError,
    UsageError,
)
from sealpipe.expire.request import EndedRequest, RequestExpiry, lock_record
from sealpipe.session import Session
from sealpipe.sinks.write import SinkWrite, describe_writes, write_to_sink
from sealpipe.state.ledger import Ledger


class RequestCollector:
    """One command's work on one request.

    `result` is None until the end; `failures` counts failed polls in a row.
    """

    def __init__(
        self,
        session: Session,
        job: CollectJob,
        plan: CollectPlan,
        keys: Sequence[OpeningKey],
        report: ProgressReporter,
        clock: Callable[[], float],
        *,
        check: SubmissionCheck | None,
        dry_run: bool,
    ) -> None:
        self._session, self._job, self._plan, self._keys, self._report = (
            session,
            job,
            plan,
            keys,
            report,
        )
        self._clock, self._check, self._dry_run = clock, check, dry_run
        self._submissions = SubmissionSet(job, plan.folder, keys, session.credential.tag)
        self._listed = job.listed
        self._is_over = False
        self._next_state_check = -inf  # when its state must be checked at the latest
        self._skipped = 0
        self._kept_in: Path | None = None
        self.result: CollectResult | None = None
        self.last_failure: SealpipeError | None = None
        self.failures = 0

    @property
    def short_code(self) -> str:
        """The request's short code."""
        return self._job.short_code

    def poll(self, budget: Budget, *, check_state: bool) -> None:
        """Poll once, and process the result.

        Raises ServiceError if the poll failed and can be repeated.
        """
        if check_state or self._clock() >= self._next_state_check:
            info = call(api.get(self.short_code), budget)
            try:
                self._is_over = self._check_state(info)
            except PublicKeyMismatchError:
                self._keep_everything(budget)
                raise
        response, self._listed = self._listed, None
        if response is None or self._is_over:  # the last one may have come since
            response = call(api.list_submissions(self.short_code), budget)
        self.last_failure, self.failures = None, 0
        self._skipped = response.skipped or 0
        self._submissions.add(response.items)
        if has_match(self._submissions.usable, self._plan.pick):
            self._report(Progress("answered", self.short_code))
            self.result = self._collect_chosen()
        elif self._is_over:
            self.result = self._finish_expired()

    def record_failure(self, error: SealpipeError) -> None:
        """Record a failed poll that can be repeated."""
        self.last_failure = error
        self.failures += 1

    def fail(self, error: SealpipeError) -> None:
        """End with an error."""
        self.result = self._make_result("failed", error)

    def give_up(self) -> None:
        """End because the time is up."""
        if self.last_failure is not None:
            self.fail(self.last_failure)
            return
        try:
            self.result = self._finish_without_submission("pending")
        except SealpipeError as error:
            self.fail(error)

    def _check_state(self, info: RequestInfo) -> bool:
        """Return whether no more submissions can come.

        Raises PublicKeyMismatchError, WrongKeyError.
        """
        self._next_state_check = inf
        if info.expires_at is not None:
            left = info.expires_at - (info.answered_at or datetime.now(UTC))
            self._next_state_check = self._clock() + max(0.0, left.total_seconds())
        check_key(self.short_code, info.public_key, self._job.receipt, self._keys)
        return info.has_ended

    def _collect_chosen(self) -> CollectResult:
        try:
            chosen = pick(self._submissions.usable, self._plan.pick, self.short_code)
        except TooManySubmissionsError:
            # Nothing is stored in sinks; ciphertext of unusable submissions is kept all the same.
            self._kept_in = self._finish_without_submission("failed").kept_in
            raise
        result = self._make_result("collected")
        passed, refused = self._run_check(chosen, result)
        result.submissions = tuple(passed)
        writes = [
            write for each in passed for write in plan_writes(self._job, each, self._plan.folder)
        ]
        words = describe_writes(self._session, writes)
        if self._dry_run:
            result.planned = tuple(
                PlannedWrite(write.marker, str(write.ref), write.keys, description)
                for write, description in zip(writes, words, strict=True)
            )
            return result
        if not writes and not result.unreadable and not refused and self._plan.after == "keep":
            return result  # no ledger is needed
        record = self._open_record()
        try:
            self._keep_ciphertext(record, result, self._submissions.select_unusable())
            self._keep_ciphertext(record, result, refused)
            self._store(record, writes, result)
            if self._plan.after == "expire" and not result.failures:
                self._expire_request(record, result)
        finally:
            record.close()
        return result

    def _run_check(
        self, chosen: Sequence[OpenedSubmission], result: CollectResult
    ) -> tuple[list[OpenedSubmission], list[Submission]]:
        """Return the submissions that pass the check, and the ciphertext of the others."""
        errors: list[CheckError] = []
        if self._check is not None:
            for each in chosen:
                error = self._check(self._job, each)
                errors += [error] if error is not None else []
        result.failures = (*result.failures, *errors)
        markers = {error.submission for error in errors}
        refused = self._submissions.select_unusable(markers) if markers else []
        return [each for each in chosen if each.marker not in markers], refused

    def _keep_ciphertext(
        self, record: Ledger, result: CollectResult, items: Sequence[Submission]
    ) -> None:
        """Store the ciphertext of submissions that cannot be used or could not be stored."""
        try:
            record.keep(items)
            result.kept_in = record.path if items else result.kept_in
        except StateError as error:  # the service still has them, so the others can be stored
            result.warnings += (error.message,)

    def _store(self, record: Ledger, writes: Iterable[SinkWrite], result: CollectResult) -> None:
        stored, failures, left = list(result.stored), list(result.failures), set()
        for write in writes:
            try:
                receipt = write_to_sink(self._session, write, record)
            except (PluginError, UsageError) as error:
                failures.append(error)
                left.add(write.marker)
                self._report(Progress("not stored", self.short_code, detail=str(write.ref)))
            else:
                stored.append(
                    StoredValues(
                        write.marker, str(write.ref), write.keys, receipt.already, receipt.known
                    )
                )
                word: Event = "already" if receipt.already else "stored"
                self._report(Progress(word, self.short_code, detail=str(write.ref)))
        result.stored, result.failures = tuple(stored), tuple(failures)
        if left:
            self._keep_ciphertext(record, result, self._submissions.select_unusable(left))

    def _expire_request(self, record: Ledger, result: CollectResult) -> None:
        try:
            action = actions.describe_ending(self._session, "expire", "request", self.short_code)

            def work(session: Session) -> EndedRequest:
                expiry = RequestExpiry(session, self.short_code, record)
                return expiry.run(was_active=not self._is_over)

            result.ended = policy.run_under_policy(
                self._session, action, work, lambda ended: {"outcome": ended.outcome}
            )
        except SealpipeError as error:
            result.error = error  # everything is stored nevertheless
            return
        self._report(Progress("ended", self.short_code, detail=result.ended.outcome))
        known = self._submissions.known
        late = {
            item.identity: item for item in result.ended.submissions if item.identity not in known
        }
        result.late, result.kept_in = len(late), record.path if late else result.kept_in
        if late and self._plan.pick == "each":
            self._submissions.add(late.values())
            new, _ = self._run_check(self._submissions.select(late), result)  # all of them are kept
            writes = [
                write for each in new for write in plan_writes(self._job, each, self._plan.folder)
            ]
            self._store(record, writes, result)
            result.submissions = (*result.submissions, *new)
            result.unreadable, result.count, result.seen = (
                self._submissions.unreadable,
                len(self._submissions),
                self._submissions.known,
            )

    def _finish_expired(self) -> CollectResult:
        """End an expired request without a match.

        Raises SubmissionNotFoundError if it has other submissions.
        """
        usable, named = self._submissions.usable, self._plan.pick
        # A named submission that cannot be used is reported as such.
        if usable and not any(named == each.short_code for each in self._submissions.unreadable):
            self._kept_in = self._finish_without_submission("failed").kept_in
            raise make_no_match_error(usable, named, self.short_code)
        return self._finish_without_submission("expired")

    def _finish_without_submission(self, status: Status) -> CollectResult:
        result = self._make_result(status)
        if result.unreadable and not self._dry_run:
            record = self._open_record()
            try:
                self._keep_ciphertext(record, result, self._submissions.select_unusable())
            finally:
                record.close()
        return result

    def _open_record(self) -> Ledger:
        return lock_record(self._session, self.short_code, self._plan.state)

    def _keep_everything(self, budget: Budget) -> None:
        """Store all ciphertext when the service can no longer be trusted with it."""
        if self._dry_run:
            return
        with suppress(SealpipeError):  # the mismatch matters more
            response = call(api.list_submissions(self.short_code), budget)
            if response.items:
                record = self._open_record()
                try:
                    record.keep(response.items)
                    self._kept_in = record.path
                finally:
                    record.close()

    def _make_result(self, status: Status, error: SealpipeError | None = None) -> CollectResult:
        return CollectResult(
            self.short_code,
            status,
            len(self._submissions),
            unreadable=self._submissions.unreadable,
            skipped=self._skipped,
            error=error,
            pick=self._plan.pick,
            seen=self._submissions.known,
            kept_in=self._kept_in,
        )
