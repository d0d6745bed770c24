"""What the steps of `machine` stand on: the service and its model side by side, and that they
agree.
"""

from __future__ import annotations

import hashlib
from typing import Any

from hypothesis.stateful import RuleBasedStateMachine

from sealpipe_service.checks import SCHEMAS, p256_point
from service.doors import START, Door, InProcess, Seen
from service.model import Model
from service.things import Caller, Told

Scopes = tuple[str, ...]

POINT: str = SCHEMAS[p256_point]["examples"][0]
SCOPES = ("shares:read", "shares:write", "requests:read", "requests:write", "stats:read")

# account, organisation, scopes, custody: two of one account, one of another, both in the
# organisation, and less.
KEYS: tuple[tuple[str, str | None, Scopes, bool], ...] = (
    ("default", None, SCOPES, True),
    ("other", None, SCOPES, True),
    ("default", "team", SCOPES, True),
    ("other", "team", SCOPES, True),
    ("default", None, SCOPES[::2], False),
    ("default", None, SCOPES, False),
)


def told(seen: Seen) -> Told:
    """An answer as the model writes it, once its shape is right."""
    status, headers, body = seen
    assert ("retry-after" in headers) == (status == 429)
    if body.keys() in ({"Message"}, {"message"}):
        return status, None
    if body.get("success") is False:
        code = body["error_code"]
        assert body.keys() == {
            "success",
            "message",
            "error_code",
            *(["additional_data"] if code == 19 else []),
        }
        if code == 19:
            return status, (code, set(body["additional_data"]))
        return status, (code, int(headers["retry-after"])) if code == 107 else code
    if "reason" in body:
        left = body.get("attempts_left")
        return status, body["reason"] if left is None else (body["reason"], left)
    return status, body


class Base(RuleBasedStateMachine):
    """A service, its model, and callers: the handlers in process, unless `door_class` says
    otherwise.
    """

    door_class: type[Door] = InProcess
    steps = 0  # these three over all runs, for an endurance run to print
    compared = 0
    answers: dict[tuple[str, int, Any], int] = {}  # noqa: RUF012

    def __init__(self) -> None:
        super().__init__()
        self.door = self.door_class()
        self.model = Model(START)
        self.keys = [self.new_key(number, *row) for number, row in enumerate(KEYS)]
        self.made = 0

    def teardown(self) -> None:
        self.door.close()

    def new_key(
        self,
        number: int,
        account: str,
        organization: str | None,
        scopes: Scopes,
        custody: bool,  # noqa: FBT001
    ) -> Caller:
        key_id, secret = f"key-{number:012}", f"{number:043}"
        key = {
            "key_id": key_id,
            "auth_sha256": hashlib.sha256(secret.encode()).hexdigest(),
            "name": "machine",
            "scopes": scopes,
            "account": account,
            "organization": organization,
            "custody_public_key": POINT if custody else None,
        }
        status, _, _ = self.door.ask("POST", "/rehearsal/keys", key)
        assert status == 201
        credential = f"Bearer svc_sk_live_{key_id}.{secret}"
        return Caller(credential, key_id, account, organization, frozenset(scopes), custody)

    def code(self, kind: str, number: int) -> str:
        """The code of one that there is; 0 is of none."""
        things = self.model.things[kind]
        return things[-1 - number % len(things)].code if things and number else "unknown"

    def call(
        self, caller: Caller, method: str, path: str, sent: Any = None, **headers: str
    ) -> Seen:
        headers |= {"authorization": caller.credential, "content_type": "application/json"}
        return self.door.ask(method, f"/v1{path}", sent, **headers)

    def agree(self, step: str, seen: Seen, expected: Told) -> None:
        found = told(seen)
        assert found == expected, f"{step}: the service answered {found}, the model says {expected}"
        Base.compared += 1
        counted = step, found[0], None if isinstance(found[1], dict) else str(found[1])
        Base.answers[counted] = Base.answers.get(counted, 0) + 1
