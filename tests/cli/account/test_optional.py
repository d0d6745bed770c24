"""The access log and the capabilities: as a service with them answers, and as one that has
neither.
"""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

import pytest

from cli.account.hasty import hasty
from sealpipe import (
    AuthenticationError,
    Client,
    MissingScopeError,
    NotFoundError,
    ProtocolError,
)
from sealpipe.api import account
from sealpipe.errors import SealpipeError
from support.faults import envelope, message, says
from support.faulty import Exchange, Fault, Faulty
from support.terminal import Terminal

ENTRY = {
    "accessed_at": "2026-01-02T03:04:05Z",
    "accessed_ip": "192.0.2.1",
    "platform": "Linux",
    "user_agent": "Mozilla/5.0",
    "failed_passcode": False,
    "signed_in": None,
}
PAGE: dict[str, Any] = {
    "short_code": "abc",
    "entries": [ENTRY],
    "next_cursor": None,
    "retention_days": 90,
    "effective_from": "2026-01-01T00:00:00Z",
    "effective_to": "2026-02-01T00:00:00Z",
}
NOT_THERE = {
    "404 without a code": says(404, '{"message": "Not Found"}'),
    "404 of a gateway's page": says(404, "<html>"),
    "404 without a body": says(404),
    "401 of the gateway": says(401, '{"message": "Unauthorized"}'),
    "403 of the gateway": says(403, '{"Message": "User is not authorized with an explicit deny"}'),
    "403 for a missing token": says(403, '{"message": "Missing Authentication Token"}'),
}


def pages(*of: dict[str, Any]) -> Fault:
    """An access log in several pages, each by its cursor: `p1`, `p2`, ..."""

    def fault(exchange: Exchange) -> None:
        cursor = exchange.received.target.partition("cursor=p")[2].partition("&")[0]
        page = of[int(cursor or "0")]
        exchange.send(
            message(
                200, json.dumps(page).encode(), {"ETag": '"x"', "Content-Type": "application/json"}
            )
        )

    return fault


def test_the_rehearsal_follows_the_specification_to_the_letter_and_offers_neither(
    client: Client, user: Terminal
) -> None:
    assert client.get_capabilities() is None
    assert client.share_log("abc") is None
    assert list(client.iter_share_log("abc")) == []
    done = user.sealpipe("shares", "log", "abc")
    assert (done.code, done.out, done.err) == (0, "", "this service has no access log\n")
    done = user.sealpipe("shares", "log", "abc", "--output", "json")
    assert (done.code, done.json) == (
        0,
        {"schema": 1, "offered": False, "short_code": "abc", "entries": []},
    )


@pytest.mark.parametrize("name", NOT_THERE)
def test_not_offered_is_none_and_no_error(client: Client, faulty: Faulty, name: str) -> None:
    faulty.plan(then=NOT_THERE[name])
    assert (client.share_log("abc"), client.get_capabilities()) == (None, None)
    assert len(faulty.received()) == 2


REFUSALS: dict[str, tuple[Fault, type[SealpipeError]]] = {
    "a share that does not exist": (envelope(404, 1), NotFoundError),
    "a scope that is missing": (envelope(403, 78), MissingScopeError),
    "a redirect": (says(302, headers={"Location": "http://127.0.0.1:9/"}), ProtocolError),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_the_service_itself_refuses_is_an_error(
    client: Client, faulty: Faulty, name: str
) -> None:
    fault, kind = REFUSALS[name]
    faulty.plan(then=fault)
    for call in (
        lambda: client.share_log("abc"),
        client.get_capabilities,
        lambda: list(client.iter_share_log("abc")),
    ):
        with pytest.raises(kind):
            call()


def test_other_calls_still_report_a_refused_credential(client: Client, faulty: Faulty) -> None:
    faulty.plan(then=NOT_THERE["403 of the gateway"])
    with pytest.raises(AuthenticationError):
        client.get_stats()


def test_a_page_of_the_log_has_its_entries_and_its_bounds(client: Client, faulty: Faulty) -> None:
    faulty.plan(then=says(200, json.dumps({**PAGE, "next_cursor": "n/1", "new": 1})))
    since, until = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC)
    log = client.share_log("a/b", limit=5, cursor="a b&c", since=since, until=until)
    assert log is not None
    assert (log.short_code, log.next_cursor, log.retention_days, log.extra) == (
        "abc",
        "n/1",
        90,
        {"new": 1},
    )
    assert (log.effective_from, log.effective_to) == (since, until)
    (entry,) = log.entries
    assert entry.accessed_at == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert (entry.accessed_ip, entry.failed_passcode, entry.signed_in) == ("192.0.2.1", False, None)
    (asked,) = faulty.received()
    path, _, query = asked.target.partition("?")
    assert path == "/v1/shares/a%2Fb/access-log"
    assert (
        query == "limit=5&cursor=a+b%26c&from=2026-01-01T00%3A00%3A00Z&to=2026-02-01T00%3A00%3A00Z"
    )


def log_of(number: int, then: str | None) -> dict[str, Any]:
    return {**PAGE, "entries": [{**ENTRY, "accessed_ip": f"192.0.2.{number}"}], "next_cursor": then}


