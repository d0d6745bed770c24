"""The machine's [enforce] stands above the policy for assistants, for each tool; and every call is
in an audit log.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from sealpipe.custody_gate import CustodyGate
from sealpipe.errors import PolicyError, SealpipeError, StateError
from sealpipe.mcp.audit import WithheldError, add_audit_log, report_call
from sealpipe.mcp.tool_policy_file import load_policy
from sealpipe.policy import LocalContext
from sealpipe.registry import Registry
from sealpipe.registry.stores import PolicyHook
from sealpipe_plugins.audit.verify import verify
from support.job import Job

NOTHING = "sources = []\nsinks = []\nrecipients = []\ntools = []\n"
ALL = 'sources = ["*"]\nsinks = ["*"]\nrecipients = ["*"]\ntools = ["*"]\n'
PROMPTS = [{"text": "Password"}]


@pytest.fixture
def enforce(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Writes the machine's policy."""
    file = tmp_path / "machine.toml"
    monkeypatch.setattr("sealpipe.config.MACHINE_CONFIG", file)
    return lambda rules: file.write_text(f"[enforce.policy]\n{rules}") and None


def refusal(error: Mapping[str, Any]) -> str:
    """Why a policy refused a call: what the error says, or its detail once the call had begun."""
    assert error["kind"] == "PolicyError", error
    return str(error.get("detail", {}).get("untrusted") or error["message"])


@pytest.mark.parametrize(
    ("rules", "reason"),
    [
        (ALL + 'actions = ["share"]', "the action request is not allowed"),
        (ALL + 'longest_expiry = "1h"', "it has to expire within 1h"),
        (ALL.replace('recipients = ["*"]', "recipients = []"), "not allowed"),
        (ALL + 'types = ["text"]', "the field type password is not allowed"),
    ],
)
def test_no_request_is_made_that_the_machine_refuses(
    connect: Any, job: Job, enforce: Callable[[str], None], tmp_path: Path, rules: str, reason: str
) -> None:
    enforce(rules)
    send = {"send": [f"file:{tmp_path}/link"]} if "recipients = []" in rules else {}
    error = connect().fail(
        "request_secret", prompts=PROMPTS, to=f"file:{tmp_path}/password", **send
    )
    message = refusal(error)
    assert message.startswith("this machine's policy does not allow this:")
    assert reason in message
    assert job.run("requests", "list", "--output", "json").json["requests"] == []
    assert not (tmp_path / "link").exists()


def test_nothing_is_stored_that_the_machine_refuses(
    connect: Any, job: Job, enforce: Callable[[str], None], tmp_path: Path
) -> None:
    made = connect().call("request_secret", prompts=PROMPTS, to=f"file:{tmp_path}/password")
    job.service.submitter().submit(made["link"], {"Password": "canary"})
    actions = ('["request", "expire"]', '["request", "collect"]')
    for rules in (
        ALL.replace('sinks = ["*"]', "sinks = []"),
        *(f"{ALL}actions = {each}" for each in actions),
    ):
        enforce(rules)
        assert "this machine's policy" in refusal(
            connect().fail("collect_secret", code=made["code"])
        )
        assert not (tmp_path / "password").exists()
    enforce(ALL)
    assert connect().call("collect_secret", code=made["code"])["request"] == "expired"
    assert (tmp_path / "password").read_text() == "canary"


def test_no_command_runs_that_the_machine_refuses(
    connect: Any, enforce: Callable[[str], None], tmp_path: Path
) -> None:
    (tmp_path / "value").write_text("canary-of-a-value")
    command = ["touch", str(tmp_path / "ran")]
    arguments = {"command": command, "environment": {"DB": f"file:{tmp_path}/value"}}
    for rules in (
        NOTHING,
        ALL + 'actions = ["read"]',
        ALL.replace('sinks = ["*"]', 'sinks = ["vault"]'),
    ):
        enforce(rules)
        assert "this machine's policy" in refusal(connect().fail("run_with_secrets", **arguments))
        assert not (tmp_path / "ran").exists()
    enforce(ALL)
    assert connect().call("run_with_secrets", **arguments)["exit_code"] == 0


