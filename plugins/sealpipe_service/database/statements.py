"""Every statement, once, in SQLAlchemy Core: for SQLite and for PostgreSQL.

What decides is one statement with its condition, which returns what it decided: `open_share` counts
a view and returns the content, or changes nothing and returns nothing. Values are bound by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    BigInteger,
    BindParameter,
    Column,
    ColumnElement,
    Double,
    FromClause,
    LargeBinary,
    Select,
    Table,
    Text,
    and_,
    bindparam,
    case,
    cast,
    delete,
    func,
    literal_column,
    null,
    or_,
    select,
    tuple_,
    update,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.dml import UpdateBase
from sqlalchemy.sql.elements import ClauseElement
from sqlalchemy.types import TypeEngine

from .decisions import CACHE_SECONDS, LAST_USED_SECONDS, MOST_WAITING
from .tables import (
    accesses,
    accounts,
    clock,
    counts,
    deliveries,
    idempotency,
    keys,
    rates,
    requests,
    service,
    service_version,
    shares,
    submissions,
    views,
    webhooks,
)

SLACK = 5e-7
"""Of a token: a missing 1e-16 must not cost another 429 after the wait for Retry-After."""
IDEMPOTENCY_SECONDS = 24 * 60 * 60
BUCKET_SECONDS = 3600
RECORD_SECONDS = IDEMPOTENCY_SECONDS + 60 * 60
"""How long records stay: `replay` says how long they count."""
CIPHERTEXT_SECONDS = 30 * 60
"""How long an ended share keeps its ciphertext: the rest of an hour is for whoever sweeps late."""
EARLIEST = -1e11
"""Before all times that can be written."""
LATE_SECONDS = 60
"""A time that is more than so much ahead is of a clock that was set back."""
LEASE_SECONDS = 30
PER_SWEEP = 1_000
FINISHED_DELIVERIES = 2_000
"""How many finished deliveries are kept."""

Insert = Callable[[Table], Any]
"""A dialect's INSERT, which has ON CONFLICT: SQLAlchemy's own has none, and both dialects' are
alike.
"""


@dataclass(frozen=True)
class Statement:
    """A statement; `columns` are those that an INSERT gets values for."""

    core: Select[*tuple[Any, ...]] | UpdateBase
    columns: tuple[str, ...] | None = None


class machine_time(ColumnElement[float]):  # noqa: N801  # named as in SQL
    """The time of the machine that has the database, in seconds since 1970."""

    type = Double()
    inherit_cache = True


@compiles(machine_time, "sqlite")
def _on_sqlite(element: ClauseElement, compiler: Any, **_: Any) -> str:  # noqa: ARG001
    return "clock_timestamp()"  # a function of `sqlite.Sqlite`


@compiles(machine_time, "postgresql")
def _on_postgresql(element: ClauseElement, compiler: Any, **_: Any) -> str:  # noqa: ARG001
    return "extract(epoch from clock_timestamp())"


def fixed(value: str | float) -> ColumnElement[Any]:
    """Return a value that is part of the statement. Text has no quotes in it."""
    if isinstance(value, str):
        return literal_column(f"'{value}'", Text())
    return literal_column(repr(value), Double() if isinstance(value, float) else BigInteger())


def typed(name: str, kind: TypeEngine[Any]) -> BindParameter[Any]:
    """Return a value that is bound by name where nothing else tells its type."""
    return bindparam(name, type_=kind)


NOW: ColumnElement[float] = machine_time() + select(clock.c.offset_seconds).scalar_subquery()
"""The service's time: read anew for each row, also after another call was waited for."""
ONCE: ColumnElement[float] = select(machine_time() + clock.c.offset_seconds).scalar_subquery()
"""The same, read once for a statement: PostgreSQL finds nothing in an index by the other one."""


def _is_usable(table: Table) -> ColumnElement[bool]:
    """Neither ended nor expired: also what nobody has swept yet."""
    return and_(table.c.ended_at.is_(None), or_(table.c.expires.is_(None), table.c.expires > NOW))


