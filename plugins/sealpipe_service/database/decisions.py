"""What the service decides, each in the database: `Store`, which the routes call.

Whatever two calls could disagree about (views, attempts, ends, rates, allowances, keys of creates)
is decided by one conditional statement, for any number of processes. What is compared before it, in
constant time, are hashes, which never change.
"""

from __future__ import annotations

import hmac
import json
import logging
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ..clock import format_rfc3339, from_timestamp
from ..mail import make_notice
from ..plans import PLANS
from .access import Claim, Database, Row, Transaction

BURST = 2
"""A bucket holds so many minutes of its rate."""
_ROUNDING = 6
CACHE_SECONDS = 30
"""How long calls may still see the plan as it was (specification: Limits, Plan cache delay)."""
LAST_USED_SECONDS = 60
_NO_HASH = "0" * 64
"""Compared where there is none, so that it takes as long."""
HOUR = 60 * 60
DAY = 24 * HOUR
MOST_OF_REQUEST = 100 * 1024 * 1024
"""Characters of ciphertext: all of a request's submissions are one answer, and in memory then."""
MOST_WAITING = 10_000
"""Deliveries to one endpoint: one that never answers fills no disk."""
NOTICES_AN_HOUR = 10
"""Of one share or request and one event: who has a link makes no flood of mails with it."""

_logger = logging.getLogger(__name__)

_SWEEP = "sweep"
"""Who changes many rows takes turns: two that meet in another order would wait for each other."""

Values = Mapping[str, object]
_DROPS: Sequence[tuple[str, Values]] = (
    ("drop_ciphertext", {}),
    *(
        ("drop_accesses", {"of_plan": plan, "older_than": float(limits.access_log_days * DAY)})
        for plan, limits in PLANS.items()
    ),
    *((each, {}) for each in ("drop_records", "drop_buckets", "drop_deliveries")),
)
"""What is not kept, each run until it finds nothing more."""
Codes = Callable[[], str]
"""Draws a short code."""


class QuotaError(Exception):
    """There is room for no further share, key, webhook endpoint or submission."""


class CompromisedError(Exception):
    """The secret was compromised: only a new key can replace it."""


class OtherBodyError(Exception):
    """The idempotency key was used with another body."""


@dataclass(frozen=True)
class Access:
    """Who opened a share, for its access log. Without one, there is no log."""

    address: str
    platform: str
    user_agent: str | None


@dataclass(frozen=True)
class Opening:
    """What became of an attempt to open a share.

    `reason` is None if it is open, and `share` then its content; else `not-found`, `passcode`
    (which spent an attempt), or by what it ended.
    """

    reason: str | None
    share: Row | None = None


