"""The specification's states as plain Python: what a service that follows it must answer to every
step.

Written from the specification's tables and not from the service: lists that are walked, no SQL, no
counters. A refusal is (status, error_code); the gateway's is (status, None); anything else is
(status, body).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

from service.things import DAY, Caller, Plan, Request, Share, Told

NOT_USABLE: Told = (403, None)
NOT_FOUND = {"shares": (404, 1), "requests": (404, 70)}


@dataclass
class Model:
    """One service. Times are whole seconds since `start`."""

    start: datetime
    now: int = 0
    plans: dict[str, list[tuple[int, Plan]]] = field(default_factory=dict)
    buckets: dict[str, tuple[Fraction, int]] = field(default_factory=dict)
    revoked: set[str] = field(default_factory=set)
    records: dict[tuple[str, str], tuple[bytes, Any, int]] = field(default_factory=dict)
    things: dict[str, list[Any]] = field(default_factory=lambda: {"shares": [], "requests": []})
    views: dict[tuple[str, int], int] = field(default_factory=dict)
    events: list[tuple[str, str]] = field(default_factory=list)
    failing: set[str] = field(default_factory=set)
    made: int = 0

    # The gateway

    def admitted(self, caller: Caller, scope: str) -> Told | None:
        """Why a call gets no further; None where it does. Takes one from the key's bucket."""
        if caller.key_id in self.revoked:
            return NOT_USABLE
        plan = self.plan_of(caller)
        if not plan.rate:
            return NOT_USABLE
        burst, a_second = Fraction(2 * plan.rate), Fraction(plan.rate, 60)
        held, at = self.buckets.get(caller.key_id, (burst, self.now))
        held = min(burst, held + (self.now - at) * a_second)
        self.buckets[caller.key_id] = max(held - 1, Fraction(0)) if held >= 1 else held, self.now
        if held < 1:
            return 429, (107, max(1, -int(-(1 - held) / a_second // 1)))
        return None if scope in caller.scopes else (403, 78)

    def plan_of(self, caller: Caller) -> Plan:
        """The plan as calls see it: the latest whose time has come."""
        seen = [plan for since, plan in self.plans.get(caller.space, []) if since <= self.now]
        return seen[-1] if seen else Plan()

    # Creating

    def replay(self, caller: Caller, name: str, body: bytes) -> Told | None:
        """What an idempotency key answers in place of the call; None where it is free."""
        if not name.strip(" \t"):
            return 400, 104
        known = self.records.get((caller.key_id, name.strip(" \t")))
        if known is None or self.now - known[2] >= DAY:
            return None
        return (200, known[1]) if known[0] == body else (409, 105)

    def refused(
        self, caller: Caller, what: str, sent: dict[str, Any], wrong: set[str]
    ) -> Told | None:
        """Validation, then the plan. `wrong` names the members that break their rule."""
        if sent.get("item_key_wrap") is not None and not caller.custody:
            wrong = wrong | {"item_key_wrap"}
        if wrong:
            return 400, (19, wrong)
        plan = self.plan_of(caller)
        if what == "shares" and sent.get("passcode_verifier") and not plan.view_protection:
            return 403, 53
        if (
            what == "shares"
            and plan.shares is not None
            and len(self.listed("shares", caller)) >= plan.shares
        ):
            return 403, 61
        return None

    def created(
        self, caller: Caller, what: str, name: str, body: bytes, sent: dict[str, Any], told: Any
    ) -> Told:
        """A create that succeeded: what it answers, but for the code, which is taken from
        `told`.
        """
        self.made += 1
        expires = sent.get("expired_at")
        common = (told.get("short_code"), caller, self.made)
        if what == "shares":
            custody = "none" if sent.get("item_key_wrap") is None else "stored"
            share = Share(
                *common,
                expires,
                token=sent["access_token"].strip(),
                verifier=sent.get("passcode_verifier"),
            )
            share.views, share.data = sent.get("access_counts_left"), sent["data"]
            self.things[what].append(share)
            answer = {
                "short_code": share.code,
                "expired_at": self.text(expires),
                "custody": custody,
            }
        else:
            request = Request(*common, self.now + 30 * DAY if expires is None else expires)
            request.public_key, request.passcode = sent["public_key"], sent.get("passcode")
            request.most, request.forms = sent.get("max_submission"), sent.get("access_counts_left")
            self.things[what].append(request)
            answer = self.item(what, request) | {
                "expired_at": self.text(request.expires),
                "public_key": sent["public_key"],
            }
        self.records[caller.key_id, name.strip(" \t")] = body, answer, self.now
        return 201, answer

    # Reading

    def listed(self, what: str, caller: Caller, *, ended: bool = False) -> list[Any]:
        """The caller's, newest first, or what ended last first."""
        mine = [each for each in self.things[what] if each.owner.space == caller.space]
        if ended:
            over = [each for each in mine if each.over(self.now)]
            return sorted(over, key=lambda each: (each.ended_at, each.made), reverse=True)
        return [each for each in reversed(mine) if not each.over(self.now)]

    def page(self, what: str, caller: Caller, page: int, limit: int, *, ended: bool) -> Told:
        found = self.listed(what, caller, ended=ended)
        figures = {
            "page": page,
            "limit": limit,
            "total_pages": -(-len(found) // limit),
            "total": len(found),
        }
        shown = found[(page - 1) * limit : page * limit]
        return 200, {what: [self.item(what, each) for each in shown], "pagination": figures}

    def item(self, what: str, thing: Any) -> dict[str, Any]:
        if what == "shares":
            return {"short_code": thing.code, "expired_at": self.text(thing.expires)}
        live = not thing.over(self.now)
        return {
            "short_code": thing.code,
            "expired_at": self.text(thing.expires) if live else None,
            "public_key": thing.public_key if live else None,
        }

    def find(self, what: str, code: str, caller: Caller | None = None) -> Any:
        """The one of that code, if it is the caller's."""
        found = (each for each in self.things[what] if each.code == code)
        return next(
            (each for each in found if caller is None or each.owner.space == caller.space), None
        )

    def show(self, what: str, caller: Caller, code: str) -> Told:
        thing = self.find(what, code, caller)
        if thing is None or (what == "shares" and thing.ended == "deleted"):
            return NOT_FOUND[what]
        item = self.item(what, thing)
        if what == "requests" and thing.over(self.now):
            del item["public_key"]
        return 200, item

    def submissions(self, caller: Caller, code: str) -> Told:
        request = self.find("requests", code, caller)
        if request is None:
            return NOT_FOUND["requests"]
        sealed = [each for each in request.answers if each["encryption_type"] == "e2ee-aes256-gcm"]
        skipped = len(request.answers) - len(sealed)
        return 200, {
            "submissions": sealed,
            "count": len(sealed),
            "skipped_not_end_to_end_encrypted": skipped,
        }

    def stats(self, caller: Caller) -> Told:
        today = self.now // DAY
        views = {day: count for (space, day), count in self.views.items() if space == caller.space}
        return 200, {
            "shares": {
                "active": len(self.listed("shares", caller)),
                "expired": len(self.listed("shares", caller, ended=True)),
                "total_viewed": sum(views.values()),
            },
            "daily_views": [
                {
                    "date": (self.start + timedelta(days=day)).date().isoformat(),
                    "count": views.get(day, 0),
                }
                for day in range(today - 13, today + 1)
            ],
        }

    # Ending

    def delete(self, what: str, caller: Caller, code: str) -> Told:
        if not code:
            return 400, 44
        thing = self.find(what, code, caller)
        if thing is None or (what == "shares" and thing.over(self.now)):
            return NOT_FOUND[what]
        if what in self.failing:
            self.failing.remove(what)
            return (500, 42) if what == "shares" else (500, 11)
        if what == "shares":
            thing.ended, thing.ended_at = "deleted", self.now
            self.events.append((thing.owner.account, code))
            return 200, {"success": True, "message": "ok"}
        outcome = "deleted" if thing.over(self.now) else "expired"
        if outcome == "deleted":
            self.things[what].remove(thing)
        else:
            thing.ended, thing.ended_at = "deleted", self.now
        return 200, {"short_code": code, "outcome": outcome}

    def count_view(self, share: Share) -> None:
        day = share.owner.space, self.now // DAY
        self.views[day] = self.views.get(day, 0) + 1

    # Starting again, and times

    def restarted(self) -> None:
        """What lives in memory alone is gone: the log."""
        for forgotten in (self.events, self.failing):
            forgotten.clear()

    def text(self, seconds: int | None) -> str | None:
        if seconds is None:
            return None
        return (
            (self.start + timedelta(seconds=seconds))
            .astimezone(UTC)
            .isoformat()
            .replace("+00:00", "Z")
        )