def _is_due(table: Table) -> ColumnElement[bool]:
    return and_(_can_be_due(table), _is_until(table.c.expires, ONCE))


def _can_be_due(table: Table) -> ColumnElement[bool]:
    """As the index has it: SQLite looks no further than its words."""
    return and_(table.c.ended_at.is_(None), table.c.expires.is_not(None))


def _is_until(time: ColumnElement[float], end: ColumnElement[float]) -> ColumnElement[bool]:
    """A range with two ends: PostgreSQL, which knows no time when it plans, expects few rows in it
    and takes an index. In one with one end it expects a third of the table.
    """
    return time.between(fixed(EARLIEST), end)


def _is_of_a_later_clock(time: ColumnElement[float], ahead: float = 0) -> ColumnElement[bool]:
    """Written when the clock, which was set back since, was ahead: it never is so far ahead."""
    return time > ONCE + fixed(float(ahead + LATE_SECONDS))


def _insert(insert: Insert, table: Table, *without: str) -> Any:
    return insert(table), tuple(
        column.name for column in table.c if column.name not in ("number", *without)
    )


def _spend(left: Column[Any], reason: str) -> dict[str, Any]:
    """One less is left, and with the last one it ends."""
    is_last = left == fixed(1)
    return {
        left.name: left - fixed(1),
        "ended_at": case((is_last, NOW), else_=null()),
        "ended_by": case((is_last, fixed(reason)), else_=null()),
    }


def _end(reason: str) -> dict[str, Any]:
    return {"ended_at": NOW, "ended_by": fixed(reason)}


def make(insert: Insert) -> Mapping[str, Statement]:
    """Return all statements, with this dialect's INSERT."""

    def plain(table: Table) -> Any:
        return insert(table).inline()  # it returns nothing unless a statement says so

    return {
        **_time_and_accounts(plain),
        **_keys_and_rates(plain),
        **_shares(plain),
        **_requests(plain),
        **_lists_and_counts(plain),
        **_creates(plain),
        **_sweeping(),
        **_webhooks(plain),
    }


def _time_and_accounts(insert: Insert) -> Mapping[str, Statement]:
    account, columns = _insert(insert, accounts)
    name = accounts.c.name == bindparam("account")
    latest = (
        select(accounts)
        .where(name)
        .order_by(accounts.c.number.desc())
        .limit(fixed(1))
        .offset(fixed(0))
    )
    return {
        "version": Statement(select(service_version.c.version_num)),
        "set_version": Statement(insert(service_version).values(version_num=bindparam("version"))),
        "now": Statement(select(NOW.label("now"))),
        "start_clock": Statement(
            insert(clock).values(id=fixed(1), offset_seconds=fixed(0.0)).on_conflict_do_nothing()
        ),
        "tag": Statement(select(service.c.tag).where(service.c.id == fixed(1))),
        "set_tag": Statement(
            insert(service)
            .values(id=fixed(1), tag=bindparam("new_tag"))
            .on_conflict_do_nothing()
            .returning(service.c.tag)
        ),
        "account": Statement(latest),
        "current_accounts": Statement(
            select(accounts)
            .where(
                accounts.c.number.in_(select(func.max(accounts.c.number)).group_by(accounts.c.name))
            )
            .order_by(accounts.c.name)
        ),
        "add_account": Statement(account, columns),
        "forget_old_accounts": Statement(
            delete(accounts).where(name, accounts.c.number < _seen(accounts, name))
        ),
    }


def _seen(versions: FromClause, of_one: ColumnElement[bool]) -> ColumnElement[int]:
    """The number of the version of an account that calls see.

    A clock that was set back takes no plan away: what is later than any change can be was seen
    before, and so was the oldest that is kept.
    """
    number, seen_from = versions.c.number, versions.c.seen_from
    has_come = or_(seen_from <= NOW, _is_of_a_later_clock(seen_from, CACHE_SECONDS))
    return (
        select(func.coalesce(func.max(case((has_come, number))), func.min(number)))
        .where(of_one)
        .scalar_subquery()
    )