class Store:
    """The service's data. Each method is a decision, or reads from one moment."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def now(self) -> float:
        """Return the service's time, in seconds since 1970."""
        return _read_time(self._database.find_one("now"))

    def tag(self) -> str | None:
        """Return the tag that the service was made with; None if it was not made."""
        row = self._database.find_one("tag")
        return None if row is None else row["tag"]

    def set_tag(self, tag: str) -> bool:
        """Give the service its tag; return whether it had none."""
        with self._database.write() as transaction:
            return transaction.row("set_tag", new_tag=tag) is not None

    # -- accounts

    def accounts(self) -> Sequence[Row]:
        """Return the plans of all accounts and organisations that were set, by name."""
        return self._database.find("current_accounts")

    def account(self, name: str) -> Row | None:
        """Return an account's or organisation's plan; None if none was ever set."""
        return self._database.find_one("account", account=name)

    def change_account(
        self, name: str, default: Values, change: Callable[[Values], Values], *, at_once: bool
    ) -> Values:
        """Change a plan, and return it. Calls see it in 30 s, or at once.

        `default` has the columns of an account that was never set, and `change` the new ones of the
        present ones. All processes see it from the same moment.
        """
        names = [name for name in default if name not in ("name", "seen_from")]
        with self._database.write(alone=f"account {name}") as transaction:
            now = _time_of(transaction)
            row = transaction.row("account", account=name)
            if row is None:
                # What calls see until then.
                transaction.change("add_account", **default, name=name, seen_from=0.0)
            present = default if row is None else {each: row[each] for each in names}
            changed = {each: value for each, value in change(present).items() if each in names}
            seen_from = now if at_once else now + CACHE_SECONDS
            transaction.change("add_account", **changed, name=name, seen_from=seen_from)
            transaction.change("forget_old_accounts", account=name)
        return changed

    # -- keys

    def caller(self, key_id: str) -> Row | None:
        """Return a key, revoked or not, with the plan that calls see (`account_...`) and `now`."""
        return self._database.find_one("caller", key=key_id)

    def use(self, key_id: str, now: float, last_used_at: float | None) -> None:
        """Record that a key was used, once a minute."""
        if last_used_at is None or not 0 <= now - last_used_at < LAST_USED_SECONDS:
            self._database.change_quickly("mark_used", key=key_id)

    def take(self, key_id: str, per_minute: int, now: float, amount: int = 1) -> int:
        """Take calls of a rate, all of them or none: of a key's, or of what else has a name.

        `amount` is at most what a bucket holds: `per_minute * BURST`. Return 0 if they are allowed,
        otherwise the seconds to wait for all of them, rounded up.
        """
        rate = {"burst": float(per_minute * BURST), "per_second": per_minute / 60, "now": now}
        taken = self._database.change_quickly("take", key=key_id, amount=float(amount), **rate)
        if taken is not None:
            return 0
        with self._database.write_quickly() as transaction:
            transaction.change("restart_bucket", key=key_id, now=now)
            left = transaction.row("tokens", key=key_id, **rate)
        tokens = 0.0 if left is None else left["tokens"]
        return max(1, math.ceil(round((amount - tokens) / rate["per_second"], _ROUNDING)))

    def add_key(self, values: Values, most: Callable[[Row | None], int | None]) -> bool:
        """Add a key; return whether its id is new.

        `most` is the allowance of keys in the plan of its space (None: no limit), or raises. Raises
        QuotaError; CompromisedError for a secret of a key that was compromised.
        """
        with self._database.write(alone="keys") as transaction:
            self._refuse_compromised(transaction, values)
            allowed = most(transaction.row("account", account=values["space"]))
            used = transaction.row("active_keys", in_space=values["space"])
            if allowed is not None and used is not None and used["count"] >= allowed:
                raise QuotaError
            return transaction.row("add_key", **values) is not None

    def register_custody(self, key_id: str, public_key: str) -> Row | None:
        """Register a key's custody public key, and return the key. Raises CompromisedError."""
        with self._database.write(alone="keys") as transaction:
            key = transaction.row("key", key=key_id)
            if key is not None:
                same = {name: key[name] for name in ("auth_sha256", "custody_sha256")}
                self._refuse_compromised(transaction, {**same, "custody_public_key": public_key})
                transaction.change("register_custody", key=key_id, public_key=public_key)
            return transaction.row("key", key=key_id)

    @staticmethod
    def _refuse_compromised(transaction: Transaction, values: Values) -> None:
        known = transaction.row(
            "compromised",
            auth=values["auth_sha256"],
            public_key=values["custody_public_key"],
            custody=values["custody_sha256"],
        )
        if known is not None:
            raise CompromisedError

    def revoke(self, key_id: str) -> bool:
        """Revoke a key; return whether that is new. Its next call is refused."""
        return self._mark(key_id, "mark_revoked")

    def grant(self, key_id: str) -> bool:
        """Record that a device approved custody `account`; return whether that is new."""
        return self._mark(key_id, "mark_granted")

    def compromise(self, key_id: str) -> bool:
        """Record that a key's custody secret arrived; return whether that is new."""
        return self._mark(key_id, "mark_compromised", alone="keys")

    def _mark(self, key_id: str, statement: str, *, alone: str | None = None) -> bool:
        with self._database.write(alone=alone) as transaction:
            return transaction.change(statement, key=key_id) > 0

    def key(self, key_id: str) -> Row | None:
        """Return a key, revoked or not."""
        return self._database.find_one("key", key=key_id)

    def list_keys(self) -> Sequence[Row]:
        """Return all keys, oldest first."""
        return self._database.find("keys")

    # -- creates

    @contextmanager
    def claim(self, key_id: str, name: str, body_mac: str) -> Iterator[Creating]:
        """Claim an idempotency key while its create is handled.

        Raises InFlightError if a create under it is in flight, OtherBodyError if one with another
        body is done.
        """
        with self._database.claim(key_id, name, body_mac) as claim:
            done = claim.replay
            if done is not None and done["body_mac"] != body_mac:
                raise OtherBodyError
            yield Creating(claim, key_id, name, body_mac)

    # -- shares

    def share(self, space: str, code: str) -> Row | None:
        """Return what a share's owner is shown, unless it was deleted."""
        return self._database.find_one("share", in_space=space, code=code)

    def share_of(self, space: str, code: str) -> Row | None:
        """Return a share's number and code, also if it was deleted."""
        return self._database.find_one("share_of", in_space=space, code=code)

    def share_at_link(self, code: str) -> tuple[Row | None, str | None]:
        """Return a share and by what it has ended, for whoever has its link."""
        row = self._database.find_one("share_at_link", code=code)
        return row, None if row is None else _ended_by(row)

    def open_share(
        self, code: str, token_sha256: str, verifier_sha256: str | None, access: Access | None
    ) -> Opening:
        """Open a share, which uses a view; or spend a passcode attempt.

        Without the token nothing is revealed, not even that the share exists.
        """
        with self._database.write() as transaction:
            known = transaction.row("share_at_link", code=code)
            token = _NO_HASH if known is None else known["access_token_sha256"]
            if not hmac.compare_digest(token, token_sha256) or known is None:
                return Opening("not-found")
            wanted = known["passcode_verifier_sha256"]
            is_right = wanted is None or hmac.compare_digest(wanted, verifier_sha256 or "")
            number = known["number"]
            decided = transaction.row("open_share" if is_right else "spend_attempt", share=number)
            if decided is None:
                last = transaction.row("share_at_link", code=code)
                return Opening("not-found" if last is None else _ended_by(last) or "time")
            _queue_if_asked(transaction, decided, "viewed" if is_right else "denied")
            _count_if_ended(transaction, "shares", decided)
            if access is not None:
                _add_access(transaction, decided, access, is_right=is_right)
            if not is_right:
                return Opening("passcode", decided)
            transaction.later("count_view", in_space=decided["space"], on=_day(decided["now"]))
            return Opening(None, decided)

    def delete_share(
        self,
        space: str,
        code: str,
        event: bytes,
        is_sent: Callable[[str, Row | None], bool],
        reach: Callable[[], None],
    ) -> Row | None:
        """End a usable share, and queue the event for its owner's endpoints, and a notice; None if
        there is none.

        `is_sent` says of an account and its plan whether its events are sent. `reach` may refuse,
        before anything is on disk.
        """
        with self._database.write() as transaction:
            ended = transaction.row("delete_share", in_space=space, code=code)
            if ended is None:
                return None
            reach()
            _queue_if_asked(transaction, ended, "deleted")
            transaction.later("count_ended", of="shares", in_space=space, by=1)
            if is_sent(ended["owner"], transaction.row("account", account=ended["owner"])):
                for endpoint in transaction.rows("webhooks_of", of_account=ended["owner"]):
                    _queue(transaction, endpoint["id"], event)
            return ended

    def stats(self, space: str) -> tuple[int, int, Mapping[str, int]]:
        """Return how many shares are usable, how many have ended, and the views of each day."""
        with self._database.read() as transaction:
            live, ended = _counted(transaction, "shares", space)
            views = transaction.rows("views", in_space=space)
        return live, ended, {row["day"]: row["count"] for row in views}

    def accesses(self, share: int, bounds: Values, most: int) -> Sequence[Row]:
        """Return entries of a share's access log, newest first: `before`, `since` and `until`."""
        return self._database.find("accesses", of_share=share, **bounds, most=most)

    # -- requests

    def request(self, space: str, code: str) -> tuple[Row | None, bool]:
        """Return a request of a space, and whether it has ended."""
        return _with_end(self._database.find_one("request", in_space=space, code=code))

    def request_at_link(self, code: str) -> tuple[Row | None, bool]:
        """Return a request and whether it has ended, for whoever has its link."""
        return _with_end(self._database.find_one("request_at_link", code=code))

    def open_form(self, number: int) -> Row | None:
        """Use one of a request's accesses; None if it has none left, or has ended."""
        with self._database.write() as transaction:
            return transaction.row("spend_access", request_number=number)

    def submit(self, number: int, values: Callable[[float], Values], codes: Codes) -> str | None:
        """Store a submission with a notice, and return its code; None if the request is full or has
        ended.

        `values` are its columns at a time. Raises QuotaError if the request's submissions would be
        longer than MOST_OF_REQUEST together.
        """
        with self._database.write() as transaction:
            received = transaction.row("receive", request_number=number)
            if received is None:
                return None
            row = {**values(received["now"]), "request": number}
            stored = transaction.row("stored", request_number=number)
            before = 0 if stored is None else int(stored["size"])
            if before + len(str(row["data"])) > MOST_OF_REQUEST:
                raise QuotaError
            _queue_notice(transaction, received, "submitted")
            return _add_with_code(transaction, "add_submission", row, codes)

    def submissions(self, number: int) -> Sequence[Row]:
        """Return a request's submissions, oldest first, also of an expired one."""
        return self._database.find("submissions", request_number=number)

    def delete_request(self, space: str, code: str, reach: Callable[[], None]) -> str | None:
        """End a request (`expired`), or one that has ended for good (`deleted`); None without one.

        Of two racing calls at an active request, one ends it and the other deletes it.
        """
        with self._database.write() as transaction:
            where = {"in_space": space, "code": code}
            if transaction.row("end_request", **where) is not None:
                reach()
                transaction.change("count_ended", of="requests", in_space=space, by=1)
                return "expired"
            gone = transaction.row("delete_request", **where)
            if gone is None:
                return None
            reach()
            transaction.change("delete_submissions", request_number=gone["number"])
            was_live = int(gone["ended_at"] is None)  # it was due, and not swept yet
            transaction.change(
                "count_gone",
                of="requests",
                in_space=space,
                live_ones=was_live,
                ended_ones=1 - was_live,
            )
            return "deleted"

    # -- webhooks

    def webhook(self, webhook_id: str) -> Row | None:
        """Return an endpoint."""
        return self._database.find_one("webhook", webhook_id=webhook_id)

    def webhooks(self, account: str | None = None) -> Sequence[Row]:
        """Return an account's endpoints, or all, oldest first."""
        if account is None:
            return self._database.find("webhooks")
        return self._database.find("webhooks_of", of_account=account)

    def add_webhook(
        self, account: str, values: Callable[[float], Values], most: Callable[[Row | None], int]
    ) -> Row | None:
        """Add an endpoint, whose columns at a time are `values`. Raises QuotaError.

        `most` says of the account's plan how many it may have.
        """
        with self._database.write(alone=f"webhooks {account}") as transaction:
            allowed = most(transaction.row("account", account=account))
            if len(transaction.rows("webhooks_of", of_account=account)) >= allowed:
                raise QuotaError(allowed)
            row = values(_time_of(transaction))
            transaction.change("add_webhook", **row)
            return transaction.row("webhook", webhook_id=row["id"])

    def mail(self) -> Sequence[Row]:
        """Return the endpoints that notices go to by e-mail, oldest first."""
        return self._database.find("mail")

    def add_mail(self, values: Callable[[float], Values]) -> Row:
        """Add an endpoint for notices, whose columns at a time are `values`."""
        with self._database.write() as transaction:
            row = values(_time_of(transaction))
            transaction.change("add_webhook", **row)
            added = transaction.row("webhook", webhook_id=row["id"])
        assert added is not None  # noqa: S101  # in the same transaction
        return added

    def rotate_webhook(self, webhook_id: str, secret: str) -> Row | None:
        """Give an endpoint a new secret, beside which the old one stays; None without one."""
        with self._database.write() as transaction:
            return transaction.row("rotate_webhook", webhook_id=webhook_id, new_secret=secret)

    def remove_webhook(self, webhook_id: str) -> bool:
        """Remove an endpoint with its deliveries; return whether it was there."""
        with self._database.write() as transaction:
            transaction.change("remove_deliveries", webhook_id=webhook_id)
            return transaction.row("remove_webhook", webhook_id=webhook_id) is not None

    def lease_delivery(self) -> Row | None:
        """Lease the oldest due delivery of an endpoint that none is being sent to."""
        return self._database.change_quickly("lease_delivery")

    def next_delivery(self) -> float | None:
        """Return the seconds until a delivery that is not being sent is due; None without one."""
        row = self._database.find_one("next_delivery")
        return None if row is None or row["due"] is None else max(0.0, row["due"] - row["now"])

    def settle_delivery(
        self, number: int, answered: str, state: str, again_in: float | None
    ) -> bool:
        """Record an attempt; return whether the delivery is still there."""
        with self._database.write() as transaction:
            due = None if again_in is None else _time_of(transaction) + again_in
            settled = {"delivery": number, "next": due, "becomes": state, "said": answered}
            return transaction.change("settle_delivery", **settled) > 0

    def release_delivery(self, number: int) -> None:
        """Give back a leased delivery that was not sent."""
        self._database.change_quickly("release_delivery", delivery=number)

    def deliveries(self) -> Sequence[Row]:
        """Return every waiting delivery and the latest finished ones, oldest first."""
        return self._database.find("deliveries")

    # -- lists

    def page(
        self, what: str, space: str, *, most: int, skipped: int, ended: bool = False
    ) -> tuple[int, Sequence[Row]]:
        """Return how many shares or requests there are, and a page of them: newest first.

        With `ended` those that have ended, latest end first; call `sweep` before.
        """
        with self._database.read() as transaction:
            total = _counted(transaction, what, space)[int(ended)]
            statement = f"list_ended_{what}" if ended else f"list_{what}"
            return total, transaction.rows(statement, in_space=space, most=most, skipped=skipped)

    # -- what time does

    def sweep(self) -> Sequence[Row]:
        """End what has expired with notices, and drop what is not kept any longer; `scrub` then.

        Return the shares that have expired.
        """
        due = self._database.find_one("is_due")
        expired: list[Row] = []
        is_swept = due is None or not due["is_due"]
        while not is_swept:
            with self._database.write(alone=_SWEEP) as transaction:
                is_swept = True
                for what in ("shares", "requests"):
                    swept = transaction.rows(f"sweep_{what}")
                    for share in swept if what == "shares" else []:
                        _queue_if_asked(transaction, share, "expired")
                        expired.append(share)
                    is_swept = is_swept and not swept
                    for space, by in _count_by_space(swept):
                        transaction.change("count_ended", of=what, in_space=space, by=by)
        for statement, values in _DROPS:
            while self._drop(statement, values):
                pass
        return expired

    def _drop(self, statement: str, values: Values) -> int:
        """Drop some of what is not kept; whoever creates meanwhile waits for no more than those."""
        with self._database.write(alone=_SWEEP) as transaction:
            return transaction.change(statement, **values)

    def purge(self, older_than: float) -> tuple[int, int]:
        """Delete requests that ended so many seconds ago, with their submissions; `scrub` then.

        Return how many of both.
        """
        requests = submissions = 0
        while True:
            with self._database.write(alone=_SWEEP) as transaction:
                gone = transaction.rows("purge_requests", older_than=older_than)
                for row in gone:
                    number = row["number"]
                    submissions += transaction.change("delete_submissions", request_number=number)
                for space, by in _count_by_space(gone):
                    transaction.change(
                        "count_gone", of="requests", in_space=space, live_ones=0, ended_ones=by
                    )
            requests += len(gone)
            if not gone:
                return requests, submissions

    def scrub(self) -> None:
        """Leave nothing in the database's journal of what was dropped, by a killed process too."""
        self._database.scrub()


