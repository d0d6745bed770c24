"""How whoever asked sees the answers at the access link: private to the rehearsal, outside /v1.

They get ciphertexts alone: the link's key opens them in their browser and never comes here.
"""

from __future__ import annotations

from . import listing, requests
from .context import Service
from .refusals import Answer, answer

_NOT_FOUND = {"reason": "not-found", "message": "there is no such request"}


def show(service: Service, code: str) -> Answer:
    """GET /rehearsal/requests/{code}/submissions: what was sent, sealed as it is, of an expired request too."""
    listing.settle(service)
    row = service.store.row("SELECT * FROM requests WHERE short_code = :code", {"code": code})
    if row is None:
        return answer(404, _NOT_FOUND)
    sealed = requests.sealed_to(service, row)
    told = {name: row[name] for name in ("short_code", "title", "public_key", "max_submission")}
    ends = row["expired_at"] if row["ended_at"] is None else None
    received = sealed["count"] + sealed["skipped_not_end_to_end_encrypted"]
    return answer(200, {**told, **sealed, "expired_at": ends, "received": received})