def _keys_and_rates(insert: Insert) -> Mapping[str, Statement]:
    key, columns = _insert(insert, keys)
    one = keys.c.key_id == bindparam("key")
    version = accounts.alias("version")
    seen = _seen(version, version.c.name == keys.c.space)
    switches = [column for column in accounts.c if column.name not in ("number", "name")]
    burst, per_second, now, amount = (
        typed(name, Double()) for name in ("burst", "per_second", "now", "amount")
    )
    passed = now - rates.c.at
    # A call that comes late was handled slowly: its time would be given once more to the next one.
    is_late = passed.between(fixed(-float(LATE_SECONDS)), fixed(0.0))
    at = case((is_late, rates.c.at), else_=now)
    # A clock that was set back takes no tokens.
    refilled = rates.c.tokens + case((passed > fixed(0.0), passed * per_second), else_=fixed(0.0))
    filled = case((refilled < burst, refilled), else_=burst)
    values = {"key_id": bindparam("key"), "tokens": cast(burst, Double()) - amount, "at": now}

    def mark(column: Column[Any], *conditions: ColumnElement[bool], **more: Any) -> Statement:
        change = {column.name: NOW, **more}
        return Statement(update(keys).where(one, *conditions).values(change))

    return {
        # Who calls: the key, the entitlement that calls see, and the time.
        "caller": Statement(
            select(
                keys,
                NOW.label("now"),
                *(column.label(f"account_{column.name}") for column in switches),
            )
            .select_from(keys.outerjoin(accounts, accounts.c.number == seen))
            .where(one)
        ),
        "key": Statement(select(keys).where(one)),
        "keys": Statement(select(keys).order_by(keys.c.created_at, keys.c.number)),
        "add_key": Statement(
            key.on_conflict_do_nothing(index_elements=["key_id"]).returning(keys.c.number), columns
        ),
        "active_keys": Statement(
            select(func.count().label("count")).where(
                keys.c.revoked_at.is_(None), keys.c.space == bindparam("in_space")
            )
        ),
        "compromised": Statement(
            select(keys.c.number)
            .where(
                keys.c.compromised_at.is_not(None),
                or_(
                    keys.c.auth_sha256 == bindparam("auth"),
                    keys.c.custody_public_key == bindparam("public_key"),
                    keys.c.custody_sha256 == bindparam("custody"),
                ),
            )
            .limit(fixed(1))
            .offset(fixed(0))
        ),
        "mark_used": mark(
            keys.c.last_used_at,
            or_(
                keys.c.last_used_at.is_(None),
                keys.c.last_used_at <= NOW - fixed(float(LAST_USED_SECONDS)),
                keys.c.last_used_at > NOW,  # the clock was set back
            ),
        ),
        # Only the first of each is recorded. Revoking also removes the account-custody envelope.
        "mark_revoked": mark(keys.c.revoked_at, keys.c.revoked_at.is_(None), granted_at=null()),
        "mark_granted": mark(keys.c.granted_at, keys.c.granted_at.is_(None)),
        "mark_compromised": mark(keys.c.compromised_at, keys.c.compromised_at.is_(None)),
        "register_custody": Statement(
            update(keys).where(one).values(custody_public_key=bindparam("public_key"))
        ),
        # So many tokens, if there are all of them: a bucket starts full, and refills at the
        # sustained rate. Nobody asks for more than it holds.
        "take": Statement(
            insert(rates)
            .values(values)
            .on_conflict_do_update(
                index_elements=["key_id"],
                set_={"tokens": filled - amount, "at": at},
                where=filled + fixed(SLACK) >= amount,
            )
            .returning(rates.c.tokens)
        ),
        "tokens": Statement(
            select(filled.label("tokens")).where(rates.c.key_id == bindparam("key"))
        ),
        # An empty bucket refills by a clock that was set back, too.
        "restart_bucket": Statement(
            update(rates)
            .where(rates.c.key_id == bindparam("key"), passed < fixed(-float(LATE_SECONDS)))
            .values(at=now)
        ),
    }