class Creating:
    """A create whose idempotency key is claimed."""

    def __init__(self, claim: Claim, key_id: str, name: str, body_mac: str) -> None:
        self._claim = claim
        self._record = {"key_id": key_id, "name": name, "body_mac": body_mac}

    @property
    def replay(self) -> bytes | None:
        """The first answer's body, if the create was done already."""
        return None if self._claim.replay is None else bytes(self._claim.replay["answer"])

    def create(
        self,
        what: str,
        values: Values,
        answer: Callable[[str], bytes],
        codes: Codes,
        *,
        most: int | None = None,
    ) -> bytes:
        """Create a share or a request, and record the answer for its code, all or nothing.

        Raises QuotaError if the space has `most` usable ones already.
        """
        with self._claim.write() as transaction:
            counted = {"of": what, "in_space": values["space"]}
            if most is not None:
                # First, so that another create of the space waits for this one.
                transaction.later("count_new", **counted)
                live, _ = _counted(transaction, what, str(values["space"]))
                if live > most:
                    raise QuotaError
            code = _add_with_code(transaction, f"add_{what.removesuffix('s')}", values, codes)
            body = answer(code)
            if most is None:
                # Last, so that it waits as short as can be.
                transaction.later("count_new", **counted)
            transaction.later(
                "record", **self._record, answer=body, created_at=values["created_at"]
            )
        return body


