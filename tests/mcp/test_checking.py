"""An assistant checks the set-up: it sees names and states, and no host, path, person or secret."""

from __future__ import annotations

from typing import Any

import pytest

from sealpipe.config import Config
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
    return {"config": Config({**job.terminal.environ, "SEALPIPE_SHARE_VIEWS": "many"}), "values": values}


def checked(assistant: Any) -> tuple[dict[str, str], Any]:
    answer = assistant.call("check")
    return {each["check"]: each["state"] for each in answer["findings"]}, answer


def test_states_are_told_by_name_only(connect: Any, job: Job) -> None:
    assistant = connect()
    states, answer = checked(assistant)
    assert {states[name] for name in ("credential", "service", "scope shares:write", "state directory")} == {"ok"}
    assert states["variable SEALPIPE_SHARE_VIEWS"] == "fail"
    assert answer["tools"] == list(TOOLS)
    assert "sealpipe doctor" in answer["next"][0]
    for hidden in (job.service.base_url, str(job.state), "many", *job.api_key.split(".")):
        assert hidden not in "".join(assistant.received)


@pytest.mark.parametrize("base_url", [f"http://127.0.0.1:{silent_port()}/v1"], ids=["nobody listens"])
def test_a_wrong_address_is_a_finding(connect: Any, base_url: str) -> None:
    assistant = connect()
    states, _ = checked(assistant)
    assert states["service"] == "fail"
    assert base_url not in "".join(assistant.received)
