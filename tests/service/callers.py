"""A bare caller of the API for these tests: httpx and JSON, none of sealpipe's client."""

from __future__ import annotations

import base64
import http.client
import itertools
import json
import ssl
from datetime import UTC, datetime
from typing import Any

import httpx

from sealpipe.secret import Secret
from sealpipe.wire import keys
from sealpipe_rehearsal.running_service import RunningService
from support.terminal import refusal as refusal

TOKEN = "t" * 42 + "s"
DATA = base64.b64encode(b"ciphertext that nobody looks into, of 44 bytes").decode()
WRAP = base64.b64encode(b"\1" + bytes(141)).decode()

NOON = datetime(2031, 3, 1, 12, tzinfo=UTC)
"""What the clock of `service_at_noon` says."""

SEED = bytes(range(32))
PAIR = keys.from_seed(SEED)
PUBLIC_KEY = base64.urlsafe_b64encode(PAIR.public_key).decode().rstrip("=")

# Plain HTTP only: httpx would load the CA bundle for every client, 25 ms each.
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

_numbers = itertools.count(1)


def body(**changes: Any) -> dict[str, Any]:
    """A create body that is accepted, with some members changed; `...` leaves one out."""
    members = {"encryption_type": "e2ee-aes256-gcm", "data": DATA, "access_token": TOKEN, **changes}
    return {name: value for name, value in members.items() if value is not ...}


def request_body(**changes: Any) -> dict[str, Any]:
    """The same for a request."""
    fields = [{"item": "Password", "type": "password"}]
    members = {"title": "t", "public_key": PUBLIC_KEY, "fields": fields, **changes}
    return {name: value for name, value in members.items() if value is not ...}


def rows(table: dict[str, list[Any]]) -> list[tuple[str, Any]]:
    """A table of several values a member, as one row a value."""
    return [(name, value) for name, values in table.items() for value in values]


def by_hand(
    running: RunningService, method: str, path: str, headers: dict[str, str]
) -> tuple[int, Any]:
    """Send a head as it stands: httpx tidies paths up and refuses header values that it finds
    odd.
    """
    connection = http.client.HTTPConnection(*running.address, timeout=30)
    try:
        connection.request(method, path, headers=headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def two_parts(credential: Secret) -> str:
    """What may be sent of a credential."""
    return credential.reveal().rpartition(".")[0]


class Api:
    """Calls under /v1 with one credential."""

    def __init__(self, running: RunningService, credential: Secret) -> None:
        self.credential = credential
        self.http = httpx.Client(
            base_url=running.base_url,
            headers={
                "Authorization": f"Bearer {two_parts(credential)}",
                "Content-Type": "application/json",
            },
            trust_env=False,
            verify=NO_TLS,
            timeout=30,
        )

    @property
    def bearer(self) -> str:
        return f"Bearer {two_parts(self.credential)}"

    @property
    def key_id(self) -> str:
        return self.credential.reveal().partition("_sk_live_")[2].partition(".")[0]

    def post(self, content: bytes, key: str | None = "", **headers: str) -> httpx.Response:
        """POST /v1/shares. A fresh idempotency key unless one is given; None leaves the header
        out.
        """
        if key is not None:
            headers["Idempotency-Key"] = key or f"key-{next(_numbers)}"
        return self.http.post("/shares", content=content, headers=headers)

    def create(self, key: str | None = "", **changes: Any) -> httpx.Response:
        return self.post(json.dumps(body(**changes)).encode(), key)

    def created(self, **changes: Any) -> str:
        """The short code of a new share."""
        response = self.create(**changes)
        assert response.status_code == 201, response.text
        code: str = response.json()["short_code"]
        return code

    def codes(self, query: str = "", what: str = "shares") -> list[str]:
        return [item["short_code"] for item in self.http.get(f"/{what}{query}").json()[what]]

    def post_request(self, content: bytes, key: str | None = "", **headers: str) -> httpx.Response:
        """POST /v1/requests, as `post` does it for shares."""
        if key is not None:
            headers["Idempotency-Key"] = key or f"key-{next(_numbers)}"
        return self.http.post("/requests", content=content, headers=headers)

    def ask(self, key: str | None = "", **changes: Any) -> httpx.Response:
        return self.post_request(json.dumps(request_body(**changes)).encode(), key)

    def asked(self, **changes: Any) -> str:
        """The short code of a new request."""
        response = self.ask(**changes)
        assert response.status_code == 201, response.text
        code: str = response.json()["short_code"]
        return code

    def delete_request(self, code: str) -> httpx.Response:
        return self.http.delete(f"/requests/{code}")
