"""What only `--extended` offers: access log, capabilities, lists of what has ended, timed_view,
notify_on.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from sealpipe import Client
from sealpipe.wire import keys
from sealpipe_rehearsal import control_client
from sealpipe_rehearsal.control_client import RehearsalError
from sealpipe_rehearsal.running_service import RunningService
from sealpipe_rehearsal.server import start
from service.callers import NO_TLS, NOON, TOKEN, Api, refusal
from support.terminal import Terminal

VERIFIER = "v" * 43
AGENTS = {
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36": "Windows",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7)": "macOS",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X)": "iOS",
    "Mozilla/5.0 (Linux; Android 14; Pixel 8)": "Android",
    "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0": "Linux",
    "curl/8": "unknown",
}


def open_share(service: RunningService, code: str, agent: str = "curl/8", **members: str) -> int:
    """What a page does when somebody presses the button."""
    url = f"{service.origin}/links/shares/{code}/open"
    body = {"access_token": TOKEN, **members}
    return httpx.post(
        url, json=body, headers={"User-Agent": agent}, trust_env=False, verify=NO_TLS
    ).status_code


def log(api: Api, code: str, query: str = "", **headers: str) -> httpx.Response:
    return api.http.get(f"/shares/{code}/access-log{query}", headers=headers)


# -- off by default --------------------------------------------------------------------------------


@pytest.mark.spec("gap.newer-endpoints", "endpoints.no-other")
def test_without_the_switch_the_service_follows_the_specification_to_the_letter(
    service: RunningService, api: Api
) -> None:
    code = api.created(timed_view="nonsense", notify_on=7, organization_id=[])
    row = service.service.database.row(
        "SELECT timed_view, notify_on, organization_id FROM shares", {}
    )
    assert row is not None
    assert tuple(row) == (None, None, None), "a member that is none is passed by, whatever it holds"
    open_share(service, code)
    for path in (f"/shares/{code}/access-log", "/capabilities"):
        response = api.http.get(path)
        assert (response.status_code, response.json()) == (404, {"message": "Not Found"})
    ended = api.created()
    api.http.delete(f"/shares/{ended}").raise_for_status()
    assert api.codes("?status=expired") == api.codes() == [code]
    request = api.asked()
    api.delete_request(api.asked())
    assert api.codes("?status=expired", "requests") == [request]
    assert service.notes() == []
    with pytest.raises(RehearsalError, match="scopes must be an array"):
        service.create_key(scopes=["audit:read"])
    about = control_client.call_control_api(service.origin, "GET", "")
    assert (about["extended"], "audit:read" in about["scopes"]) == (False, False)
    assert service.service.database.rows("SELECT * FROM accesses", {}) == []


# -- the access log --------------------------------------------------------------------------------


@pytest.mark.spec("gap.newer-endpoints")
def test_the_log_has_who_opened_it_and_who_had_a_wrong_passcode_newest_first(
    extended: RunningService, api: Api
) -> None:
    code = api.created(passcode_verifier=VERIFIER)
    assert open_share(extended, code, passcode_verifier="w" * 43) == 403
    for agent in AGENTS:
        extended.advance(1)
        assert open_share(extended, code, agent, passcode_verifier=VERIFIER) == 200
    told = log(api, code).json()
    assert told.keys() == {
        "short_code",
        "entries",
        "next_cursor",
        "retention_days",
        "effective_from",
        "effective_to",
    }
    assert (told["short_code"], told["next_cursor"], told["retention_days"]) == (code, None, 90)
    entries = told["entries"][::-1]
    assert [each["failed_passcode"] for each in entries] == [True] + [False] * len(AGENTS)
    assert {each["user_agent"]: each["platform"] for each in entries} == AGENTS
    assert {(each["accessed_ip"], each["signed_in"]) for each in entries} == {("127.0.0.1", False)}
    times = [datetime.fromisoformat(each["accessed_at"]) for each in entries]
    assert times == sorted(times)


@pytest.mark.parametrize("how", ["looked at", "of somebody without its token"])
def test_who_does_not_open_it_is_not_in_the_log(
    extended: RunningService, api: Api, how: str
) -> None:
    code = api.created()
    if how == "looked at":
        httpx.get(
            f"{extended.origin}/links/shares/{code}", trust_env=False, verify=NO_TLS
        ).raise_for_status()
    else:
        assert open_share(extended, code, access_token="x" * 43) == 404
    assert log(api, code).json()["entries"] == []


def test_a_share_that_has_ended_keeps_its_log(extended: RunningService, api: Api) -> None:
    used, gone = api.created(access_counts_left=1), api.created()
    for code in (used, gone):
        assert open_share(extended, code) == 200
    api.http.delete(f"/shares/{gone}").raise_for_status()
    assert [len(log(api, code).json()["entries"]) for code in (used, gone)] == [1, 1]


def test_it_comes_in_pages_by_a_cursor(extended: RunningService, api: Api) -> None:
    code = api.created()
    for _ in range(7):
        extended.advance(1)
        open_share(extended, code)
    every = [each["accessed_at"] for each in log(api, code).json()["entries"]]
    found, cursor, sizes = [], "", []
    while cursor is not None:
        page = log(api, code, f"?limit=3&cursor={cursor}").json()
        found += [each["accessed_at"] for each in page["entries"]]
        sizes.append(len(page["entries"]))
        cursor = page["next_cursor"]
    assert (found, sizes) == (every, [3, 3, 1])


@pytest.mark.parametrize(
    ("limit", "size"), [("", 50), ("1", 1), ("100", 100), ("1000", 100), ("0", 50), ("x", 50)]
)
def test_a_limit_is_corrected_as_in_the_lists(
    extended: RunningService, api: Api, limit: str, size: int
) -> None:
    code = api.created()
    share = extended.service.database.row("SELECT number FROM shares", {})
    assert share is not None
    now = extended.service.clock.timestamp()
    for _ in range(101):
        extended.service.database.rows(
            "INSERT INTO accesses (share, accessed, accessed_at, accessed_ip, platform, "
            "failed_passcode, signed_in, space)"
            " VALUES (:share, :now, '2026-01-01T00:00:00Z', '::1', 'Linux', 0, 0, 'default')",
            {"share": share["number"], "now": now},
        )
    told = log(api, code, f"?limit={limit}").json()
    assert (len(told["entries"]), bool(told["next_cursor"])) == (size, True)


def test_from_and_to_bound_it_and_the_plan_keeps_it_for_so_long(
    extended: RunningService, api: Api
) -> None:
    code = api.created()
    begun = extended.service.clock.now().replace(microsecond=0)
    for _ in range(4):
        open_share(extended, code)
        extended.advance(24 * 60 * 60)

    def days(since: float | None = None, until: float | None = None) -> int:
        given = {"from": since, "to": until}
        query = {
            name: (begun + timedelta(days=day)).isoformat().replace("+00:00", "Z")
            for name, day in given.items()
            if day is not None
        }
        response = api.http.get(f"/shares/{code}/access-log", params=query)
        response.raise_for_status()
        return len(response.json()["entries"])

    assert (days(), days(since=0.5), days(until=1.5), days(since=0.5, until=1.5)) == (4, 3, 2, 1)
    extended.advance(88 * 24 * 60 * 60 + 10)
    assert (days(), days(since=-1)) == (1, 1), (
        "what is older than 90 days is not told, whatever is asked for"
    )
    extended.set_account(plan="enterprise")
    assert days() == 4


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("?from=yesterday", {"from"}),
        ("?to=2026-13-01T00:00:00Z", {"to"}),
        ("?from=&to=x&cursor=%2B", {"from", "to", "cursor"}),
        ("?cursor=MA", {"cursor"}),
        ("?cursor=LTE=", {"cursor"}),
        ("?cursor=\u00e4", {"cursor"}),
        ("?from=2026-02-01T00:00:00Z&to=2026-01-01T00:00:00Z", {"from"}),
    ],
)
def test_bounds_that_are_none_are_refused_and_named(
    extended: RunningService, api: Api, query: str, names: set[str]
) -> None:
    assert extended.service.extended
    response = log(api, api.created(), query)
    assert refusal(response) == (400, 19)
    assert response.json()["additional_data"].keys() == names


def test_a_log_that_is_the_same_is_304(caller: Callable[..., Api]) -> None:
    with start(extended=True, clock=lambda: NOON) as service:
        api = caller(service)
        code = api.created()
        open_share(service, code)
        first = log(api, code)
        tag = first.headers["etag"]
        for known in (tag, f'"x", {tag}', f"W/{tag}", "*"):
            again = log(api, code, **{"If-None-Match": known})
            assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
        assert log(api, code, **{"If-None-Match": '"x"'}).content == first.content
        open_share(service, code)
        other = log(api, code, **{"If-None-Match": tag})
        assert (other.status_code, other.headers["etag"] == tag) == (200, False)


def test_it_needs_audit_read_and_is_its_spaces_own(
    extended: RunningService, api: Api, caller: Callable[..., Api]
) -> None:
    code = api.created()
    extended.set_account(api_keys=100)
    about = control_client.call_control_api(extended.origin, "GET", "")
    others = [scope for scope in about["scopes"] if scope != "audit:read"]
    assert refusal(log(caller(extended, scopes=others), code)) == (403, 78)
    assert log(caller(extended, scopes=["audit:read"]), code).status_code == 200
    assert refusal(log(caller(extended, account="other"), code)) == (404, 1)
    assert refusal(log(api, "none")) == (404, 1)


# -- capabilities, and the members of a share ------------------------------------------------------


def public_key_of(api: Api) -> str:
    point = keys.from_custody_secret(
        api.credential.reveal().rpartition(".")[2], tag="svc"
    ).public_key
    return base64.urlsafe_b64encode(point).decode().rstrip("=")


def test_capabilities_tell_what_key_and_plan_can_do(
    extended: RunningService, caller: Callable[..., Api]
) -> None:
    api = caller(extended, scopes=[], organization="acme")
    extended.set_account("org:acme", shares=2, view_protection=False)
    maker = caller(extended, scopes=["shares:write"], organization="acme")
    maker.created()
    response = api.http.get("/capabilities")
    told = response.json()
    assert told["key"] == {
        "key_id": api.key_id,
        "scopes": [],
        "custody_level": 1,
        "custody_public_key": public_key_of(api),
        "compromised": False,
        "organization_id": "acme",
        "rate_limit_rpm": 100,
    }
    assert told["plan"] == {"code": "business", "name": "Business"}
    assert told["limits"] == {
        "max_shares": 2,
        "remaining_shares": 1,
        "max_fields": -1,
        "max_days_access_logs": 90,
        "max_api_keys": 5,
        "max_webhooks": 3,
    }
    assert told["features"]["view_protection"] is False
    assert told["notify_on_events"] == ["viewed", "denied", "expired", "deleted"]
    assert {"password", "source_code", "url", "qr"} < set(told["field_types"])
    tag = {"If-None-Match": response.headers["etag"]}
    assert api.http.get("/capabilities", headers=tag).status_code == 304
    maker.created()
    assert api.http.get("/capabilities", headers=tag).json()["limits"]["remaining_shares"] == 0


@pytest.mark.spec("gap.share-members")
def test_the_owner_is_notified_only_of_events_in_notify_on(
    extended: RunningService, api: Api
) -> None:
    every = ["viewed", "denied", "expired", "deleted"]
    in_an_hour = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    told, silent, timed = (
        api.created(passcode_verifier=VERIFIER, notify_on=events, expired_at=ends)
        for events, ends in ((every, None), ([], None), (["expired"], in_an_hour))
    )
    for code in (told, silent, timed):
        open_share(extended, code, passcode_verifier="w" * 43)
        open_share(extended, code, passcode_verifier=VERIFIER)
    for code in (told, silent):
        api.http.delete(f"/shares/{code}").raise_for_status()
    extended.advance(3601)
    for _ in range(2):
        assert api.codes() == []
    assert {note.what for note in extended.notes()} == {"owner.notified"}
    assert [note.about for note in extended.notes()] == [
        f"{told} denied",
        f"{told} viewed",
        f"{told} deleted",
        f"{timed} expired",
    ]


# -- our client and its commands, with both --------------------------------------------------------


@pytest.fixture(params=["strict", "extended"])
def either(request: pytest.FixtureRequest, service: RunningService) -> Any:
    service.service.extended = request.param == "extended"
    yield service
    service.service.extended = False


def test_a_share_with_timed_view_and_notify_on_is_made_with_both(
    either: RunningService, tmp_path: Any
) -> None:
    user = Terminal(tmp_path).at(either)
    words = ("--timed-view", "30", "--notify-on", "viewed,expired", "--views", "2")
    shared = user.sealpipe("share", "-f", "Greeting=text:hello", *words)
    assert (shared.code, shared.out.count("\n")) == (0, 1), shared
    [field] = either.recipient().open_link(shared.out.strip())
    assert field.value == "hello"
    row = either.service.database.row("SELECT timed_view, notify_on FROM shares", {})
    assert row is not None
    assert tuple(row) == (
        (30, '["viewed", "expired"]') if either.service.extended else (None, None)
    )
    code = user.sealpipe("shares", "list").out.partition("\t")[0]
    logged = user.sealpipe("shares", "log", code)
    assert logged.code == 0
    if either.service.extended:
        assert (logged.out.count("\n"), logged.out.split("\t")[1:3]) == (1, ["opened", "127.0.0.1"])
        assert user.sealpipe("shares", "log", "none").code == 6
    else:
        assert (logged.out, logged.err) == ("", "this service has no access log\n")
    assert user.sealpipe("doctor").code == 0


def test_the_walk_over_a_log_has_all_of_it(extended: RunningService, api: Api) -> None:
    code = api.created()
    for _ in range(120):
        open_share(extended, code)
    with Client(
        api_key=api.credential,
        base_url=extended.base_url,
        link_base_url=extended.link_base_url,
        deadline=20,
    ) as client:
        assert len(list(client.iter_share_log(code))) == 120
        assert list(client.iter_share_log(code, until=datetime.now(UTC) - timedelta(days=1))) == []
        page = client.share_log(code, limit=5)
        assert page is not None
        assert (len(page.entries), page.retention_days) == (5, 90)
        told = client.get_capabilities()
        assert told is not None
        assert told.key["key_id"] == api.key_id


def test_what_has_ended_is_listed_or_said_not_to_be(either: RunningService, tmp_path: Any) -> None:
    user = Terminal(tmp_path).at(either)
    listing = ("requests", "list", "--status", "expired")

    def made() -> str:
        done = user.sealpipe("request", "--ask", "Password", "--output", "json")
        return str(done.json["short_code"])

    offered = either.service.extended
    said = "" if offered else "this service does not list expired requests\n"
    assert user.sealpipe(*listing).err == said, "with nothing there at all"
    ended, active = made(), made()
    assert user.sealpipe("requests", "expire", ended).code == 0
    done = user.sealpipe(*listing)
    assert (done.code, done.out, done.err) == (
        0,
        f"{ended}\texpired\t-\texpired\t-\tPassword\n" if offered else "",
        said,
    )
    told = user.sealpipe(*listing, "--output", "json").json
    assert [row["short_code"] for row in told["requests"]] == ([ended] if offered else [])
    by_key = user.sealpipe(*listing, "--sealed-to", "credential")
    assert by_key.code == (0 if offered else 2), (
        "nobody is told that nothing needs a key where that is not known"
    )
    assert active not in by_key.out


def test_the_service_can_be_started_with_it() -> None:
    with start(extended=True) as running:
        assert "audit:read" in control_client.list_scopes(running.origin)
        with Client(
            api_key=running.create_key(),
            base_url=running.base_url,
            link_base_url=running.link_base_url,
        ) as client:
            assert client.get_capabilities() is not None


def test_rehearse_runs_a_command_on_an_extended_service(tmp_path: Any) -> None:
    user = Terminal(tmp_path)
    program = (
        "from sealpipe import Client; print(Client.from_settings().get_capabilities() is not None)"
    )
    for words, offered in ((["--extended"], "True\n"), ([], "False\n")):
        done = user.sealpipe("rehearse", *words, "--", "python", "-c", program)
        assert (done.code, done.out) == (0, offered), done
