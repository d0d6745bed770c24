"""The keys of requests, each derived from a credential and its row.

To find a row's request, and to open it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from sealpipe.api.operation import Credential
from sealpipe.api.requests import RequestInfo
from sealpipe.batch.database.sealing import derive_request_key
from sealpipe.batch.steps.row_work import RowWork, StepResult, mark_unclear, to_microseconds
from sealpipe.batch.steps.states import Event
from sealpipe.errors import WrongKeyError
from sealpipe.wire import keys
from sealpipe.wire.encoding import decode_base64url, encode_base64url

GENERATIONS_AHEAD: Final = 5
"""How many later generations are looked for at the service before a row's request is created."""


def find_request(work: RowWork, since: int = 0) -> StepResult | None:
    """Look for a request of this row that the database does not know.

    It was lost, or restored from a backup.

    The list that it is looked for in is newer than `since`.
    """
    listed = work.listing.fetch_requests(since)
    if not listed:
        return None
    first = work.row.generation
    for generation in range(first + GENERATIONS_AHEAD - 1, first - 1, -1):
        for credential in list_credentials(work):
            pair = derive_request_key(credential, work.batch.name, work.key, generation)
            info = listed.get(encode_base64url(pair.public_key))
            if info is not None:
                return adopt_request(work, info, generation, credential, pair)
    return None


def list_credentials(work: RowWork) -> list[Credential]:
    """Return the credentials that a request's key may come from."""
    credentials = (work.session.credential, work.session.previous)
    return [each for each in credentials if each is not None and each.custody_secret is not None]


def adopt_request(
    work: RowWork, info: RequestInfo, generation: int, credential: Credential, pair: keys.KeyPair
) -> StepResult:
    """Take over a request that the service lists. Whether its link was delivered is not known."""
    now, is_later = work.now(), generation != work.row.generation
    if is_later or work.options is None:
        work.options = work.definition.dump_options()
    progress = replace(
        work.progress.next_generation() if is_later else work.progress,
        digest=work.render().digest,
        short_code=info.short_code,
        public_key=info.public_key or "",
        key_id=credential.key_id,
        seed="" if credential is work.session.credential else encode_base64url(pair.seed),
        created_at=now,
        expires_at=to_microseconds(info.expires_at),
        delivered_at=now,
        touched_at=now,
    )
    recipients = [str(each) for each in work.render().arguments.get("send", ())]
    history = [{"what": "adopted", "short_code": info.short_code}]
    return StepResult(
        Event.ADOPTED, mark_unclear(work, progress, recipients), history, generation=generation
    )


def find_key_pair(work: RowWork) -> keys.KeyPair:
    """Return the key pair of the row's request.

    Derived from this credential or the previous one, or kept.

    Raises WrongKeyError.
    """
    progress = work.progress
    if progress.seed:
        return keys.from_seed(decode_base64url(progress.seed), tag=work.session.credential.tag)
    for credential in list_credentials(work):
        pair = derive_request_key(credential, work.batch.name, work.key, work.row.generation)
        if encode_base64url(pair.public_key) == progress.public_key:
            return pair
    raise WrongKeyError(
        "wrong-key",
        f"the key of request {progress.short_code} comes from another credential than this one",
        remedy="set SEALPIPE_API_KEY_PREVIOUS to the credential that created it",
    )
