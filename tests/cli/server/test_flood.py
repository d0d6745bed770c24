"""Strangers who ask a server too much: by address, and at one request."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import count

import httpx
import pytest

from sealpipe_service import flood, front, request_link
from sealpipe_service.database import decisions
from sealpipe_service.flood import BURST, MISS, PER_SECOND, Accepted, Flood
from sealpipe_service.request_link import FORMS_A_MINUTE, FORMS_OF_ADDRESS
from sealpipe_service.worker import MAX_BODY
from support.server_thread import ServerThread, serve_in_thread

PROXY = "127.0.0.1/32"
GENERATOR = (
    "BGsX0fLhLEJH-Lzm5WOkQPJ3A32BLeszoPShOUXYmMKWT-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU"
)


def test_a_bucket_is_emptied_and_refills() -> None:
    now = [1000.0]
    known = Flood(lambda: now[0])
    for _ in range(int(BURST)):
        assert known.find_wait("one") == 0
        known.spend("one", is_miss=False)
    assert known.find_wait("one") == 1
    assert known.find_wait("another") == 0
    now[0] += 1
    assert known.find_wait("one") == 0
    now[0] += 10 * BURST
    for _ in range(int(BURST / MISS)):
        assert known.find_wait("one") == 0
        known.spend("one", is_miss=True)
    assert known.find_wait("one") == 1, "what may be a guess costs more"
    for _ in range(30):
        known.spend("one", is_miss=True)
    assert known.find_wait("one") == math.ceil((1 + 30 * MISS) / PER_SECOND), "in connections"
    for _ in range(100):
        known.spend("one", is_miss=True)
    assert known.find_wait("one") == math.ceil((1 + BURST) / PER_SECOND), "a minute at most"


def test_those_who_asked_long_ago_are_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flood, "MOST", 2)
    known = Flood(lambda: 0.0)
    for each in ("one", "two", "one", "three"):
        for _ in range(int(BURST / 2)):
            known.spend(each, is_miss=False)
    assert [known.find_wait(each) for each in ("one", "two", "three")] == [1, 0, 0]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ServerThread]:
    """A server behind a proxy on this machine, where no time passes for strangers."""
    monkeypatch.setattr(front, "Flood", lambda _: Flood(lambda: 0.0))
    monkeypatch.setattr(flood, "BURST", 2 * MISS)
    with serve_in_thread([PROXY]) as running:
        yield running


Ask = Callable[..., httpx.Response]


@pytest.fixture
def ask(server: ServerThread) -> Iterator[Ask]:
    with httpx.Client(base_url=f"http://{server.host}", trust_env=False) as client:

        def ask(path: str, *forwarded: str, method: str = "GET", **more: str) -> httpx.Response:
            headers = [("x-forwarded-for", each) for each in forwarded]
            headers += [(name.replace("_", "-"), value) for name, value in more.items()]
            return client.request(method, path, headers=headers)

        yield ask


def exhaust(ask: Ask, *forwarded: str) -> bool:
    """Ask for what is not there; return whether that comes to an end."""
    statuses = [ask("/links/shares/none", *forwarded).status_code for _ in range(4)]
    assert set(statuses[:2]) == {404}
    return statuses[-1] == 429


@pytest.mark.parametrize(
    ("first", "same", "another"),
    [
        (["192.0.2.7"], ["192.0.2.7"], ["192.0.2.8"]),
        (["2001:db8::1"], ["2001:db8::ffff:1%eth0"], ["2001:db8:0:1::1"]),
        (
            ["198.51.100.9, 192.0.2.7"],
            ["198.51.100.8", "192.0.2.7, 127.0.0.1"],
            ["192.0.2.7, 1.2.3.4"],
        ),
        (["::ffff:192.0.2.7"], ["192.0.2.7"], ["::ffff:192.0.2.8"]),
    ],
)
def test_a_stranger_is_the_last_address_that_the_proxy_names(
    ask: Ask, first: list[str], same: list[str], another: list[str]
) -> None:
    assert exhaust(ask, *first)
    refused = ask("/s/any", *same)
    assert refused.status_code == 429
    assert int(refused.headers["retry-after"]) >= 1
    assert refused.json()["reason"] == "too-many"
    assert ask("/s/any", *another).status_code == 200
    assert ask("/v1/stats", *same).status_code == 401, "there credentials are counted"


CALLS = int(BURST / MISS)


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"authorization": "Bearer none"},
        {"authorization": f"Bearer svc_sk_live_{'k' * 16}.{'s' * 43}"},
        {"authorization": "of a key that was revoked"},
    ],
    ids=["none", "malformed", "unknown", "revoked"],
)
def test_who_has_no_valid_credential_is_told_to_wait_and_keys_beside_it_go_on(
    server: ServerThread, ask: Ask, wrong: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flood, "BURST", BURST)
    good, gone = ({"authorization": f"Bearer {server.key()}"} for _ in range(2))
    for each in (good, gone):
        assert ask("/v1/stats", "192.0.2.7", **each).status_code == 200
    server.service.store.revoke(gone["authorization"].partition("live_")[2].partition(".")[0])
    wrong = gone if "of a key" in str(wrong) else wrong
    asked = [ask("/v1/stats", "192.0.2.7", **wrong) for _ in range(CALLS + 1)]
    assert {each.status_code for each in asked[:-1]} <= {401, 403}
    refused = asked[-1]
    assert (refused.status_code, refused.json()["error_code"]) == (429, 107)
    assert int(refused.headers["retry-after"]) >= 1
    assert ask("/v1/stats", "192.0.2.7", **good).status_code == 200, "it is known"
    assert ask("/v1/stats", "192.0.2.8", **wrong).status_code in (401, 403), "another address"
    assert ask("/%761/stats", "192.0.2.7", **wrong).status_code == 429, "it is the same path"
    assert ask("/s/any", "192.0.2.7").status_code == 200, "pages are counted by themselves"


def test_accepted_credentials_that_were_not_used_for_longest_are_forgotten_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(flood, "MOST", 2)
    known = Accepted()
    for each in (b"one", b"two", b"one", b"three"):
        known.add(each)
    assert [each in known for each in (b"one", b"two", b"three")] == [True, False, True]
    known.discard(b"one")
    assert b"one" not in known


@pytest.mark.parametrize("named", [[], ["nobody"], ["192.0.2.7, nobody"], ["10.0.0.1:4711"]])
def test_whom_a_proxy_does_not_name_is_not_counted(ask: Ask, named: list[str]) -> None:
    assert not exhaust(ask, *named), "all of them would be one stranger"
    assert ask("/s/any", forwarded="for=192.0.2.7").status_code == 200


def test_what_others_than_proxies_name_counts_for_nothing() -> None:
    with (
        serve_in_thread(["10.0.0.0/8"]) as server,
        httpx.Client(base_url=f"http://{server.host}", trust_env=False) as client,
    ):
        headers = {"x-forwarded-for": "192.0.2.7"}
        for _ in range(int(BURST / MISS) + 2):
            last = client.get("/links/shares/none", headers=headers)
    assert last.status_code == 404, "this machine is no stranger"


Make = Callable[..., str]


@pytest.fixture
def make(server: ServerThread, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """Makes requests, and returns their codes. No time passes for the rates of their forms."""
    numbers = count()
    store = server.service.store
    now = store.now()
    with httpx.Client(base_url=f"http://{server.host}", trust_env=False) as client:
        headers = {"authorization": f"Bearer {server.key()}"}

        def make(**more: str) -> str:
            body = {"title": "t", "public_key": GENERATOR, "fields": [], **more}
            key = {"idempotency-key": str(next(numbers))}
            made = client.post("/v1/requests", json=body, headers={**headers, **key})
            return str(made.json()["short_code"])

        monkeypatch.setattr(store, "now", lambda: now)
        monkeypatch.setattr("sealpipe_service.requests.PASSCODE_ROUNDS", 1)
        yield make


@pytest.fixture
def post(server: ServerThread) -> Iterator[Ask]:
    with httpx.Client(base_url=f"http://{server.host}", trust_env=False) as client:

        def post(path: str, address: str = "", **body: str) -> httpx.Response:
            headers = {"x-forwarded-for": address} if address else {}
            return client.post(f"/links/requests/{path}", json=body, headers=headers)

        yield post


def test_a_form_is_opened_and_sent_so_often_a_minute(
    make: Make, post: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    guarded, other = make(passcode="canary-4711"), make()
    guesses = [post(f"{guarded}/open", passcode="x") for _ in range(2 * FORMS_A_MINUTE)]
    assert {each.status_code for each in guesses} == {403}
    refused = post(f"{guarded}/open", passcode="canary-4711")
    assert (refused.status_code, refused.json()["reason"]) == (429, "too-many")
    assert int(refused.headers["retry-after"]) == 60 / FORMS_A_MINUTE
    assert post(f"{other}/open").status_code == 200
    assert post("none/open").status_code == 404
    monkeypatch.setattr(decisions, "MOST_OF_REQUEST", 3)
    full = post(f"{other}/submit", data="AAAA")
    assert (full.status_code, full.json()["reason"]) == (410, "full")


def test_one_address_keeps_no_other_from_a_form(
    make: Make, post: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flood, "BURST", BURST)
    code = make(passcode="canary-4711")

    def guess(address: str) -> int:
        return post(f"{code}/open", address, passcode="x").status_code

    held = [guess("2001:db8::1") for _ in range(2 * FORMS_OF_ADDRESS)]
    assert set(held) == {403}
    assert guess("2001:db8::2") == 429, "of the same network"
    opened = post(f"{code}/open", "2001:db8:0:1::1", passcode="canary-4711")
    assert opened.status_code == 200
    for number in range(2 * FORMS_A_MINUTE - len(held) - 1):
        assert guess(f"192.0.2.{number}") == 403
    assert guess("198.51.100.1") == 429, "all of them together have a limit, too"


def test_each_mib_counts_as_one_time_more_of_an_address(
    make: Make, post: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_link, "BYTES_A_TIME", 1200)
    code = make()
    long = "A" * (FORMS_OF_ADDRESS * 1200)
    sent, refused = (post(f"{code}/submit", "192.0.2.7", data=long) for _ in range(2))
    assert (sent.status_code, refused.status_code) == (201, 429)
    cost, left = 1 + FORMS_OF_ADDRESS, FORMS_OF_ADDRESS - 1
    seconds = (cost - left) * 60 // FORMS_OF_ADDRESS
    assert int(refused.headers["retry-after"]) == seconds, "as long as all of it takes"
    short = [post(f"{code}/submit", "192.0.2.7", data="AAAA").status_code for _ in range(left + 1)]
    assert short == [201] * left + [429], "what was refused took nothing"
    assert post(f"{code}/submit", "192.0.2.8", data=long).status_code == 201
    times = 1 + MAX_BODY // (1024 * 1024)
    assert times + 1 <= 2 * FORMS_OF_ADDRESS, "the longest one fits after the form was opened"
