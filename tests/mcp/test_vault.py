"""An assistant shares and uses secrets of a real Vault, as far as a policy file says, and gets no
byte of them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest

from sealpipe.mcp.tool_policy_file import load_policy
from support.fake_web import Receiver
from support.job import Job
from support.leaks import Detector
from support.openbao import Bao, dev_server
from support.terminal import opened

VALUES = {"password": "canary-of-a-vault-Pa55", "other": "another-canary-beside-it-77"}
POLICY = """
schema = 1
confirm = []
[share]
sources = ["vault:secret/app/*#password"]
recipients = ["{to}"]
[run]
sources = ["vault:secret/app/*#password"]
variables = ["PGPASSWORD"]
commands = [["{python}", "-Ic", "**"]]
"""


@pytest.fixture
def bao(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bao]:
    with dev_server() as running:
        running.call("POST", "secret/data/app/db", {"data": VALUES})
        running.call("POST", "secret/data/boss/db", {"data": VALUES})
        monkeypatch.setenv("VAULT_ADDR", running.addr)
        monkeypatch.setenv("VAULT_TOKEN", running.root)
        yield running


def test_secrets_of_a_vault_are_shared_and_used_and_not_seen(
    bao: Bao, connect: Any, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEALPIPE_PLUGIN_WEBHOOK__SECRET", "whsec-0123456789abcdef")
    with Receiver() as receiver:
        text = POLICY.replace("{to}", receiver.target).replace("{python}", sys.executable)
        policy = load_policy(job.terminal.file("mcp.toml", text), {})
        assistant = connect(policy=policy)
        source = "vault:secret/app/db#password"
        assistant.call("share_secret", fields=[{"reference": source}], to=receiver.target)
        assert opened(job.service, receiver.secrets[0]) == {"password": VALUES["password"]}

        def run(script: str, reference: str = source, call: Any = assistant.call) -> Any:
            command = [sys.executable, "-Ic", script]
            return call("run_with_secrets", command=command, environment={"PGPASSWORD": reference})

        done = run("import os; print(len(os.environ['PGPASSWORD']), os.environ['PGPASSWORD'])")
        assert done["stdout"] == {"untrusted": f"{len(VALUES['password'])} ***\n"}
        for reference in (
            "vault:secret/app/db#other",
            "vault:secret/boss/db#password",
            "vault:secret/app/db",
        ):
            assert run("", reference, assistant.fail)["kind"] == "PolicyError"
        failed = run("import os; print(os.environ['VAULT_TOKEN'])", call=assistant.fail)
        assert "withheld" in failed["message"]  # the server has used it, so it is known as a secret
    secrets = {**VALUES, "link": receiver.secrets[0].partition("#")[2], "token": bao.root}
    detector = Detector({name: value.encode() for name, value in secrets.items()})
    assert detector.find("".join(assistant.received).encode()) == set()