@pytest.mark.parametrize(
    ("rules", "reason"),
    [
        (
            ALL.replace('sources = ["*"]', 'sources = ["vault"]'),
            "the source file/file is not allowed",
        ),
        (
            ALL.replace('recipients = ["*"]', 'recipients = ["email:*"]'),
            "the channel file/file is not allowed",
        ),
        (ALL + 'actions = ["request"]', "the action share is not allowed"),
        (ALL + 'longest_expiry = "1h"', "it has to expire within 1h"),
        (ALL + "most_views = 1", "it allows at most 1 view"),
    ],
)
def test_nothing_is_shared_that_the_machine_refuses(
    connect: Any, job: Job, enforce: Callable[[str], None], tmp_path: Path, rules: str, reason: str
) -> None:
    (tmp_path / "value").write_text("canary-of-a-value")
    enforce(rules)
    fields = [{"reference": f"file:{tmp_path}/value"}]
    error = connect().fail("share_secret", fields=fields, to=f"file:{tmp_path}/link", views=2)
    assert reason in refusal(error)
    assert job.shares() == []
    assert not (tmp_path / "link").exists()


def test_nothing_is_ended_that_the_machine_refuses(
    connect: Any, job: Job, enforce: Callable[[str], None], tmp_path: Path
) -> None:
    (tmp_path / "value").write_text("canary-of-a-value")
    assistant, fields = connect(), [{"reference": f"file:{tmp_path}/value"}]
    share = assistant.call("share_secret", fields=fields, to=f"file:{tmp_path}/link")
    request = assistant.call("request_secret", prompts=PROMPTS, to=f"file:{tmp_path}/password")
    enforce(ALL + 'actions = ["share", "request", "collect"]')
    for made in (share, request):
        assert "the action expire is not allowed" in refusal(
            connect().fail("expire", code=made["code"])
        )
    assert job.live_shares() == [share["code"]]
    enforce(ALL)
    assert [
        connect().call("expire", code=made["code"])["outcome"] for made in (share, request)
    ] == ["expired"] * 2


def test_the_policy_file_only_takes_away_from_the_machine(
    connect: Any, enforce: Callable[[str], None], tmp_path: Path
) -> None:
    """Both must allow it: neither replaces the other."""
    file = tmp_path / "mcp.toml"
    file.write_text(f'schema = 1\n[request]\nsinks = ["file:{tmp_path}/*"]\n')
    enforce(ALL + 'actions = ["share"]')
    assistant = connect(policy=load_policy(file, {}))
    for target, reason in (
        (f"file:{tmp_path}/password", "this machine's policy"),
        ("file:/etc/password", "sinks in"),
    ):
        assert reason in refusal(assistant.fail("request_secret", prompts=PROMPTS, to=target))


def make_context(folder: Path, hooks: Sequence[PolicyHook] = ()) -> LocalContext:
    """The context in which a server records its calls."""
    return LocalContext(add_audit_log(hooks, folder), Registry, CustodyGate())


def read(file: Path) -> list[dict[str, Any]]:
    """The lines of an audit log whose chain holds."""
    assert verify(file, None).findings == []
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_every_call_is_recorded_with_the_clients_name(
    connect: Any, job: Job, tmp_path: Path
) -> None:
    file = tmp_path / "mcp.toml"
    file.write_text(f'schema = 1\n[request]\nsinks = ["file:{tmp_path}/*"]\n')
    context = make_context(job.state / "mcp")
    assistant = connect(policy=load_policy(file, {}), report=partial(report_call, context))
    assistant.call("request_secret", prompts=PROMPTS, to=f"file:{tmp_path}/password")
    refusal(assistant.fail("request_secret", prompts=PROMPTS, to="file:/etc/x"))
    refusal(assistant.fail("run_with_secrets", command=["env"], environment={"A": "env:HOME"}))
    assistant.fail("collect_secret", code="none")
    assistant.fail("request_secret", to=5)
    lines = read(job.state / "mcp" / "audit.jsonl")
    assert {(line["event"], line["mcp_client"]) for line in lines} == {("mcp", "helper")}
    assert [(line["tool"], line["outcome"]) for line in lines] == [
        ("request_secret", "done"),
        ("request_secret", "refused"),
        ("run_with_secrets", "refused"),
        ("collect_secret", "NotFoundError"),
        ("request_secret", "UsageError"),
    ]
    assert "file:/etc/x" in lines[1]["reason"]
    assert "canary" not in json.dumps(lines)
    assert (job.state / "mcp" / "audit.jsonl").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_question_to_a_person_is_recorded(
    connect: Any, job: Job, anything: Any, person: Any, tmp_path: Path, mode: str
) -> None:
    context = make_context(job.state / "mcp")
    policy = anything(confirmed=frozenset({"run_with_secrets"}))
    assistant = connect(mode, person, policy, report=partial(report_call, context))
    (tmp_path / "value").write_text("canary-of-a-value")
    assistant.call(
        "run_with_secrets", command=["true"], environment={"DB": f"file:{tmp_path}/value"}
    )
    asked = [("run_with_secrets", "asked")] * (mode == "auto")
    lines = read(job.state / "mcp" / "audit.jsonl")
    assert [(line["tool"], line["outcome"]) for line in lines] == [
        *asked,
        ("run_with_secrets", "done"),
    ]


