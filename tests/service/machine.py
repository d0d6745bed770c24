"""The service as a state machine: every step is a call, and what it answers is what `model` says.

Two accounts and an organisation that both have keys in; every share and request is tried by every
one of them.
"""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from sealpipe_service.database.sqlite import Sqlite
from service import people_model as people
from service.callers import DATA, WRAP
from service.doors import Seen
from service.side_by_side import POINT, Base
from service.things import DAY, Caller, Plan, Told

SPACES = ("default", "other", "org:team")
TOKENS = ("t" * 43, "u" * 43)

who = st.sampled_from([0, 0, 0, 0, 1, 2, 2, 3, 4, 5])
what = st.sampled_from(["shares", "requests"])
which = st.integers(0, 9)  # 0: one that does not exist
names = st.sampled_from(["new", "new", "new", "new", "a", "b", " a\t", "\x85", "", " \t "])
ends = st.sampled_from([None, None, None, 0, -5, 1, 60, 3600, 2 * DAY])
words = st.sampled_from([None, "right", "right", "wrong"])
some = st.sampled_from([None, None, 1, 2])
wrong_members = st.sampled_from(
    [None, None, None, None, None, None, "expired_at", "access_counts_left"]
)
PLANS = [
    Plan(),
    Plan(),
    Plan(rate=15),
    Plan(rate=1),
    Plan(rate=0),
    Plan(shares=3),
    Plan(view_protection=False),
]