def _shares(insert: Insert) -> Mapping[str, Statement]:
    share, columns = _insert(insert, shares)
    number = shares.c.number == bindparam("share")
    code = shares.c.short_code == bindparam("code")
    owned = and_(code, shares.c.space == bindparam("in_space"))
    return {
        "add_share": Statement(
            share.on_conflict_do_nothing(index_elements=["short_code"]).returning(shares.c.number),
            columns,
        ),
        "share": Statement(
            select(shares.c.number, shares.c.short_code, shares.c.expired_at).where(
                owned, shares.c.ended_by.is_distinct_from(fixed("deleted"))
            )
        ),
        "share_of": Statement(select(shares.c.number, shares.c.short_code).where(owned)),
        # What stays: hashes, and what it shows before it is opened. Nothing of its ciphertext (in
        # SQLite, whether there is one is to read it): whoever has no token learns no length by it.
        "share_at_link": Statement(
            select(
                *(each for each in shares.c if each is not shares.c.data),
                _is_due(shares).label("is_due"),
            ).where(code)
        ),
        "open_share": Statement(
            update(shares)
            .where(
                number,
                _is_usable(shares),
                or_(shares.c.access_counts_left.is_(None), shares.c.access_counts_left > fixed(0)),
            )
            .values(_spend(shares.c.access_counts_left, "views"))
            .returning(shares, NOW.label("now"))
        ),
        "spend_attempt": Statement(
            update(shares)
            .where(number, _is_usable(shares), shares.c.passcode_attempts_left > fixed(0))
            .values(_spend(shares.c.passcode_attempts_left, "attempts"))
            .returning(shares, NOW.label("now"))
        ),
        "delete_share": Statement(
            update(shares)
            .where(owned, _is_usable(shares))
            .values(_end("deleted"))
            .returning(
                shares.c.number,
                shares.c.owner,
                shares.c.space,
                shares.c.notify_on,
                shares.c.short_code,
                NOW.label("now"),
            )
        ),
        "count_view": Statement(
            insert(views)
            .values(space=bindparam("in_space"), day=bindparam("on"), count=fixed(1))
            .on_conflict_do_update(
                index_elements=["space", "day"], set_={"count": views.c["count"] + fixed(1)}
            )
        ),
        "views": Statement(
            select(views.c.day, views.c["count"]).where(views.c.space == bindparam("in_space"))
        ),
        "add_access": Statement(*_insert(insert, accesses)),
        "accesses": Statement(
            select(accesses)
            .where(
                accesses.c.share == bindparam("of_share"),
                accesses.c.number < bindparam("before"),
                accesses.c.accessed.between(bindparam("since"), bindparam("until")),
            )
            .order_by(accesses.c.number.desc())
            .limit(bindparam("most"))
            .offset(fixed(0))
        ),
    }


