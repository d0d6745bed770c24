"""Pairs of requests that a stranger must not tell apart: of what there is not, and of what is
another's.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

import httpx

from support.server_thread import ServerThread

POINT = "BGsX0fLhLEJH-Lzm5WOkQPJ3A32BLeszoPShOUXYmMKWT-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU"
UNKNOWN = "x" * 12


def make_pairs(
    server: ServerThread, client: httpx.Client
) -> Mapping[str, tuple[httpx.Request, httpx.Request]]:
    """Make what is another's, and return the pairs, of the unknown and of the foreign."""
    other, mine = server.key("another"), server.key()

    def create(what: str, **body: Any) -> str:
        headers = {"authorization": f"Bearer {other}", "idempotency-key": uuid.uuid4().hex}
        made = client.post(f"/v1/{what}", json=body, headers=headers)
        return str(made.json()["short_code"])

    def share_of(length: int) -> str:
        sealed = {"encryption_type": "e2ee-aes256-gcm", "access_token": "a" * 43}
        return create("shares", data="A" * length, **sealed)

    share, long = share_of(2**10), share_of(2**20)
    request = create("requests", title="t", public_key=POINT, fields=[])

    def ask(method: str, path: str, key: str = mine, **more: Any) -> httpx.Request:
        return client.build_request(
            method, path, headers={"authorization": f"Bearer {key}"}, **more
        )

    def codes(
        method: str, path: str, code: str, **more: Any
    ) -> tuple[httpx.Request, httpx.Request]:
        return ask(method, path.format(UNKNOWN), **more), ask(method, path.format(code), **more)

    key_id, dot, auth = other.partition("_sk_live_")[2].partition(".")
    assert dot, "a key has two parts"
    assert len(auth) == 43
    wrong = "y" * 43
    token = {"access_token": "b" * 43}
    return {
        "a key": (
            ask("GET", "/v1/stats", other.replace(key_id, "z" * len(key_id)).replace(auth, wrong)),
            ask("GET", "/v1/stats", other.replace(auth, wrong)),
        ),
        "a share": codes("GET", "/v1/shares/{}", share),
        "a share's log": codes("GET", "/v1/shares/{}/access-log", share),
        "ending a share": codes("DELETE", "/v1/shares/{}", share),
        "a request": codes("GET", "/v1/requests/{}", request),
        "submissions": codes("GET", "/v1/requests/{}/submissions", request),
        "ending a request": codes("DELETE", "/v1/requests/{}", request),
        "a token": codes("POST", "/links/shares/{}/open", share, json=token),
        "a token of a share of 1 MiB": codes("POST", "/links/shares/{}/open", long, json=token),
    }
