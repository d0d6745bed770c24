"""The whole scene: an assistant asks for a password, a person types it in a browser, and it lies in
a Vault.

The assistant is the official client, `sealpipe mcp` a process of its own, and every byte between
them is kept.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e.browser.assistant import Person, assistant_of
from e2e.browser.chrome import Browser
from support.job import Job
from support.leaks import Detector
from support.openbao import Bao, InVault, dev_server

POLICY = """
schema = 1
[request]
sinks = ["vault:secret/app/*"]
"""


@pytest.fixture
def bao() -> Iterator[Bao]:
    with dev_server() as bao:
        yield bao


def test_an_assistant_gets_a_password_into_a_vault_and_never_sees_it(
    browser: Browser, job: Job, bao: Bao, tmp_path: Path
) -> None:
    policy, record = tmp_path / "mcp.toml", tmp_path / "record"
    policy.write_text(POLICY)
    record.mkdir()
    vault, person, password = InVault(bao), Person(), f'cänary "{secrets.token_hex(12)}"'
    environ = {**vault.environ(), "SEALPIPE_MCP_POLICY": str(policy)}
    with assistant_of(job.terminal, person, record, **environ) as (portal, client):

        async def call(tool: str, **arguments: Any) -> Any:
            result = await client.call_tool(tool, arguments)
            assert not result.is_error, result.structured_content
            return result.structured_content

        asked = portal.call(
            lambda: call(
                "request_secret",
                prompts=[{"text": "Database password"}],
                title="The app's database",
                to="vault:secret/app/db#password=Database password",
            )
        )
        assert "link" not in asked
        waiting = portal.start_task_soon(
            lambda: call("wait_for_submission", code=asked["code"], seconds=100)
        )
        person.fill_in(browser, "Database password", password)
        assert waiting.result() == {"state": "submitted", "submissions": 1}
        collected = portal.call(lambda: call("collect_secret", code=asked["code"]))
    assert collected["request"] == "expired"
    assert [row["keys"] for row in collected["stored"]] == [["password"]]
    assert vault.there("app/db") == {"password": password.encode()}
    places = [file for file in (*record.iterdir(), *job.state.rglob("*")) if file.is_file()]
    assert {"to-server", "from-server", "stderr"} < {file.name for file in places}
    detector = Detector(
        {
            "password": password.encode(),
            "Vault's token": bao.root.encode(),
            "credential": job.api_key.rpartition(".")[2].encode(),
        }
    )
    assert not [found for file in places for found in detector.find(file.read_bytes(), file.name)]
    assert password.encode() not in browser.heard()
