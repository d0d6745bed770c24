"""Ending a share at once (specification: DELETE /v1/shares/{shortCode})."""

from __future__ import annotations

from sealpipe.api import shares
from sealpipe.errors import OutcomeUnknown
from sealpipe.flows.retry import call
from sealpipe.flows.session import Session
from sealpipe.flows.steps import Flow


def expire_share(session: Session, short_code: str) -> Flow[None]:
    """The share's link stops working now. Repeated where an answer is lost: doing it twice ends the same.

    Raises Missing where there is no such share, or it had ended before; OutcomeUnknown where no try was settled.
    """
    try:
        yield from call(shares.expire(short_code), session.budget())
    except OutcomeUnknown as error:
        # "Not there" after a try of ours that may have got through: that try did it (DESIGN 6.4).
        if (error.status, error.error_code) != (404, 1):
            error.remedy = f"run `sealpipe shares expire {short_code}` again: repeating it does no harm"
            raise
