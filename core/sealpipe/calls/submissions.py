"""Collecting what was submitted: from one request, or from many."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sealpipe.flows import Flow
from sealpipe.flows.collect.options import CollectEachOptions as CollectEachOptions
from sealpipe.flows.collect.options import CollectOneOptions as CollectOneOptions
from sealpipe.flows.session import Session

if TYPE_CHECKING:
    from sealpipe.flows.collect import CollectResult


def collect(session: Session, options: CollectOneOptions) -> Flow[CollectResult]:
    """Open what was submitted to a request, and store it where it belongs (DESIGN 6.5). Safe to call again.

    `request` is a short code, or a receipt: with it the prompts' ids are known. `key` is `credential` (and the
    previous one), a reference to a seed or an access link, a `Secret` that is one, or a key pair. `to` names sinks,
    `folder` takes each submission as a folder of files. `after="expire"` ends the request once every place is
    confirmed. Nothing is written to disk unless `state` names a folder: there the ciphertext of what could not be
    used is kept. `on_progress` is called with a `Progress` now and then, and awaited where it is asynchronous (with
    `AsyncClient`); what it raises ends the call.

    `.status` is `pending` where nobody has answered yet, `expired` where nobody did. Raises what is wrong with the
    request, and what a sink says; the error's `.collected` has what was got all the same.
    """
    from sealpipe.flows.collect import poll

    (result,) = yield from poll.collect(session, options)
    error = result.error or next(iter(result.failures), None)
    if error is not None:
        error.collected = result
        raise error
    return result


def collect_each(session: Session, options: CollectEachOptions) -> Flow[list[CollectResult]]:
    """As `collect`, from many requests at once, within the plan's rate: each has its own outcome.

    Raises only what concerns all of them; `.problem()` of each is the error that it would have ended with.
    """
    from sealpipe.flows.collect import poll

    return poll.collect(session, options)