class Machine(Base):
    """The steps."""

    # Creating

    @rule(kind=what, number=who, name=names, end=ends, views=some, most=some, secret=st.booleans(),
        wrap=st.booleans(), wrong=wrong_members)  # fmt: skip
    def create(self, kind: str, number: int, name: str, end: int | None, views: int | None,
        most: int | None, secret: bool, wrap: bool,  # noqa: FBT001
        wrong: str | None) -> None:  # fmt: skip
        expires = None if end is None else self.model.now + end
        self.made += 1
        given: dict[str, Any] = {"expired_at": expires, "access_counts_left": views}
        if kind == "shares":
            data = DATA[:-8] + f"{self.made:08}"
            given |= {
                "data": data,
                "access_token": TOKENS[self.made % 2],
                "encryption_type": "e2ee-aes256-gcm",
            }
            given |= {
                "passcode_verifier": "right" if secret else None,
                "item_key_wrap": WRAP if wrap else None,
            }
        else:
            given |= {"title": "T", "public_key": POINT, "fields": [], "max_submission": most}
            given |= {"passcode": "right" if secret else None}
        sent = given | {"expired_at": self.model.text(expires)} | ({wrong: "no"} if wrong else {})
        name = f"new-{self.made}" if name == "new" else name
        self.carry_out(
            kind,
            self.keys[number],
            name,
            json.dumps(sent).encode(),
            given,
            {wrong} if wrong else set(),
        )

    def carry_out(
        self,
        kind: str,
        caller: Caller,
        name: str,
        body: bytes,
        given: dict[str, Any],
        wrong: set[str],
    ) -> Seen:
        seen = self.call(caller, "POST", f"/{kind}", body, idempotency_key=name)
        expected = (
            self.model.admitted(caller, f"{kind}:write")
            or self.model.replay(caller, name, body)
            or self.model.refused(caller, kind, given, wrong)
            or self.model.created(caller, kind, name, body, given, seen[2])
        )
        self.agree(f"create {kind}", seen, expected)
        return seen

    @initialize()
    def begin_with_some(self) -> None:
        for kind, secret in (
            ("shares", False),
            ("shares", True),
            ("requests", False),
            ("requests", True),
        ):
            self.create(kind, 0, "new", None, None, None, secret=secret, wrap=False, wrong=None)

    @rule(
        kind=what, number=st.sampled_from([0, 0, 0, 2]), views=some, most=some, secret=st.booleans()
    )
    def create_one_that_lasts(
        self,
        kind: str,
        number: int,
        views: int | None,
        most: int | None,
        secret: bool,  # noqa: FBT001
    ) -> None:
        self.create(kind, number, "new", None, views, most, secret=secret, wrap=False, wrong=None)

    @rule(kind=what, early=st.booleans())
    def create_again_a_day_later(self, kind: str, early: bool) -> None:  # noqa: FBT001
        self.create_one_that_lasts(kind, 0, None, None, secret=False)
        name = f"new-{self.made}"
        if record := self.model.records.get((self.keys[0].key_id, name)):
            self.advance(DAY - early)
            self.carry_out(kind, self.keys[0], name, record[0], json.loads(record[0]), set())

    @precondition(lambda self: self.model.records)
    @rule(number=which, kind=what, other=st.booleans())
    def create_again(self, number: int, kind: str, other: bool) -> None:  # noqa: FBT001
        records = list(self.model.records.items())
        (key_id, name), (body, _, _) = records[-1 - number % len(records)]
        caller = next(key for key in self.keys if key.key_id == key_id)
        # What was sent then is no longer valid once the record is too old: it would be a new share.
        if self.model.now - self.model.records[key_id, name][2] < DAY:
            self.carry_out(kind, caller, f"{name} ", body + b" " if other else body, {}, set())

    @rule(
        number=st.sampled_from([0, 2]),
        other=st.booleans(),
        moment=st.sampled_from(["begun", "committed"]),
    )
    def create_while_the_same_is_in_flight(
        self,
        number: int,
        other: bool,  # noqa: FBT001
        moment: str,
    ) -> None:
        if not isinstance(self.door.service.database, Sqlite):
            moment = "begun"  # PostgreSQL's locks end with the commit: from then on it is replayed
        caller = self.keys[number]
        inner: list[tuple[Seen, Told]] = []

        def at(name: str) -> None:
            if name == f"shares.{moment}" and not inner:
                seen = self.call(
                    caller, "POST", "/shares", b"{}" if other else body, idempotency_key="flying"
                )
                in_flight = (409, 105 if other else 106)
                inner.append((seen, self.model.admitted(caller, "shares:write") or in_flight))

        self.made += 1
        given = {"data": DATA, "access_token": TOKENS[0], "encryption_type": "e2ee-aes256-gcm"}
        body = json.dumps(given | {"organization_id": str(self.made)}).encode()
        expected = self.model.admitted(caller, "shares:write") or self.model.replay(
            caller, "flying", body
        )
        self.door.service.on_moment = at
        try:
            seen = self.call(caller, "POST", "/shares", body, idempotency_key="flying")
        finally:
            self.door.service.on_moment = lambda _: None
        refused = expected or self.model.refused(caller, "shares", given, set())
        self.agree(
            "create",
            seen,
            refused or self.model.created(caller, "shares", "flying", body, given, seen[2]),
        )
        for each in inner:
            self.agree("create in flight", *each)

    # Reading and ending

    @rule(
        kind=what,
        number=who,
        page=st.integers(1, 3),
        limit=st.sampled_from([1, 2, 25, 100]),
        ended=st.booleans(),
    )
    def list_them(
        self,
        kind: str,
        number: int,
        page: int,
        limit: int,
        ended: bool,  # noqa: FBT001
    ) -> None:
        caller = self.keys[number]
        state = "&status=expired" if ended else ""
        seen = self.call(caller, "GET", f"/{kind}?page={page}&limit={limit}{state}")
        refused = self.model.admitted(caller, f"{kind}:read")
        self.agree(
            f"list {kind}", seen, refused or self.model.page(kind, caller, page, limit, ended=ended)
        )

    @rule(kind=what, number=who, index=which)
    def show(self, kind: str, number: int, index: int) -> None:
        caller, code = self.keys[number], self.code(kind, index)
        seen = self.call(caller, "GET", f"/{kind}/{code}")
        self.agree(
            f"show {kind}",
            seen,
            self.model.admitted(caller, f"{kind}:read") or self.model.show(kind, caller, code),
        )

    @rule(kind=what, number=who, index=which, none=st.sampled_from([False] * 7 + [True]))
    def delete(self, kind: str, number: int, index: int, none: bool) -> None:  # noqa: FBT001
        caller, code = self.keys[number], "" if none else self.code(kind, index)
        seen = self.call(caller, "DELETE", f"/{kind}/{code}")
        refused = self.model.admitted(caller, f"{kind}:write")
        self.agree(f"delete {kind}", seen, refused or self.model.delete(kind, caller, code))

    @rule(number=who, index=which)
    def submissions(self, number: int, index: int) -> None:
        caller, code = self.keys[number], self.code("requests", index)
        seen = self.call(caller, "GET", f"/requests/{code}/submissions")
        refused = self.model.admitted(caller, "requests:read")
        self.agree("submissions", seen, refused or self.model.submissions(caller, code))

    @rule(number=who, times=st.sampled_from([1, 1, 1, 40]))
    def stats(self, number: int, times: int) -> None:
        caller = self.keys[number]
        for _ in range(times):
            seen = self.call(caller, "GET", "/stats")
            self.agree(
                "stats", seen, self.model.admitted(caller, "stats:read") or self.model.stats(caller)
            )

    # People

    @rule(kind=what, index=which)
    def look(self, kind: str, index: int) -> None:
        code = self.code(kind, index)
        self.agree(
            f"look at {kind}",
            self.door.ask("GET", f"/links/{kind}/{code}"),
            people.look(self.model, kind, code),
        )

    @rule(
        index=which,
        right=st.sampled_from([True, True, True, False]),
        verifier=words,
        times=st.sampled_from([1, 1, 5]),
    )
    def open_share(
        self,
        index: int,
        right: bool,  # noqa: FBT001
        verifier: str | None,
        times: int,
    ) -> None:
        share = self.model.find("shares", self.code("shares", index))
        code = share.code if share else "unknown"
        token = (share.token if share else TOKENS[0]) if right else "w" * 43
        for _ in range(times):
            seen = self.door.ask(
                "POST",
                f"/links/shares/{code}/open",
                {"access_token": token, "passcode_verifier": verifier},
            )
            self.agree("open share", seen, people.open_share(self.model, code, token, verifier))

    @rule(index=which, passcode=words)
    def open_form(self, index: int, passcode: str | None) -> None:
        code = self.code("requests", index)
        seen = self.door.ask("POST", f"/links/requests/{code}/open", {"passcode": passcode})
        self.agree("open form", seen, people.open_form(self.model, code, passcode))

    @rule(index=which, passcode=words, sealed=st.sampled_from([True, True, False]))
    def submit(self, index: int, passcode: str | None, sealed: bool) -> None:  # noqa: FBT001
        code = self.code("requests", index)
        sent = {"data": DATA, "encryption_type": "e2ee-aes256-gcm" if sealed else "none"}
        seen = self.door.ask(
            "POST", f"/links/requests/{code}/submit", {**sent, "passcode": passcode}
        )
        self.agree("submit", seen, people.submit(self.model, code, passcode, sent, seen[2]))

    # What changes around them

    @rule(seconds=st.sampled_from([1, 1, 7, 29, 30, 60, 3600, DAY - 1, DAY, 5 * DAY, 15 * DAY]))
    def advance(self, seconds: int) -> None:
        self.door.advance(seconds)
        self.model.now += seconds

    @rule(space=st.sampled_from(SPACES), plan=st.sampled_from(PLANS), at_once=st.booleans())
    def change_the_plan(self, space: str, plan: Plan, at_once: bool) -> None:  # noqa: FBT001
        numbers = {"requests_per_minute": plan.rate or "unset", "shares": plan.shares or "plan"}
        changes = {**numbers, "view_protection": plan.view_protection, "at_once": at_once}
        status, _, _ = self.door.ask("POST", f"/rehearsal/accounts/{space}", changes)
        assert status == 200
        since = self.model.now + (0 if at_once else 30)
        self.model.plans.setdefault(space, []).append((since, plan))

    @rule(number=st.sampled_from([0, 1, 2]), plan=st.sampled_from(PLANS), early=st.booleans())
    def change_the_plan_between_two_calls(
        self,
        number: int,
        plan: Plan,
        early: bool,  # noqa: FBT001
    ) -> None:
        self.stats(number, 1)
        self.change_the_plan(self.keys[number].space, plan, at_once=False)
        self.advance(30 - early)
        self.stats(number, 1)

    @rule(number=st.sampled_from([4, 5, 3]))
    def revoke(self, number: int) -> None:
        key_id = self.keys[number].key_id
        status, _, _ = self.door.ask("POST", f"/rehearsal/keys/{key_id}/revoke")
        assert status == 200
        self.model.revoked.add(key_id)

    @rule(kind=what)
    def make_the_next_delete_fail(self, kind: str) -> None:
        moment = {"shares": "share.expiring", "requests": "request.ending"}[kind]
        self.door.service.failing[moment] = 1
        self.model.failing.add(kind)

    @rule()
    def restart(self) -> None:
        self.door.restart()
        self.model.restarted()

    @invariant()
    def the_events_are_those_of_the_deletes(self) -> None:
        Base.steps += 1  # this is asked after each
        events = [(event.account, event.payload) for event in self.door.service.log.events()]
        deleted = [
            (account, {"event": "share.deleted", "short_code": code})
            for account, code in self.model.events
        ]
        assert events == deleted
