"""A test share: made, and ended at once, opened by nobody. Its value says what it is."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import timedelta
from typing import TypeVar

from sealpipe.api import shares
from sealpipe.api.operation import Failure, Operation
from sealpipe.api.refusals import refusal
from sealpipe.client.sync import run
from sealpipe.doctor.finding import Finding, doubtful, failed, fine
from sealpipe.doctor.way import Line
from sealpipe.errors import Invalid, OutcomeUnknown, SealpipeError, Unreachable
from sealpipe.flows.planning import plan
from sealpipe.flows.sealing import prepare
from sealpipe.flows.session import Session
from sealpipe.wire.field import Field

T = TypeVar("T")

VALUE = "A test of `sealpipe doctor --roundtrip`: made up, no secret, ended as soon as it was made."
LIFE = timedelta(minutes=5)
"""How long it lasts at most, should ending it fail."""

_ENDS = "what was made ends by itself within five minutes"


def findings(session: Session, line: Line) -> Iterator[Finding]:
    """Seal, create, end: three calls at most, each sent once."""
    test = plan([Field("test", VALUE, type="text")], title="sealpipe doctor: a test", expires_in=LIFE)
    sealed = run(prepare(test, session), lambda operation, _: line.send(operation))
    try:
        try:
            created = _call(line, shares.create(sealed.body, str(uuid.uuid4())))
        except Invalid as error:
            if sealed.wrap_at is None or "item_key_wrap" not in error.additional_data:
                raise
            yield doubtful("custody", "the key has no custody level", "register its custody key, or share without")
            created = _call(line, shares.create(shares.without_wrap(sealed.body, sealed.wrap_at), str(uuid.uuid4())))
        made = line.milliseconds
        _call(line, shares.expire(created.short_code))
    except SealpipeError as error:
        yield failed("roundtrip", error)
        return
    yield fine("roundtrip", f"a test share was made in {made} ms and ended in {line.milliseconds} ms")
    if created.custody == "failed":
        yield doubtful("custody", "the service could not keep the wrap", "enrol the account's zero-knowledge key")
    elif created.custody:
        yield fine("custody", f"the service answered `{created.custody}`")


def _call(line: Line, operation: Operation[T]) -> T:
    """The decoded answer of one sending."""
    result = line.send(operation)
    if isinstance(result, Failure):
        kind = OutcomeUnknown if result.sent else Unreachable
        raise kind(f"could not {operation.name}: {result.detail}", remedy=_ENDS if result.sent else None)
    if not operation.settles(result):
        raise refusal(result)
    return operation.decode(result)
