"""The private route of whoever was sent a collect link: conditions, accesses, the number of
answers.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import httpx
import pytest

from sealpipe_rehearsal.control_client import send_request
from sealpipe_rehearsal.people import LinkRefusedError
from sealpipe_rehearsal.running_service import RunningService
from sealpipe_service.clock import format_rfc3339
from service.callers import PUBLIC_KEY, Api

ANSWER = {"Password": "p"}


def link(service: RunningService, code: str) -> str:
    return f"{service.link_base_url}/r/{code}"


def kept_out(service: RunningService, code: str, **who: Any) -> str | None:
    """Why somebody may not answer; None where they have done so."""
    try:
        service.submitter().submit(link(service, code), ANSWER, **who)
    except LinkRefusedError as error:
        return error.reason
    return None


def count(api: Api, code: str) -> int:
    number: int = api.http.get(f"/requests/{code}/submissions").json()["count"]
    return number


def test_looking_tells_who_asks_and_spends_nothing(service: RunningService, api: Api) -> None:
    code = api.asked(
        title="Access", passcode="pc", access_counts_left=1, expired_at="2099-01-01T00:00:00Z"
    )
    for _ in range(5):
        assert service.submitter().look(link(service, code)) == {
            "short_code": code,
            "account": "default",
            "title": "Access",
            "passcode_required": True,
            "expired_at": "2099-01-01T00:00:00Z",
            "accesses_left": 1,
        }
    assert kept_out(service, code, passcode="pc") is None


def test_the_form_has_the_prompts_and_the_public_key(service: RunningService, api: Api) -> None:
    code = api.asked(
        description="D",
        fields=[{"item": "User", "type": "text"}, {"item": "Key", "type": "multiline"}],
    )
    form = service.submitter().open_form(link(service, code))
    assert form["fields"] == [
        {"item": "User", "type": "text"},
        {"item": "Key", "type": "multiline"},
    ]
    assert (form["public_key"], form["description"]) == (PUBLIC_KEY, "D")


CONDITIONS: list[tuple[dict[str, Any], str, list[dict[str, Any]], list[dict[str, Any]]]] = [
    # the request's condition, why somebody is kept out, who is, who is not
    (
        {"passcode": "pc"},
        "passcode",
        [{}, {"passcode": "PC"}, {"passcode": "pc2"}],
        [{"passcode": "pc"}],
    ),
    ({"requires_login": True}, "login", [{}], [{"signed_in_as": "a@example.org"}]),
    ({"requires_login": False}, "login", [], [{}]),
    ({"requires_mfa": True}, "mfa", [{}, {"mfa": False}], [{"mfa": True}]),
    (
        {"restricted_domain": ["Example.org", "example.com"]},
        "domain",
        [
            {},
            {"signed_in_as": "a@sub.example.org"},
            {"signed_in_as": "a@notexample.org"},
            {"signed_in_as": "example.org@evil.example"},
        ],
        [{"signed_in_as": "a@example.org"}, {"signed_in_as": "b@EXAMPLE.com"}],
    ),
    (
        {"ip_whitelist": ["192.0.2.7", "10.0.0.0/8", "2001:db8::/32"]},
        "address",
        [{}, {"from_ip": "192.0.2.8"}, {"from_ip": "11.0.0.1"}, {"from_ip": "nonsense"}],
        [{"from_ip": "192.0.2.7"}, {"from_ip": "10.9.9.9"}, {"from_ip": "2001:db8::1"}],
    ),
    ({"ip_whitelist": ["127.0.0.1"]}, "address", [], [{}]),
]


def test_a_prompt_whose_type_is_left_out_is_text(service: RunningService, api: Api) -> None:
    """As the vendor's SDK says of the service: optional, and `text` then; nothing but the two
    members is kept.
    """
    code = api.asked(fields=[{"item": "User"}, {"item": "Note", "type": None, "hint": "x"}])
    form = service.submitter().open_form(link(service, code))
    assert form["fields"] == [{"item": "User", "type": "text"}, {"item": "Note", "type": "text"}]


@pytest.mark.spec("gap.request-create.body")
@pytest.mark.parametrize(
    ("condition", "reason", "out", "in_"),
    CONDITIONS,
    ids=["passcode", "login", "no login", "mfa", "domain", "address", "this machine"],
)
def test_a_condition_keeps_out_who_does_not_meet_it(
    service: RunningService,
    api: Api,
    condition: dict[str, Any],
    reason: str,
    out: list[dict[str, Any]],
    in_: list[dict[str, Any]],
) -> None:
    code = api.asked(**condition, access_counts_left=len(in_))
    for who in out:
        assert kept_out(service, code, **who) == reason
        status, told = send_request(
            service.origin, "POST", f"/links/requests/{code}/submit", {**who, "data": "AAAA"}
        )
        assert (status, told["reason"]) == (403, reason), (
            "the form is not the only thing that is guarded"
        )
    assert count(api, code) == 0
    assert [kept_out(service, code, **who) for who in in_] == [None] * len(in_)
    assert count(api, code) == len(in_)


def test_the_passcode_is_not_counted_out(service: RunningService, api: Api) -> None:
    code = api.asked(passcode="pc")
    assert [kept_out(service, code, passcode=str(n)) for n in range(7)] == ["passcode"] * 7
    assert kept_out(service, code, passcode="pc") is None


@pytest.mark.spec("gap.request-create.body")
def test_max_submission_is_the_number_of_answers(service: RunningService, api: Api) -> None:
    code = api.asked(max_submission=2)
    assert [kept_out(service, code) for _ in range(4)] == [None, None, "full", "full"]
    assert count(api, code) == 2
    assert code in api.codes(what="requests"), "full is not expired"


@pytest.mark.spec("gap.request-create.body")
def test_opening_the_form_spends_an_access(service: RunningService, api: Api) -> None:
    code = api.asked(access_counts_left=2, passcode="pc")
    people = service.submitter()
    for _ in range(3):
        with pytest.raises(LinkRefusedError, match="passcode"):
            people.open_form(link(service, code))
    for _ in range(2):
        people.open_form(link(service, code), passcode="pc")
    with pytest.raises(LinkRefusedError) as spent:
        people.open_form(link(service, code), passcode="pc")
    assert spent.value.reason == "accesses"
    # Who had opened it before can still send what they wrote.
    people.send(link(service, code), "AAAA", passcode="pc")
    assert count(api, code) == 1


@pytest.mark.spec("request.active.delete", "request.states")
def test_a_request_that_has_ended_takes_nothing_more(service: RunningService, api: Api) -> None:
    soon = format_rfc3339(service.service.clock.now() + timedelta(minutes=5))
    by_time, by_deletion = api.asked(expired_at=soon), api.asked()
    assert kept_out(service, by_time) is None
    service.advance(300)
    api.delete_request(by_deletion)
    for code in (by_time, by_deletion):
        assert kept_out(service, code) == "expired"
        with pytest.raises(LinkRefusedError, match="expired"):
            service.submitter().send(link(service, code), "AAAA")
    assert (count(api, by_time), count(api, by_deletion)) == (1, 0)


def test_a_link_to_nothing_is_not_found(service: RunningService) -> None:
    for path in ("", "/open", "/submit"):
        method = "POST" if path else "GET"
        members = {"data": "AAAA"} if path == "/submit" else {} if path else None
        status, told = send_request(
            service.origin, method, f"/links/requests/unknown{path}", members
        )
        assert (status, told["reason"]) == (404, "not-found")


@pytest.mark.parametrize(
    "members", [{}, {"data": ""}, {"data": "not base64"}, {"data": "AAA"}, {"data": 1}]
)
def test_an_answer_is_standard_base64(
    service: RunningService, api: Api, members: dict[str, Any]
) -> None:
    code = api.asked()
    status, told = send_request(service.origin, "POST", f"/links/requests/{code}/submit", members)
    assert (status, told["reason"], list(told["members"])) == (400, "invalid", ["data"])
    assert count(api, code) == 0


def test_what_is_not_json_is_refused(service: RunningService, api: Api) -> None:
    url = f"{service.origin}/links/requests/{api.asked()}/open"
    assert httpx.post(url, content=b"{", trust_env=False).status_code == 400


def test_the_collect_links_page_spends_nothing(service: RunningService, api: Api) -> None:
    code = api.asked(access_counts_left=1)
    for _ in range(3):
        assert httpx.get(link(service, code), trust_env=False).status_code == 200
    assert kept_out(service, code) is None
