"""Which share or request a word on a command line names: a short code as it is, or its encoded form (`wire.code`).

Most words can only be one of the two, and nothing is asked. A word that may be both, as `a%2Fb` may be the code `a%2Fb`
or the encoded form of `a/b`, is looked for at the service as both: it is the one that is there. Where both are there,
or this machine knows that the other one was, it is refused: nothing is ever ended, or opened, by a guess. Purging
destroys: there `--confirm` says which is meant, and a look is not enough.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from sealpipe.api import requests, shares
from sealpipe.errors import NotFoundError, UsageError
from sealpipe.flows import Do, Flow
from sealpipe.flows.retry import call
from sealpipe.flows.session import Session
from sealpipe.wire.encoding import decoded, encoded
from sealpipe.wire.link import called

Lookup = Callable[[str], Flow[bool]]
"""Whether a code is, or was, one of this account's."""


def find_share_code(session: Session, word: str, keep: Path | None = None) -> Flow[str]:
    """The share's code. `keep` is where this machine notes what it has expired. Raises UsageError for two."""
    return _resolve(word, partial(_find_share, session, keep))


def find_request_code(session: Session, word: str, keep: Path | None = None) -> Flow[str]:
    """The request's code. `keep` is where this machine keeps its records of requests. Raises UsageError for two."""
    return _resolve(word, partial(_find_request, session, keep))


def confirm_code(word: str, confirm: str) -> str:
    """The code that is to be destroyed, by the two words that name it. Raises UsageError where they may name two.

    One of them has to be a word that can mean this code alone, and the other must be able to.
    """
    candidates = [{each for each in (spelling, decoded(spelling)) if each is not None} for spelling in (word, confirm)]
    common = candidates[0] & candidates[1]
    if len(common) == 1:
        return common.pop()
    if common:
        other = decoded(word) or word
        raise UsageError(
            f"{word} is ambiguous: it can be this code or the encoded form of {other}; nothing was sent",
            remedy=f"confirm with --confirm {encoded(word)} for the one, with the code itself for the other",
        )
    return word  # not confirmed, which is told as ever


def _resolve(word: str, exists: Lookup) -> Flow[str]:
    called(word)  # a link or a credential is looked for nowhere
    decoded_word = decoded(word)
    if decoded_word is None:
        return word
    is_literal = yield from _check_exists(word, exists)
    is_encoded = yield from _check_exists(decoded_word, exists)
    if is_literal and is_encoded:
        raise UsageError(
            f"{word} is ambiguous: one code is exactly this, and it is the encoded form of another; nothing was done",
            remedy=f"name the first as {encoded(word)}, the second by its code as it is",
        )
    return decoded_word if is_encoded else word


def _check_exists(code: str, exists: Lookup) -> Flow[bool]:
    try:
        called(code)
    except UsageError:
        return False
    return (yield from exists(code))


def _find_share(session: Session, keep: Path | None, code: str) -> Flow[bool]:
    if keep is not None:
        from sealpipe import state

        if (yield Do(partial(state.was_expired, keep, session.base_url, code))):
            return True
    try:
        yield from call(shares.get(code), session.start_budget())
    except NotFoundError:
        return False
    return True


def _find_request(session: Session, keep: Path | None, code: str) -> Flow[bool]:
    if keep is not None:
        from sealpipe.state import ledger

        if (yield Do(partial(ledger.has_ledger, keep, session.base_url, code))):
            return True
    try:
        yield from call(requests.get(code), session.start_budget())
    except NotFoundError:
        return False
    return True