@pytest.mark.parametrize("end", [None, "", "p1"], ids=["null", "empty", "one that was there"])
def test_the_log_is_walked_by_its_cursor_to_the_end(
    client: Client, faulty: Faulty, end: str | None
) -> None:
    faulty.plan(then=pages(log_of(0, "p1"), {**log_of(1, "p2"), "entries": []}, log_of(2, end)))
    assert [entry.accessed_ip for entry in client.iter_share_log("abc")] == [
        "192.0.2.0",
        "192.0.2.2",
    ]
    assert len(faulty.received()) == 3


@pytest.mark.parametrize(
    "change",
    [{"entries": {}}, {"entries": [1]}, {"entries": [{"accessed_at": "yesterday"}]},
        {"entries": [{"signed_in": "no"}]},
     {"entries": [{"accessed_ip": 5}]}, {"next_cursor": 5}, {"retention_days": "90"},
     {"short_code": ""}],
)  # fmt: skip
def test_a_log_of_other_types_breaks_the_protocol(
    client: Client, faulty: Faulty, change: dict[str, Any]
) -> None:
    faulty.plan(then=says(200, json.dumps({**PAGE, **change})))
    with pytest.raises(ProtocolError):
        hasty(client, account.get_access_log("abc"))


def test_the_log_on_the_command_line(user: Terminal, faulty: Faulty) -> None:
    hostile = {
        **ENTRY,
        "accessed_at": None,
        "platform": None,
        "user_agent": "\x1b[2J\tx",
        "failed_passcode": True,
    }
    faulty.plan(then=pages(log_of(0, "p1"), {**PAGE, "entries": [hostile]}))
    user.environ["SEALPIPE_BASE_URL"] = faulty.base_url
    done = user.sealpipe("shares", "log", "abc")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == [
        "2026-01-02T03:04:05Z\topened\t192.0.2.0\tLinux\tMozilla/5.0",
        "-\tfailed passcode\t192.0.2.1\t-\t\\x1b[2J\\tx",
    ]
    told = user.sealpipe("shares", "log", "abc", "--output", "json").json
    assert (told["offered"], told["retention_days"], told["effective_to"]) == (
        True,
        90,
        "2026-02-01T00:00:00Z",
    )
    assert told["entries"][0] == {**ENTRY, "accessed_ip": "192.0.2.0"}
    assert [row["failed_passcode"] for row in told["entries"]] == [False, True]


def test_the_log_of_a_time_ends_at_the_limit(user: Terminal, faulty: Faulty) -> None:
    faulty.plan(then=pages(log_of(0, "p1"), log_of(1, "p2"), log_of(2, None)))
    words = (
        "--since",
        "2026-01-01T00:00:00+01:00",
        "--until",
        "2026-02-01T00:00:00Z",
        "--limit",
        "2",
    )
    done = user.sealpipe("shares", "log", "abc", *words, SEALPIPE_BASE_URL=faulty.base_url)
    assert (done.code, [line.split("\t")[2] for line in done.out.splitlines()]) == (
        0,
        ["192.0.2.0", "192.0.2.1"],
    )
    targets = [unquote(each.target) for each in faulty.received()]
    assert len(targets) == 2
    assert all(
        "from=2025-12-31T23:00:00Z" in each and "to=2026-02-01T00:00:00Z" in each
        for each in targets
    )


@pytest.mark.parametrize(("fault", "code"), [(envelope(404, 1), 6), (envelope(403, 78), 4)])
def test_a_refusal_on_the_command_line_has_its_exit_code(
    user: Terminal, faulty: Faulty, fault: Fault, code: int
) -> None:
    faulty.plan(then=fault)
    done = user.sealpipe("shares", "log", "abc", SEALPIPE_BASE_URL=faulty.base_url)
    assert (done.code, done.out) == (code, "")


def test_capabilities_are_returned_unchanged(client: Client, faulty: Faulty) -> None:
    body = {
        "api_version": "1.2",
        "key": {"key_id": "k", "scopes": ["shares:read"], "rate_limit_rpm": 100},
        "plan": {"code": "business"},
        "limits": {"max_shares": -1},
        "features": {"webhooks": True},
        "field_types": ["text"],
    }
    faulty.plan(then=says(200, json.dumps(body)))
    told = client.get_capabilities()
    assert told is not None
    assert (told.api_version, told.key["rate_limit_rpm"], told.plan, told.limits) == (
        "1.2", 100, {"code": "business"}, {"max_shares": -1}
    )  # fmt: skip
    assert (told.features, told.extra) == ({"webhooks": True}, {"field_types": ["text"]})
    faulty.plan(then=says(200, "{}"))
    assert client.get_capabilities() is not None
    for wrong in ('{"key": []}', '{"api_version": 1}', "[]"):
        faulty.plan(then=says(200, wrong))
        with pytest.raises(ProtocolError):
            hasty(client, account.get_capabilities())


def test_who_shares_imports_none_of_this() -> None:
    rare = ["api.mcp", "api.optional", "api.stats", "tools", "webhooks"]
    code = (
        "import json, sys; from sealpipe import AsyncClient, Client; "
        "print(json.dumps(list(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = json.loads(done.stdout)
    assert "sealpipe.client" in loaded
    assert not {f"sealpipe.{name}" for name in rare} & set(loaded)
