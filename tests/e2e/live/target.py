"""Whom the live tests talk to, and a bare caller that is careful with it: httpx and JSON, none of
our client.
"""

from __future__ import annotations

import itertools
import json
import ssl
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from sealpipe.secret import Secret

VARIABLES = {
    "base_url": "SEALPIPE_LIVE_BASE_URL",
    "link_base_url": "SEALPIPE_LIVE_LINK_BASE_URL",
    "api_key": "SEALPIPE_LIVE_API_KEY",
}
LIFE = timedelta(minutes=10)
"""What is made here ends by itself after this, should nobody be left to end it."""

# Nothing here is secret: ciphertext that nobody can open.
DATA = "c2VhbHBpcGUncyBsaXZlIHRlc3RzOiBub3RoaW5nIHRvIHNlZSBoZXJlLCBhbmQgbm8ga2V5IG9wZW5zIGl0Lg=="
TOKEN = "sealpipes-live-tests-token-that-opens-nothi"
PUBLIC_KEY = (
    "BGKdyjr8FlgRtuyQXHwT3pT_IkxAcRu6iTb2OlEYj8N_MxLqL1f2bnxXDPWJ338FX6U1jEYRTWa3VpXyQRjPQM4"
)
FIELDS = [{"item": "Staging password", "type": "password"}, {"item": "Note", "type": "text"}]

_numbers = itertools.count(1)
_run = uuid.uuid4()


@dataclass(frozen=True)
class Target:
    """A service and a credential there with every scope."""

    name: str
    base_url: str
    link_base_url: str
    api_key: Secret


def absent(environ: Mapping[str, str]) -> list[str]:
    """Which of the variables are not set."""
    return [variable for variable in VARIABLES.values() if not environ.get(variable)]


def development_host(environ: Mapping[str, str]) -> Target:
    """The host that the environment names.

    All of it, or the tests fail: half a name is a mistake.
    """
    if missing := absent(environ):
        pytest.fail(
            f"the development host is named in part: {', '.join(missing)} not set", pytrace=False
        )
    values = {name: environ[variable] for name, variable in VARIABLES.items()}
    api_key = Secret(values.pop("api_key"))
    return Target("development host", **values, api_key=api_key)


def soon() -> str:
    """An end that is near, as RFC 3339."""
    return (datetime.now(UTC) + LIFE).replace(microsecond=0).isoformat()


def moment(text: str) -> datetime:
    """What an RFC 3339 time says, however it is written."""
    return datetime.fromisoformat(text)


class Caller:
    """Calls under /v1. It remembers what it made, and ends it; it never ends a request twice unless
    told to.
    """

    def __init__(self, target: Target) -> None:
        self.target = target
        # Plain HTTP needs no TLS, and a CA bundle costs 25 ms. For the rest, httpx's default.
        plain = target.base_url.startswith("http://")
        self._http = httpx.Client(
            trust_env=not plain,
            verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if plain else True,
            timeout=30,
        )
        # Two of its parts: the third is for nobody's eyes but ours.
        self._bearer = Secret(f"Bearer {'.'.join(target.api_key.reveal().split('.')[:2])}")
        self._shares: set[str] = set()
        self._requests: dict[str, int] = {}

    def send(
        self,
        method: str,
        path: str,
        content: bytes | None = None,
        *,
        key: str | None = None,
        authorization: str | None = "",
    ) -> httpx.Response:
        """One call; with our credential unless another `authorization`, or None, is given."""
        headers = {"Content-Type": "application/json"} if content is not None else {}
        if key is not None:
            headers["Idempotency-Key"] = key
        if authorization:
            headers["Authorization"] = authorization
        try:
            return self._http.request(
                method,
                self.target.base_url + path,
                content=content,
                headers=headers,
                auth=self._sign if authorization == "" else None,
            )
        except httpx.HTTPError as error:
            # Without httpx's frames: their locals hold the header that was sent.
            problem = f"{self.target.name} did not answer {method} {path}: {type(error).__name__}"
        raise AssertionError(problem)

    def get(self, path: str) -> httpx.Response:
        return self.send("GET", path)

    def create(self, what: str, key: str | None = None, **changes: Any) -> httpx.Response:
        """POST /shares or /requests with a body that is accepted, some members changed; `...`
        leaves one out.
        """
        return self.post(what, body(what, **changes), fresh_key() if key is None else key)

    def post(self, what: str, content: bytes, key: str | None) -> httpx.Response:
        response = self.send("POST", f"/{what}", content, key=key)
        if response.status_code in (200, 201):
            self.remember(what, response.json()["short_code"])
        return response

    def created(self, what: str, **changes: Any) -> str:
        """The short code of a new share or request."""
        response = self.create(what, **changes)
        assert response.status_code == 201, response.text
        code: str = response.json()["short_code"]
        return code

    def remember(self, what: str, code: str) -> None:
        """End this afterwards, unless it was ended by then."""
        if what == "shares":
            self._shares.add(code)
        else:
            self._requests.setdefault(code, 0)

    def expire_share(self, code: str) -> httpx.Response:
        self._shares.discard(code)
        return self.send("DELETE", f"/shares/{code}")

    def delete_request(self, code: str, *, times: int = 1) -> httpx.Response:
        """DELETE /requests/CODE, refused here where it would be sent to a request more often than
        told.
        """
        assert self._requests.get(code, times) < times, (
            "a second DELETE destroys submissions for good"
        )
        self._requests[code] += 1
        return self.send("DELETE", f"/requests/{code}")

    def leave_request(self, code: str) -> None:
        """Somebody else sends the one DELETE of this one: from here it gets none."""
        self._requests[code] = self._requests.get(code, 0) + 1

    def listed(self, what: str, query: str = "?limit=100") -> list[str]:
        """The short codes of the newest."""
        return [item["short_code"] for item in self.get(f"/{what}{query}").json()[what]]

    def clean_up(self) -> None:
        """End whatever is left."""
        try:
            for code in sorted(self._shares):
                self.expire_share(code)
            for code, times in self._requests.items():
                if times == 0:
                    self.delete_request(code)
        finally:
            self._http.close()

    def _sign(self, request: httpx.Request) -> httpx.Request:
        request.headers["Authorization"] = self._bearer.reveal()
        return request


def body(what: str, **changes: Any) -> bytes:
    """The body of a create; `...` leaves a member out."""
    members: dict[str, Any] = {
        "shares": {"encryption_type": "e2ee-aes256-gcm", "data": DATA, "access_token": TOKEN},
        "requests": {"public_key": PUBLIC_KEY, "fields": FIELDS},
    }[what]
    members = {"title": "sealpipe live test", **members, "expired_at": soon(), **changes}
    return json.dumps({name: value for name, value in members.items() if value is not ...}).encode()


def fresh_key() -> str:
    """An idempotency key that was never used."""
    return f"sealpipe-live-{_run}-{next(_numbers)}"