def test_a_configured_audit_log_is_the_only_one(tmp_path: Path) -> None:
    hooks = [PolicyHook("audit", {"file": str(tmp_path / "own.jsonl")}, enforced=True)]
    context = make_context(tmp_path / "mcp", hooks)
    assert report_call(context, "check", "helper") == ()
    assert [line["outcome"] for line in read(tmp_path / "own.jsonl")] == ["done"]
    assert not (tmp_path / "mcp").exists()


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (PolicyError("no"), "refused"),
        (StateError("full"), "StateError"),
        (WithheldError("a secret"), "withheld"),
    ],
)
def test_an_outcome_names_the_error_and_no_more(
    tmp_path: Path, error: SealpipeError, outcome: str
) -> None:
    report_call(make_context(tmp_path / "mcp"), "check", "helper", error)
    (line,) = read(tmp_path / "mcp" / "audit.jsonl")
    assert line["outcome"] == outcome
    assert ("reason" in line) is (outcome == "refused")


def test_a_log_that_cannot_be_written_is_a_warning(tmp_path: Path) -> None:
    context = make_context(tmp_path / "mcp")
    (tmp_path / "mcp" / "audit.jsonl").mkdir()
    (warning,) = report_call(context, "check", "helper")
    assert "the audit log" in warning


def test_a_sink_that_the_policy_no_longer_allows_gets_nothing(
    connect: Any, job: Job, tmp_path: Path
) -> None:
    made = connect().call("request_secret", prompts=PROMPTS, to=f"file:{tmp_path}/password")
    job.service.submitter().submit(made["link"], {"Password": "canary"})
    file = tmp_path / "mcp.toml"
    file.write_text('schema = 1\n[request]\nsinks = ["vault:secret/*"]\n')
    assistant = connect(policy=load_policy(file, {}))
    assert "sinks in [request] allow" in refusal(
        assistant.fail("collect_secret", code=made["code"])
    )
    assert not (tmp_path / "password").exists()


def test_a_submitter_silences_no_refusal_and_no_name_of_a_tool_is_a_guess(
    connect: Any, job: Job, tmp_path: Path
) -> None:
    file, words = (
        tmp_path / "mcp.toml",
        ["is not allowed; sinks in [request]", "canary-of-a-submitter"],
    )
    file.write_text(f'schema = 1\n[request]\nsinks = ["file:{tmp_path}/*"]\n')
    assistant = connect(policy=load_policy(file, {}))
    for number, word in enumerate(words):
        made = assistant.call("request_secret", prompts=PROMPTS, to=f"file:{tmp_path}/{number}")
        job.service.submitter().submit(made["link"], {"Password": word})
        assistant.call("collect_secret", code=made["code"])
    assert words[0] in refusal(assistant.fail("request_secret", prompts=PROMPTS, to="file:/etc/x"))
    right, wrong = (
        assistant.fail(name)["message"]
        for name in ("canary-of-a-submitter", "canary-of-a-stranger")
    )
    assert right.replace("submitter", "") == wrong.replace("stranger", "")
