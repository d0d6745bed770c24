"""A test share: made, and ended at once, opened by nobody. Its value says what it is."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import TypeVar

from sealpipe.api import shares
from sealpipe.api.operation import Failure, Operation
from sealpipe.api.refusals import service_error
from sealpipe.client import run
from sealpipe.doctor import Finding, failure, ok, warning
from sealpipe.doctor.connectivity import ServiceConnection
from sealpipe.errors import ConnectError, InvalidRequestError, OutcomeUnknownError, SealpipeError
from sealpipe.flows import outgoing, policy
from sealpipe.flows.session import Session
from sealpipe.flows.share.options import ShareOptions
from sealpipe.flows.share.seal import SealedShare, seal_share
from sealpipe.flows.steps import Flow
from sealpipe.wire.field import Field

T = TypeVar("T")

VALUE = "A test of `sealpipe doctor --roundtrip`: made up, not a secret, expired as soon as it is created."
LIFE = timedelta(minutes=5)
"""How long it lasts at most, should ending it fail."""

_ENDS = "the test share expires by itself within five minutes"


def check_round_trip(session: Session, line: ServiceConnection) -> Iterator[Finding]:
    """Seal, create, end: three calls at most, each sent once. Policies are asked, as about any share."""
    test = ShareOptions([Field("test", VALUE, type="text")], title="sealpipe doctor: a test", expires_in=LIFE)
    sealed = run(seal_share(test, session), lambda operation, _: line.send(operation))
    found: list[Finding] = []

    def work() -> Flow[str]:
        yield from ()
        return _tried(line, sealed, found)

    asked = outgoing.describe_share(session, test, sealed)
    try:
        run(policy.run_under_policy(session, asked, work(), _told), lambda operation, _: line.send(operation))
    except SealpipeError as error:
        found.append(failure("roundtrip", error))
    yield from found


def _told(short_code: str) -> Mapping[str, object]:
    return {"outcome": "created", "short_code": short_code, "ended": True}


def _tried(line: ServiceConnection, sealed: SealedShare, found: list[Finding]) -> str:
    try:
        created = _call(line, shares.create(sealed.body, str(uuid.uuid4())))
    except InvalidRequestError as error:
        if sealed.wrap_at is None or "item_key_wrap" not in error.additional_data:
            raise
        found.append(
            warning("custody", "the key has no custody level", "register its custody key, or share with --custody off")
        )
        created = _call(line, shares.create(shares.without_wrap(sealed.body, sealed.wrap_at), str(uuid.uuid4())))
    made = line.milliseconds
    _call(line, shares.expire(created.short_code))
    found.append(ok("roundtrip", f"a test share was created in {made} ms and expired in {line.milliseconds} ms"))
    if created.custody == "failed":
        advice = "enrol the account's zero-knowledge key"
        found.append(warning("custody", "the service could not store the wrapped key", advice))
    elif created.custody:
        found.append(ok("custody", f"the service answered `{created.custody}`"))
    return created.short_code


def _call(line: ServiceConnection, operation: Operation[T]) -> T:
    """The decoded answer of one sending."""
    result = line.send(operation)
    if isinstance(result, Failure):
        kind = OutcomeUnknownError if result.sent else ConnectError
        raise kind(f"could not {operation.name}: {result.detail}", remedy=_ENDS if result.sent else None)
    if not operation.settles(result):
        raise service_error(result)
    return operation.decode(result)
