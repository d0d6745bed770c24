"""An assistant checks the set-up: it sees names and states, and no host, path, person or secret."""

from __future__ import annotations

from typing import Any

import pytest

from sealpipe.config import Config
from sealpipe.mcp.checking import list_missing_settings
from sealpipe.mcp.tools import TOOLS
from support.job import Job
from support.ports import silent_port


@pytest.fixture
def base_url(job: Job) -> str:
    return job.service.base_url


@pytest.fixture
def setup_changes(job: Job, base_url: str) -> Any:
    """The settings of a job, one of which is wrong."""
    values = {"base_url": base_url, "link_base_url": job.service.link_base_url, "deadline": 20.0}
    return {
        "config": Config({**job.terminal.environ, "SEALPIPE_SHARE_VIEWS": "many"}),
        "values": values,
    }


def checked(assistant: Any) -> tuple[dict[str, str], Any]:
    answer = assistant.call("check")
    return {each["check"]: each["state"] for each in answer["findings"]}, answer


def test_states_are_told_by_name_only(connect: Any, job: Job) -> None:
    assistant = connect()
    states, answer = checked(assistant)
    assert {
        states[name] for name in ("credential", "service", "scope shares:write", "state directory")
    } == {"ok"}
    assert states["variable SEALPIPE_SHARE_VIEWS"] == "fail"
    assert answer["tools"] == list(TOOLS)
    assert "sealpipe doctor" in answer["next"][0]
    for hidden in (job.service.base_url, str(job.state), "many", *job.api_key.split(".")):
        assert hidden not in "".join(assistant.received)


@pytest.mark.parametrize(
    "setup_changes", [{"config": Config({"HOME": "/nonexistent", "SEALPIPE_API_KEY": ""})}]
)
def test_what_the_client_did_not_pass_on_is_named_with_where_it_is_set(connect: Any) -> None:
    """The doctor of a person's terminal, which has the variables, would find nothing."""
    states, answer = checked(connect())
    assert states["setting base_url"] == "fail"
    (line,) = answer["next"]
    names = "SEALPIPE_BASE_URL and SEALPIPE_LINK_BASE_URL and SEALPIPE_API_KEY_FILE"
    assert line.startswith(
        f"This server has no {names}: many clients pass on none of a shell's variables."
    )
    assert "in `env` of this server's entry in the client's configuration" in line


def test_of_what_is_missing_only_that_is_named() -> None:
    given = {"base_url": "https://api.example/v1", "link_base_url": "https://api.example/s"}
    assert list_missing_settings(given, {"SEALPIPE_API_KEY": "x"}) == []
    assert list_missing_settings({**given, "api_key_file": "x"}, {}) == []
    assert list_missing_settings(given, {}) == ["SEALPIPE_API_KEY_FILE"]
    assert list_missing_settings({"base_url": "x"}, {"SEALPIPE_API_KEY": "x"}) == [
        "SEALPIPE_LINK_BASE_URL"
    ]


@pytest.mark.parametrize(
    "base_url", [f"http://127.0.0.1:{silent_port()}/v1"], ids=["nobody listens"]
)
def test_a_wrong_address_is_a_finding(connect: Any, base_url: str) -> None:
    assistant = connect()
    states, _ = checked(assistant)
    assert states["service"] == "fail"
    assert base_url not in "".join(assistant.received)
