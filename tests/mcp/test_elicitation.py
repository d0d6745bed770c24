"""Who sits before the client is asked: to confirm a call, and to open a link.

In both eras of the protocol.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest import mock

import mcp_types
import pytest
from mcp import MCPError, types

from support.damage import exchanged
from support.job import Job, client_of

ERAS = ("auto", "legacy")
YES = types.ElicitResult(action="accept", content={"confirm": True})
NO_FORMS = [
    types.ElicitResult(action="decline"),
    types.ElicitResult(action="cancel"),
    types.ElicitResult(action="accept", content={"confirm": False}),
    types.ElicitResult(action="accept", content={"confirm": "true"}),
    types.ElicitResult(action="accept", content={}),
]


@pytest.fixture
def wanted(tmp_path: Path) -> dict[str, Any]:
    """The arguments of a request for a secret."""
    return {"prompts": [{"text": "Password"}], "to": f"file:{tmp_path}/password"}


def requests_of(job: Job) -> int:
    """How many requests there are."""
    with client_of(job) as client:
        return len(list(client.iter_requests()))


@pytest.mark.parametrize("mode", ERAS)
def test_the_link_is_shown_by_the_client(
    connect: Any, person: Any, wanted: Any, mode: str, job: Job
) -> None:
    made = connect(mode, person).call("request_secret", **wanted)
    (shown,) = person.asked
    assert shown.url.endswith(f"/r/{made['code']}")
    assert "link" not in made
    assert requests_of(job) == 1


@pytest.mark.parametrize("mode", ERAS)
def test_a_link_that_the_person_does_not_open_is_in_the_answer(
    connect: Any, person: Any, wanted: Any, mode: str
) -> None:
    person.answers = [types.ElicitResult(action="decline")]
    made = connect(mode, person).call("request_secret", **wanted)
    assert made["link"].endswith(f"/r/{made['code']}")


def test_a_client_with_forms_only_gets_the_link_as_text(
    connect: Any, person: Any, wanted: Any
) -> None:
    with mock.patch.object(mcp_types, "UrlElicitationCapability", return_value=None):
        assert "link" in connect("legacy", person).call("request_secret", **wanted)
    assert person.asked == []


@pytest.mark.parametrize("mode", ERAS)
def test_a_person_confirms_what_the_policy_says(
    connect: Any, person: Any, wanted: Any, mode: str, anything: Any, job: Job
) -> None:
    assistant = connect(mode, person, anything(confirmed={"request_secret"}))
    assistant.call("request_secret", **wanted)
    question = person.asked[0]
    assert "request_secret" in question.message
    assert wanted["to"] in question.message
    assert requests_of(job) == 1


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize("answer", NO_FORMS, ids=str)
def test_without_a_yes_nothing_is_done(
    connect: Any,
    person: Any,
    wanted: Any,
    mode: str,
    anything: Any,
    job: Job,
    answer: types.ElicitResult,
) -> None:
    person.answers = [answer]
    error = connect(mode, person, anything(confirmed={"request_secret"})).fail(
        "request_secret", **wanted
    )
    assert error["kind"] == "PolicyError"
    assert requests_of(job) == 0


@pytest.mark.parametrize("mode", ERAS)
def test_without_a_way_to_ask_nothing_is_done(
    connect: Any, wanted: Any, mode: str, anything: Any, job: Job
) -> None:
    error = connect(mode, None, anything(confirmed={"request_secret"})).fail(
        "request_secret", **wanted
    )
    assert "no way to ask" in error["message"]
    assert requests_of(job) == 0


def test_a_confirmation_serves_once(
    connect: Any, person: Any, wanted: Any, anything: Any, job: Job
) -> None:
    assistant = connect("auto", person, anything(confirmed={"request_secret"}))
    asked = assistant.round("request_secret", wanted)
    assert set(asked.input_requests) == {"confirm"}
    assert requests_of(job) == 0
    shown = assistant.round("request_secret", wanted, {"confirm": YES}, asked.request_state)
    assert set(shown.input_requests) == {"link"}
    replayed = assistant.round("request_secret", wanted, {"confirm": YES}, asked.request_state)
    assert replayed.structured_content["error"]["kind"] == "PolicyError"
    first, second = (
        assistant.round("request_secret", wanted, {"link": YES}, shown.request_state)
        for _ in range(2)
    )
    assert first.structured_content == second.structured_content  # to hear it again changes nothing
    assert requests_of(job) == 1


def test_each_call_is_recorded_once(connect: Any, person: Any, wanted: Any, anything: Any) -> None:
    told: list[str] = []

    def report(tool: str, _name: str, error: BaseException | None) -> None:
        told.append(f"{tool} {type(error).__name__}")

    policy = anything(confirmed={"request_secret"})
    person.answers = [YES, YES, types.ElicitResult(action="decline")]
    assistant = connect("auto", person, policy, report=report)
    assistant.call("request_secret", **wanted)
    assistant.fail("request_secret", **wanted)
    asked, done, refused = (
        f"request_secret {each}" for each in ("UnconfirmedError", "NoneType", "PolicyError")
    )
    assert told == [asked, done, asked, refused]


def test_a_person_sees_what_a_call_is_about(connect: Any, person: Any, anything: Any) -> None:
    connect("auto", person, anything(confirmed={"expire"})).fail("expire", code="CODE-of-it")
    assert "CODE-of-it" in person.asked[0].message


def test_a_confirmation_is_for_its_arguments(
    connect: Any, person: Any, wanted: Any, anything: Any, job: Job
) -> None:
    assistant = connect("auto", person, anything(confirmed={"request_secret", "collect_secret"}))
    state = assistant.round("request_secret", wanted).request_state
    for tool, arguments in (
        ("request_secret", {**wanted, "title": "another"}),
        ("collect_secret", {"code": "another"}),
    ):
        with pytest.raises(MCPError):
            assistant.round(tool, arguments, {"confirm": YES}, state)
    with pytest.raises(MCPError):
        assistant.round("request_secret", wanted, {"confirm": YES}, exchanged(state))
    assert requests_of(job) == 0


def test_an_answer_without_a_question_confirms_nothing(
    connect: Any, person: Any, wanted: Any, anything: Any, job: Job
) -> None:
    assistant = connect("auto", person, anything(confirmed={"request_secret"}))
    assert assistant.round("request_secret", wanted, {"confirm": YES}).request_state
    assert requests_of(job) == 0


HIDING = "".join(["<!-- ", " " * 80, "[docs](https://docs.example)", " ~~not~~ &nbsp; \u202e -->"])


@pytest.mark.parametrize("mode", ERAS)
def test_the_question_shows_every_argument_and_nothing_hides_one(
    connect: Any, person: Any, wanted: Any, mode: str, anything: Any
) -> None:
    person.answers = [types.ElicitResult(action="decline")] * 2
    assistant = connect(mode, person, anything(confirmed={"request_secret", "expire"}))
    assistant.fail("request_secret", **wanted, title="As agreed", description=HIDING)
    assistant.fail("expire", code="AbC123")
    first, second = (each.message for each in person.asked)
    assert all(text in first for text in ("As agreed", "Password", "docs.example"))
    assert not any(text in first for text in ("<!--", "](", "  ", "~~", "&nbsp", "\u202e"))
    assert "AbC123" in second


@pytest.mark.parametrize("mode", ERAS)
def test_no_submitter_keeps_a_person_from_being_asked(
    connect: Any, person: Any, job: Job, tmp_path: Path, mode: str, anything: Any
) -> None:
    assistant = connect(mode, person, anything(confirmed={"status"}))
    for number, value in enumerate(["page", "assistant", "method", "arguments"]):
        made = assistant.call(
            "request_secret", prompts=[{"text": "Password"}], to=f"file:{tmp_path}/{number}"
        )
        job.service.submitter().submit(person.asked[-1].url, {"Password": value})
        assistant.call("collect_secret", code=made["code"])
    assert assistant.call("status", code=made["code"])["state"] == "ended"
    assert "status" in person.asked[-1].message