def _time_of(transaction: Transaction) -> float:
    return _read_time(transaction.row("now"))


def _read_time(row: Row | None) -> float:
    return 0.0 if row is None else float(row["now"])


def _ended_by(share: Row) -> str | None:
    ended: str | None = share["ended_by"]
    return ended or ("time" if share["is_due"] else None)


def _with_end(request: Row | None) -> tuple[Row | None, bool]:
    is_over = request is not None and (request["ended_at"] is not None or bool(request["is_due"]))
    return request, is_over


def _counted(transaction: Transaction, what: str, space: str) -> tuple[int, int]:
    """Return how many are usable and how many are not. What is due and not swept is not usable."""
    row = transaction.row(f"count_{what}", in_space=space)
    return (0, 0) if row is None else (row["live"] - row["due"], row["ended"] + row["due"])


def asks_for(share: Row, event: str) -> bool:
    """Return whether a share's owner asked to be told of an event (`notify_on`)."""
    return event in json.loads(share["notify_on"] or "[]")


def _queue_if_asked(transaction: Transaction, share: Row, event: str) -> None:
    if asks_for(share, event):
        _queue_notice(transaction, share, event)


def _queue_notice(transaction: Transaction, about: Row, event: str) -> None:
    """Queue a notice of an event of a share or request, for each address of e-mail of its owner.

    Of one event there are NOTICES_AN_HOUR, and as many at once.
    """
    found = transaction.rows("mail_of", of_account=about["owner"])
    code, now = about["short_code"], about["now"]
    rate = {"burst": float(NOTICES_AN_HOUR), "per_second": NOTICES_AN_HOUR / HOUR, "now": now}
    name = f"notice {event} {code}"
    if found and transaction.row("take", key=name, amount=1.0, **rate) is not None:
        notice = make_notice(event, code, from_timestamp(now))
        for endpoint in found:
            _queue(transaction, endpoint["id"], notice)


