"""No custody secret is in the rehearsal's log, wherever in a request it came (specification:
Credential, 3).
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from sealpipe_rehearsal import log_redaction
from sealpipe_rehearsal.running_service import RunningService
from sealpipe_rehearsal.server import start
from service.callers import DATA, Api, body

Call = Callable[[Api, str], dict[str, Any]]


def post(
    content: str | bytes | None = None, path: str = "/shares", **changes: Any
) -> dict[str, Any]:
    """A create that is accepted, with some members changed; or another body."""
    sent = json.dumps(body(**changes)) if content is None else content
    return {"method": "POST", "url": path, "content": sent, "headers": {"Idempotency-Key": "k"}}


def custody(api: Api) -> str:
    return api.credential.reveal().rpartition(".")[2]


def escapes(secret: str, prefix: str = "%") -> str:
    """Every character as an escape."""
    return "".join(f"{prefix}{ord(each):02x}" for each in secret)


CALLS: dict[str, Call] = {
    "in the path": lambda _, secret: {"url": f"/shares/{secret}"},
    "in the path, with text around it": lambda _, secret: {"url": f"/shares/a-{secret}_b/c"},
    "in the path, escaped": lambda _, secret: {"url": f"/shares/{escapes(secret)}"},
    "in the query": lambda _, secret: {"url": f"/shares?page=1&custody={secret}"},
    "in the query, escaped": lambda _, secret: {"url": f"/shares?custody={escapes(secret)}"},
    "as a name in the query": lambda _, secret: {"url": f"/shares?{secret}"},
    "in a header": lambda _, secret: {"url": "/shares", "headers": {"X-Custody": secret}},
    "in a header, with text around it": lambda _, secret: {
        "url": "/shares",
        "headers": {"Cookie": f"c={secret}; d=1"},
    },
    "as the idempotency key": lambda _, secret: {**post(), "headers": {"Idempotency-Key": secret}},
    "as a member": lambda _, secret: post(title=secret),
    "in a member that no rule names": lambda _, secret: post(x=[{"y": secret}]),
    "as a member's name": lambda _, secret: post(**{secret: 1}),
    "as the access token": lambda _, secret: post(access_token=secret),
    "in the ciphertext": lambda _, secret: post(data=DATA + secret),
    "in escapes of JSON": lambda _, secret: post(
        json.dumps({"x": "?"}).replace("?", escapes(secret, "\\u00"))
    ),
    "split over two members": lambda _, secret: post(title=secret[:20], description=secret[20:]),
    "split, the other way round": lambda _, secret: post(
        title=secret[20:], x="y", description=secret[:20]
    ),
    "split over three members": lambda _, secret: post(
        title=secret[:9], description=secret[9:30], x=secret[30:]
    ),
    "split over query and header": lambda _, secret: {
        "url": f"/shares?a={secret[:30]}",
        "headers": {"X": secret[30:]},
    },
    "in a body that is a form": lambda _, secret: post(f"a=1&b={secret}"),
    "in a form, escaped": lambda _, secret: post(f"a=1&b={escapes(secret)}"),
    "in a body that is no text": lambda _, secret: post(b"\xff\0" + secret.encode()),
    "in a body to the tools": lambda _, secret: post(
        json.dumps({"jsonrpc": "2.0", "x": secret}), "/mcp"
    ),
    "as a whole credential in a member": lambda api, _: post(
        title=f"key: {api.credential.reveal()}!"
    ),
    "as a whole credential in the query": lambda api, _: {
        "url": f"/shares?api_key={api.credential.reveal()}"
    },
    "as a credential split into its parts": lambda api, _: post(
        x=api.credential.reveal().split(".")
    ),
    "on the page of a link": lambda _, secret: {"url": f"../links/shares/{secret}"},
}


@pytest.mark.spec("credential.custody-nowhere", "credential.three-parts")
@pytest.mark.parametrize("how", CALLS)
def test_a_custody_secret_is_not_logged_wherever_it_came(
    service: RunningService, api: Api, how: str
) -> None:
    secret = custody(api)
    api.http.request(**{"method": "GET", **CALLS[how](api, secret)})
    (seen,) = service.seen()
    shown = httpx.get(f"{service.origin}/rehearsal/log", trust_env=False).json()["requests"][0]
    for text in (
        bytes(seen).decode("latin-1"),
        str(shown) + base64.b64decode(shown["body_base64"]).decode("latin-1"),
    ):
        assert log_redaction.PLACEHOLDER in text
        assert secret not in text
        assert escapes(secret) not in text
        assert not (secret[:20] in text and secret[20:] in text)


@pytest.mark.spec("credential.three-parts")
@pytest.mark.parametrize("part", [slice(42), slice(5, 43), slice(43)])
def test_what_stands_in_the_third_place_is_not_logged_even_if_it_is_damaged(
    service: RunningService, api: Api, part: slice
) -> None:
    secret = custody(api)[part]
    api.http.get("/shares", headers={"Authorization": f"{api.bearer}.{secret}"})
    (seen,) = service.seen()
    assert (
        dict(seen.headers)["authorization"] == f"{api.bearer}.{log_redaction.CUSTODY_PLACEHOLDER}"
    )


FINE: dict[str, Call] = {
    "a create": lambda _, __: post(),
    "another secret of that form": lambda _, __: {"url": f"/shares?x={'x' * 43}"},
    # With the dot nothing that follows it, such as a header, can be its last character by chance.
    "a part of it": lambda _, secret: {"url": f"/shares?x={secret[:-1]}."},
    "a large ciphertext": lambda _, __: post(data="A" * 1_000_000),
    "many short members": lambda _, __: post(x=[str(at) for at in range(9999)]),
    "nested deeply": lambda _, __: post(b"[" * 100_000),
}


@pytest.mark.parametrize("how", FINE)
def test_all_else_is_logged_as_it_came(service: RunningService, api: Api, how: str) -> None:
    call = {"method": "GET", **FINE[how](api, custody(api))}
    sent = api.http.build_request(**call)
    began = time.process_time()
    api.http.send(sent)
    assert time.process_time() - began < 2
    (seen,) = service.seen()
    assert (seen.target, seen.body) == (sent.url.raw_path.decode(), sent.content)
    assert dict(seen.headers)["authorization"] == api.bearer


def test_it_is_known_after_a_restart_and_whatever_the_custody_level(
    tmp_path: Path, caller: Callable[..., Api]
) -> None:
    for level in ("none", "self"):
        state = tmp_path / f"{level}.db"
        with start(state=state) as running:
            api = caller(running, custody=level)
        with start(state=state) as running:
            httpx.get(f"{running.base_url}/shares?x={custody(api)}", trust_env=False)
            assert custody(api).encode() not in bytes(running.seen()[0])
        assert custody(api).encode() not in b"".join(
            path.read_bytes() for path in tmp_path.iterdir()
        )
