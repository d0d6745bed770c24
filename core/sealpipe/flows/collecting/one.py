"""One request: looked at until somebody has answered, then opened, stored and, where asked for, ended.

look     GET: is it ours, and can it still be answered? then the submissions
open     each once; what cannot be opened, or does not answer what was asked, stops none of the others
keep     the ciphertext of what could not be used, before anything else
pick     the answers that are taken: more than that, and nothing is stored
store    every place, each confirmed by its sink; what is there already is not written again
end      only when every place is confirmed: by rule D, which keeps what came late
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from sealpipe.api import requests as api
from sealpipe.api.models import RequestInfo, Submission, Submissions
from sealpipe.errors import KeySwapped, PluginError, SealpipeError, StateError, UsageError, WrongKey
from sealpipe.flows.collecting.keys import InHand
from sealpipe.flows.collecting.opening import Seen, open_all
from sealpipe.flows.collecting.parcels import parcels
from sealpipe.flows.collecting.picking import pick
from sealpipe.flows.collecting.planning import CollectPlan, Job
from sealpipe.flows.collecting.result import (
    Collected,
    OnProgress,
    Placed,
    Planned,
    Progress,
    Received,
    Status,
    Unreadable,
)
from sealpipe.flows.expire_request import Ending, locked
from sealpipe.flows.retry import Budget, call
from sealpipe.flows.session import Session
from sealpipe.flows.steps import Do, Flow
from sealpipe.flows.storing.putting import Parcel, describe, put
from sealpipe.flows.storing.taking import MisfitError
from sealpipe.state.kept import Record


class Collecting:
    """One command's work on one request. `result` is None until it is over."""

    def __init__(self, session: Session, job: Job, plan: CollectPlan, keys: Sequence[InHand], tell: OnProgress) -> None:
        self._session, self._job, self._plan, self._keys, self._tell = session, job, plan, keys, tell
        self._seen: Seen = {}
        self._items: dict[tuple[str | None, str | None], Submission] = {}
        self._asked = self._over = False
        self._skipped = 0
        self.result: Collected | None = None
        self.trouble: SealpipeError | None = None

    @property
    def short_code(self) -> str:
        """The request's."""
        return self._job.short_code

    def look(self, budget: Budget, *, at_state: bool) -> Flow[None]:
        """Look once, and do what there is to do. Raises ServiceError where the look failed, and may be repeated."""
        if at_state or not self._asked:
            self._over = self._ended((yield from call(api.get(self.short_code), budget)))
            self._asked = True
        found: Submissions = yield from call(api.submissions(self.short_code), budget)
        self.trouble = None
        self._skipped = found.skipped or 0
        self._items |= {item.identity: item for item in found.items}
        yield Do(partial(open_all, found.items, self._keys, self._session.credential.tag, self._seen))
        usable, unreadable = self._sorted()
        if pick(usable, "oldest" if self._plan.pick == "only" else self._plan.pick, self.short_code):
            self._tell(Progress("answered", self.short_code))
            self.result = yield from self._collect(usable, unreadable)
        elif self._over:
            self.result = yield from self._unanswered("expired")

    def fail(self, error: SealpipeError) -> None:
        """End it with an error."""
        self.result = self._made("failed", error=error)

    def give_up(self) -> Flow[None]:
        """End it because time is out."""
        if self.trouble is not None:
            self.fail(self.trouble)
        else:
            self.result = yield from self._unanswered("pending")

    def _ended(self, info: RequestInfo) -> bool:
        """Whether it cannot be answered any more. Raises KeySwapped, WrongKey where its key is none of ours."""
        receipt = self._job.receipt
        known = [each.public_key for each in self._keys]
        if receipt is not None and receipt.public_key not in known:
            raise WrongKey(
                "wrong-key",
                f"{self.short_code} was made under a key that is not in hand, by its receipt",
                remedy="name that key with --key REF, or set SEALPIPE_API_KEY_PREVIOUS while rotating",
            )
        if info.public_key is None:
            return info.expires_at is None
        if receipt is not None and info.public_key != receipt.public_key:
            swapped = KeySwapped(
                f"the service shows {self.short_code} under another public key than its receipt: what is submitted "
                "now could not be opened",
                remedy="have nobody answer it any more; what was submitted before opens with --key, once it has ended",
            )
            swapped.short_code = self.short_code
            raise swapped
        if info.public_key not in known:
            raise WrongKey(
                "wrong-key",
                f"{self.short_code} is sealed to another key than those in hand",
                remedy="name its key with --key REF; check that the credential is the one that made it",
            )
        return False

    def _sorted(self) -> tuple[list[Received], list[Unreadable]]:
        """What can be used, and what cannot: because it does not open, or does not answer what is taken of it."""
        for identity, each in self._seen.items():
            if isinstance(each, Received):
                try:
                    parcels(self._job, each, self._plan.folder)
                except MisfitError as misfit:
                    self._seen[identity] = Unreadable(each.short_code, each.created_at, str(misfit))
        found = self._seen.values()
        return (
            [each for each in found if isinstance(each, Received)],
            [each for each in found if isinstance(each, Unreadable)],
        )

    def _collect(self, usable: Sequence[Received], unreadable: Sequence[Unreadable]) -> Flow[Collected]:
        chosen = pick(usable, self._plan.pick, self.short_code)
        made = self._made("collected", unreadable=tuple(unreadable))
        made.submissions = tuple(chosen)
        wanted = [parcel for each in chosen for parcel in parcels(self._job, each, self._plan.folder)]
        words = yield from describe(self._session, wanted)
        if self._plan.dry_run:
            made.planned = tuple(
                Planned(parcel.marker, str(parcel.ref), parcel.keys, told)
                for parcel, told in zip(wanted, words, strict=True)
            )
            return made
        if not wanted and not unreadable and self._plan.after == "keep":
            return made  # nothing that a record would be for
        record = yield from locked(self._session, self.short_code, self._plan.state)
        try:
            yield from self._keep(record, made)
            yield from self._store(record, wanted, made)
            if self._plan.after == "expire" and not made.failures:
                yield from self._end(record, made)
        finally:
            record.close()
        return made

    def _keep(self, record: Record, made: Collected) -> Flow[None]:
        """The ciphertext of what cannot be used."""
        items = [item for item in self._items.values() if isinstance(self._seen[item.identity], Unreadable)]
        try:
            yield Do(partial(record.keep, items))
            made.kept_in = record.place if items else None
        except StateError as error:  # they are at the service, too: no reason to keep the others from their places
            made.warnings += (error.message,)

    def _store(self, record: Record, wanted: Sequence[Parcel], made: Collected) -> Flow[None]:
        for parcel in wanted:
            try:
                receipt = yield from put(self._session, parcel, record)
            except (PluginError, UsageError) as error:
                made.failures += (error,)
                self._tell(Progress("not stored", self.short_code, detail=str(parcel.ref)))
                items = [item for item in self._items.values() if self._marker(item) == parcel.marker]
                yield Do(partial(record.keep, items))
                made.kept_in = record.place
            else:
                made.stored += (Placed(parcel.marker, str(parcel.ref), parcel.keys, receipt.already, receipt.known),)
                self._tell(
                    Progress("already" if receipt.already else "stored", self.short_code, detail=str(parcel.ref))
                )

    def _end(self, record: Record, made: Collected) -> Flow[None]:
        made.ended = yield from Ending(self._session, self.short_code, record).run()
        self._tell(Progress("ended", self.short_code))
        late = [item for item in made.ended.submissions if item.identity not in self._items]
        made.late = len(late)
        if late and self._plan.pick == "each":
            self._items |= {item.identity: item for item in late}
            yield Do(partial(open_all, late, self._keys, self._session.credential.tag, self._seen))
            usable, unreadable = self._sorted()
            new = [each for each in usable if each not in made.submissions]
            yield from self._store(
                record, [parcel for each in new for parcel in parcels(self._job, each, self._plan.folder)], made
            )
            made.submissions = (*made.submissions, *new)
            made.unreadable, made.count = tuple(unreadable), len(self._seen)

    def _unanswered(self, status: Status) -> Flow[Collected]:
        _, unreadable = self._sorted()
        made = self._made(status, unreadable=tuple(unreadable))
        if unreadable and not self._plan.dry_run:
            record = yield from locked(self._session, self.short_code, self._plan.state)
            try:
                yield from self._keep(record, made)
            finally:
                record.close()
        return made

    def _marker(self, item: Submission) -> str:
        found = self._seen.get(item.identity)
        return found.marker if isinstance(found, Received) else ""

    def _made(
        self, status: Status, *, unreadable: tuple[Unreadable, ...] = (), error: SealpipeError | None = None
    ) -> Collected:
        return Collected(
            self.short_code, status, len(self._seen), unreadable=unreadable, skipped=self._skipped, error=error
        )