def _queue(transaction: Transaction, endpoint: str, body: bytes) -> None:
    """Queue what is sent to an endpoint, unless MOST_WAITING wait for it, and say so then."""
    if not transaction.change("queue", webhook_id=endpoint, event=body):
        _logger.warning("%d deliveries wait for %s: one more was dropped", MOST_WAITING, endpoint)


def _count_if_ended(transaction: Transaction, what: str, row: Row) -> None:
    if row["ended_at"] is not None:
        transaction.later("count_ended", of=what, in_space=row["space"], by=1)


def _count_by_space(rows: Sequence[Row]) -> Sequence[tuple[str, int]]:
    """Return how many rows each space has, in one order: nobody waits in a ring."""
    return sorted(Counter(row["space"] for row in rows).items())


def _add_with_code(transaction: Transaction, statement: str, values: Values, codes: Codes) -> str:
    while True:
        code = codes()
        if transaction.row(statement, **values, short_code=code) is not None:
            return code


def _add_access(transaction: Transaction, share: Row, access: Access, *, is_right: bool) -> None:
    values: dict[str, Any] = {
        "share": share["number"],
        "accessed": share["now"],
        "accessed_at": format_rfc3339(from_timestamp(share["now"])),
        "accessed_ip": access.address,
        "platform": access.platform,
        "user_agent": access.user_agent,
        "failed_passcode": int(not is_right),
        "signed_in": 0,
        "space": share["space"],
    }
    transaction.later("add_access", **values)


def _day(seconds: float) -> str:
    return from_timestamp(seconds).date().isoformat()