def _requests(insert: Insert) -> Mapping[str, Statement]:
    request, columns = _insert(insert, requests)
    number = requests.c.number == bindparam("request_number")
    code = requests.c.short_code == bindparam("code")
    owned = and_(code, requests.c.space == bindparam("in_space"))
    state = (requests, _is_due(requests).label("is_due"))
    return {
        "add_request": Statement(
            request.on_conflict_do_nothing(index_elements=["short_code"]).returning(
                requests.c.number
            ),
            columns,
        ),
        "request": Statement(select(*state).where(owned)),
        "request_at_link": Statement(select(*state).where(code)),
        "spend_access": Statement(
            update(requests)
            .where(
                number,
                _is_usable(requests),
                or_(
                    requests.c.access_counts_left.is_(None),
                    requests.c.access_counts_left > fixed(0),
                ),
            )
            .values(access_counts_left=requests.c.access_counts_left - fixed(1))
            .returning(requests)
        ),
        "receive": Statement(
            update(requests)
            .where(
                number,
                _is_usable(requests),
                or_(
                    requests.c.max_submission.is_(None),
                    requests.c.received < requests.c.max_submission,
                ),
            )
            .values(received=requests.c.received + fixed(1))
            .returning(requests.c.owner, requests.c.short_code, NOW.label("now"))
        ),
        "add_submission": Statement(
            insert(submissions)
            .on_conflict_do_nothing(index_elements=["short_code"])
            .returning(submissions.c.number),
            ("short_code", "request", "created_at", "encryption_type", "data"),
        ),
        "stored": Statement(
            select(
                func.coalesce(func.sum(func.length(submissions.c.data)), fixed(0)).label("size")
            ).where(submissions.c.request == bindparam("request_number"))
        ),
        "submissions": Statement(
            select(submissions)
            .where(submissions.c.request == bindparam("request_number"))
            .order_by(submissions.c.number)
        ),
        "end_request": Statement(
            update(requests)
            .where(owned, _is_usable(requests))
            .values(_end("deleted"))
            .returning(requests.c.number)
        ),
        # For good, and only after its end.
        "delete_request": Statement(
            delete(requests)
            .where(owned, or_(requests.c.ended_at.is_not(None), requests.c.expires <= NOW))
            .returning(requests.c.number, requests.c.ended_at)
        ),
        "delete_submissions": Statement(
            delete(submissions).where(submissions.c.request == bindparam("request_number"))
        ),
    }


def _lists_and_counts(insert: Insert) -> Mapping[str, Statement]:
    one = and_(counts.c.what == bindparam("of"), counts.c.space == bindparam("in_space"))
    number = typed("by", BigInteger())
    found = {
        "count_new": Statement(
            insert(counts)
            .values(
                what=bindparam("of"), space=bindparam("in_space"), live=fixed(1), ended=fixed(0)
            )
            .on_conflict_do_update(
                index_elements=["what", "space"], set_={"live": counts.c.live + fixed(1)}
            )
            .returning(counts.c.live)
        ),
        "count_ended": Statement(
            update(counts)
            .where(one)
            .values(live=counts.c.live - number, ended=counts.c.ended + number)
        ),
        "count_gone": Statement(
            update(counts)
            .where(one)
            .values(
                live=counts.c.live - bindparam("live_ones"),
                ended=counts.c.ended - bindparam("ended_ones"),
            )
        ),
    }
    for table in (shares, requests):
        inside = table.c.space == bindparam("in_space")
        due = (
            select(func.count()).select_from(table).where(inside, _is_due(table)).scalar_subquery()
        )
        found[f"count_{table.name}"] = Statement(
            select(counts.c.live, counts.c.ended, due.label("due")).where(
                counts.c.what == fixed(table.name), counts.c.space == bindparam("in_space")
            )
        )
        shown = [
            table.c[name]
            for name in ("short_code", "expired_at", "ended_at", "public_key")
            if name in table.c
        ]
        for name, condition, order in (
            ("list", _is_usable(table), (table.c.number.desc(),)),
            (
                "list_ended",
                table.c.ended_at.is_not(None),
                (table.c.ended_at.desc(), table.c.number.desc()),
            ),
        ):
            found[f"{name}_{table.name}"] = Statement(
                select(*shown)
                .where(inside, condition)
                .order_by(*order)
                .limit(bindparam("most"))
                .offset(bindparam("skipped"))
            )
    return found


def _creates(insert: Insert) -> Mapping[str, Statement]:
    record, columns = _insert(insert, idempotency)
    recorded = and_(
        idempotency.c.key_id == bindparam("key"), idempotency.c.name == bindparam("under")
    )
    return {
        "replay": Statement(
            select(idempotency.c.body_mac, idempotency.c.answer).where(
                recorded, idempotency.c.created_at > NOW - fixed(float(IDEMPOTENCY_SECONDS))
            )
        ),
        # Over a record that is too old to be replayed.
        "record": Statement(
            record.on_conflict_do_update(
                index_elements=["key_id", "name"],
                set_={name: record.excluded[name] for name in ("body_mac", "answer", "created_at")},
            ),
            columns,
        ),
    }


