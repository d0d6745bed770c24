"""Shares as a test wants them: any plaintext at all, sealed by Python and posted over real HTTP."""

from __future__ import annotations

import json
import secrets
from typing import Any

import httpx

from sealpipe.wire import envelope, link, tokens
from sealpipe_rehearsal.running_service import RunningService


def send(
    service: RunningService,
    plaintext: bytes | list[Any],
    passcode: str | None = None,
    **members: Any,
) -> str:
    """The link of a new share of this plaintext (or of these members as JSON); `members` join the
    create body.
    """
    text = plaintext if isinstance(plaintext, bytes) else as_json(plaintext)
    key = secrets.token_bytes(32)
    proof = {} if passcode is None else {"passcode_verifier": tokens.passcode_verifier(passcode)}
    body = {
        "data": envelope.seal(key, text, passcode),
        "access_token": tokens.access_token(key),
        **proof,
        **members,
    }
    return link.share_link(service.link_base_url, post(service, body), key)


def post(service: RunningService, body: dict[str, Any]) -> str:
    """The short code of a share made of exactly this body."""
    credential = service.create_key()
    sent = credential.reveal().rpartition(".")[0]
    headers = {"authorization": f"Bearer {sent}", "idempotency-key": secrets.token_hex(16)}
    whole = {"encryption_type": "e2ee-aes256-gcm", **body}
    with httpx.Client(trust_env=False) as http:
        answer = http.post(f"{service.base_url}/shares", json=whole, headers=headers)
    assert answer.status_code == 201, answer.text
    service.revoke_key(credential)  # a plan has room for five
    code: str = answer.json()["short_code"]
    return code


def as_json(fields: list[Any]) -> bytes:
    """What a browser's JSON.stringify gives; half a surrogate pair stays escaped."""
    text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
    return "".join(
        c if not "\ud800" <= c <= "\udfff" else f"\\u{ord(c):04x}" for c in text
    ).encode()


def field(value: str, kind: str = "text", key: str = "Label", **more: Any) -> dict[str, Any]:
    """One field's members."""
    return {"key": key, "value": value, "type": kind, **more}


def spent(service: RunningService, link: str) -> tuple[int, int]:
    """Views and tries that the service has counted off, of a share with one view."""
    code = link.rpartition("/")[2].partition("#")[0]
    row = service.service.database.row(
        "SELECT * FROM shares WHERE short_code = :code", {"code": code}
    )
    assert row is not None
    return 1 - row["access_counts_left"], 5 - row["passcode_attempts_left"]
