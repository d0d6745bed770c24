"""The headers of every answer of a server, whichever route it is of, and what its pages load."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Mapping

import httpx
import pytest

from sealpipe_service import pages, responses
from sealpipe_service.app import SHORT_BODY
from sealpipe_service.routes import OTHER, ROUTES
from support.server_thread import ServerThread, serve_in_thread

PAGES = ("/", "/s/none", "/s/r/none", "/page/share.js", "/page/style.css", "/page/icon.svg")
ODD: Mapping[str, tuple[int, httpx.Request]] = {
    "no route": (404, httpx.Request("GET", "http://h/none")),
    "another host": (421, httpx.Request("GET", "http://h/v1/stats", headers={"host": "h"})),
    "a page of another host": (403, httpx.Request("GET", "http://h/s/x", headers={"host": "h"})),
    "another page": (
        403,
        httpx.Request("POST", "http://h/links/shares/x/open", headers={"origin": "http://x"}),
    ),
    "too long": (413, httpx.Request("POST", "http://h/none", content=b" " * (SHORT_BODY + 1))),
    "no path": (400, httpx.Request("OPTIONS", "http://h/", extensions={"target": b"*"})),
}


@pytest.fixture(scope="module")
def server() -> Iterator[ServerThread]:
    with serve_in_thread() as running:
        yield running


@pytest.fixture(scope="module")
def client(server: ServerThread) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"http://{server.host}", trust_env=False) as client:
        yield client


IMPORT = re.compile(r'(?:from|import)\s*\(?\s*"\./([^"]+)"')


def hash_of(body: bytes, name: str) -> str:
    return base64.b64encode(hashlib.new(name, body).digest()).decode()


def of(answer: httpx.Response, expected: Mapping[str, str]) -> Mapping[str, str]:
    """What an answer has of some headers, each of which it has once."""
    return {name: ", ".join(answer.headers.get_list(name)) for name in expected}


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "OPTIONS"])
def test_no_answer_is_stored_sniffed_framed_or_referred_from(
    client: httpx.Client, server: ServerThread, method: str
) -> None:
    credential = {"authorization": f"Bearer {server.key()}", "idempotency-key": "k"}
    for route in ROUTES:
        path = route.replace("{shortCode}", "none").replace("{file}", "share.js")
        for headers in ({}, credential):
            answer = client.request(method, path, headers=headers)
            is_page = method == "GET" and path in PAGES
            expected = pages.HEADERS if is_page else responses.HEADERS
            if path in ("/s/none", "/s/r/none") and is_page:  # its policy has a hash more
                expected = {
                    name: value
                    for name, value in expected.items()
                    if name != "content-security-policy"
                }
            if "etag" in answer.headers:  # who asks again with it is told that nothing changed
                expected = {**expected, "cache-control": "private, no-cache"}
            assert of(answer, expected) == expected, (route, answer.status_code)
            assert "set-cookie" not in answer.headers
            assert "server" not in answer.headers
    assert OTHER in ROUTES


@pytest.mark.parametrize("name", ODD)
def test_no_refusal_is_either(client: httpx.Client, server: ServerThread, name: str) -> None:
    status, request = ODD[name]
    if request.headers["host"] != "h" or name in ("no route", "another page", "too long"):
        request.headers["host"] = server.host
    request.url = request.url.copy_with(host=server.address[0], port=server.address[1])
    answer = client.send(request)
    assert answer.status_code == status
    assert of(answer, responses.HEADERS) == responses.HEADERS


def test_a_page_takes_no_script_or_style_but_those_that_it_names_by_hash(
    client: httpx.Client,
) -> None:
    for path in ("/", "/s/none", "/s/r/none"):
        page = client.get(path).text
        loaded = dict(re.findall(r'(?:src|href)="(/page/[^"]+)" integrity="sha384-([^"]+)"', page))
        found = set(re.findall(r'(?:src|href)="([^"]+)"', page))
        assert found - set(loaded) == {"/page/icon.svg"}
        for name, pinned in loaded.items():
            body = client.get(name).content
            assert hash_of(body, "sha384") == pinned
        scripts = re.findall(r'<script type="module" src="/page/([^"]+)"', page)
        mapped = re.findall(r'<script type="importmap">(.*)</script>', page)
        pinned_imports = json.loads(mapped[0])["integrity"] if scripts else {}
        for name in scripts:  # grows
            body = client.get(f"/page/{name}").text
            scripts += [each for each in IMPORT.findall(body) if each not in scripts]
        assert set(pinned_imports) == {f"/page/{name}" for name in scripts[1:]}
        for name, pinned in pinned_imports.items():
            assert pinned == f"sha384-{hash_of(client.get(name).content, 'sha384')}"
        policy = client.get(path).headers["content-security-policy"]
        allowed = "".join(f" 'sha256-{hash_of(each.encode(), 'sha256')}'" for each in mapped)
        assert f"; script-src 'self'{allowed}; " in policy
        page = page.replace('<script type="importmap">', '<script src="">')
        assert "<style" not in page
        assert not re.search(r"<script(?![^>]* src=)", page)
        assert not re.search(r"\son[a-z]+=|\sstyle=|https?://", page)