def _sweeping() -> Mapping[str, Statement]:
    found = {}
    for table in (shares, requests):
        some = (
            select(table.c.number)
            .where(_is_due(table))
            .order_by(table.c.expires)
            .limit(fixed(PER_SWEEP))
            .offset(fixed(0))
        )
        returned: Sequence[Any] = [table.c.space]
        if table is shares:
            at = shares.c.ended_at.label("now")
            told = (shares.c.owner, shares.c.short_code, shares.c.notify_on, at)
            returned = [shares.c.space, *told]
        found[f"sweep_{table.name}"] = Statement(
            update(table)
            .where(table.c.number.in_(some), table.c.ended_at.is_(None))
            .values(ended_at=table.c.expires, ended_by=fixed("time"))
            .returning(*returned)
        )
    newest = deliveries.alias("newest")
    ended = (
        select(shares.c.number)
        .where(
            or_(
                _is_until(shares.c.ended_at, ONCE - fixed(float(CIPHERTEXT_SECONDS))),
                _is_of_a_later_clock(shares.c.ended_at),
            ),
            shares.c.ended_at.is_not(None),
            shares.c.data.is_not(None),
        )
        .limit(fixed(PER_SWEEP))
        .offset(fixed(0))
    )
    # What calls see within the next half a minute: a plan that keeps less hides them first.
    latest = select(func.max(accounts.c.number)).group_by(accounts.c.name)
    old_accesses = (
        select(accesses.c.number)
        .select_from(accounts.join(accesses, accesses.c.space == accounts.c.name))
        .where(
            accounts.c.number.in_(latest),
            accounts.c.plan == bindparam("of_plan"),
            _is_until(accesses.c.accessed, ONCE - typed("older_than", Double())),
        )
        .limit(fixed(PER_SWEEP))
        .offset(fixed(0))
    )
    old_records = (
        select(idempotency.c.key_id, idempotency.c.name)
        .where(_is_until(idempotency.c.created_at, ONCE - fixed(float(RECORD_SECONDS))))
        .limit(fixed(PER_SWEEP))
        .offset(fixed(0))
    )
    long_ended = (
        select(requests.c.number)
        .where(_is_until(requests.c.ended_at, ONCE - typed("older_than", Double())))
        .limit(fixed(PER_SWEEP))
        .offset(fixed(0))
    )
    return {
        **found,
        "purge_requests": Statement(
            delete(requests)
            .where(requests.c.number.in_(long_ended))
            .returning(requests.c.number, requests.c.space)
        ),
        "is_due": Statement(
            select(
                or_(
                    *(
                        select(func.min(table.c.expires))
                        .where(_can_be_due(table))
                        .scalar_subquery()
                        <= ONCE
                        for table in (shares, requests)
                    )
                ).label("is_due")
            )
        ),
        "drop_ciphertext": Statement(
            update(shares)
            .where(shares.c.number.in_(ended))
            .values(data=null(), item_key_wrap=null(), title=null(), description=null())
        ),
        "drop_deliveries": Statement(
            delete(deliveries).where(
                deliveries.c.due.is_(None),
                deliveries.c.number
                <= select(func.max(newest.c.number)).scalar_subquery() - fixed(FINISHED_DELIVERIES),
            )
        ),
        "drop_accesses": Statement(delete(accesses).where(accesses.c.number.in_(old_accesses))),
        # Who has not asked for so long may do all of it again, as if there had been no bucket.
        "drop_buckets": Statement(
            delete(rates).where(rates.c.at <= ONCE - fixed(float(BUCKET_SECONDS)))
        ),
        "drop_records": Statement(
            delete(idempotency).where(
                tuple_(idempotency.c.key_id, idempotency.c.name).in_(old_records)
            )
        ),
    }


def _webhooks(insert: Insert) -> Mapping[str, Statement]:
    webhook, columns = _insert(insert, webhooks)
    one = webhooks.c.id == bindparam("webhook_id")
    signs = webhooks.c.secret != fixed("")  # an address of e-mail does not
    waiting, sent = deliveries.alias("waiting"), deliveries.alias("sent")
    is_sent = (
        select(sent.c.number)
        .where(sent.c.webhook == waiting.c.webhook, sent.c.leased_until.is_not(None))
        .where(sent.c.leased_until > NOW)
        .where(~_is_of_a_later_clock(sent.c.leased_until, LEASE_SECONDS))
        .exists()
    )
    next_due = (
        select(waiting.c.number)
        .where(_is_until(waiting.c.due, ONCE), ~is_sent)
        .order_by(waiting.c.due, waiting.c.number)
        .limit(fixed(1))
        .offset(fixed(0))
        .with_for_update(skip_locked=True)
        .scalar_subquery()
    )
    lease = deliveries.c.leased_until
    is_full = (
        select(waiting.c.number)
        .where(waiting.c.webhook == bindparam("webhook_id"), waiting.c.due.is_not(None))
        .limit(fixed(1))
        .offset(fixed(MOST_WAITING - 1))
        .exists()
    )
    return {
        "add_webhook": Statement(webhook, columns),
        "webhook": Statement(select(webhooks).where(one)),
        "webhooks": Statement(select(webhooks).where(signs).order_by(webhooks.c.number)),
        "webhooks_of": Statement(
            select(webhooks)
            .where(webhooks.c.account == bindparam("of_account"), signs)
            .order_by(webhooks.c.number)
        ),
        "mail": Statement(select(webhooks).where(~signs).order_by(webhooks.c.number)),
        "mail_of": Statement(
            select(webhooks)
            .where(webhooks.c.account == bindparam("of_account"), ~signs)
            .order_by(webhooks.c.number)
        ),
        "rotate_webhook": Statement(
            update(webhooks)
            .where(one, signs)
            .values(
                previous_secret=webhooks.c.secret, secret=bindparam("new_secret"), rotated_at=NOW
            )
            .returning(webhooks)
        ),
        "remove_webhook": Statement(delete(webhooks).where(one).returning(webhooks.c.number)),
        "remove_deliveries": Statement(
            delete(deliveries).where(deliveries.c.webhook == bindparam("webhook_id"))
        ),
        "queue": Statement(
            insert(deliveries).from_select(
                ["webhook", "body", "created_at", "attempts", "due", "state"],
                select(
                    typed("webhook_id", Text()),
                    typed("event", LargeBinary()),
                    NOW,
                    fixed(0),
                    NOW,
                    fixed("waiting"),
                ).where(~is_full),
            )
        ),
        "lease_delivery": Statement(
            update(deliveries)
            .where(deliveries.c.number == next_due)
            .values(leased_until=NOW + fixed(float(LEASE_SECONDS)))
            .returning(deliveries)
        ),
        "next_delivery": Statement(
            select(func.min(deliveries.c.due).label("due"), NOW.label("now")).where(
                deliveries.c.due.is_not(None),
                or_(lease.is_(None), lease <= NOW, _is_of_a_later_clock(lease, LEASE_SECONDS)),
            )
        ),
        "release_delivery": Statement(
            update(deliveries)
            .where(deliveries.c.number == bindparam("delivery"))
            .values(leased_until=null())
        ),
        "settle_delivery": Statement(
            update(deliveries)
            .where(deliveries.c.number == bindparam("delivery"))
            .values(
                attempts=deliveries.c.attempts + fixed(1),
                leased_until=null(),
                due=bindparam("next"),
                state=bindparam("becomes"),
                answered=bindparam("said"),
            )
        ),
        "deliveries": Statement(select(deliveries).order_by(deliveries.c.number)),
    }
