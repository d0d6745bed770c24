"""Policies that may say no, and observers that are told: the user's, and the machine's that nobody
overrides.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sealpipe import AsyncClient, Client, NotConfiguredError, PolicyError, SettingError
from sealpipe.errors import PluginError
from sealpipe.plugin import OutgoingAction
from sealpipe.registry import Registry
from sealpipe.registry.stores import PolicyHook, read_policy_hooks
from sealpipe_rehearsal.running_service import RunningService
from support.distributions import ALLOWS_ALL, Site
from support.terminal import Done, Terminal

PLAN = OutgoingAction(
    "share", (("Password", "password"),), ("vault",), ("email:a@example.com",),
    datetime.now(UTC) + timedelta(hours=1, minutes=30), 1,
)  # fmt: skip
CANARY = "c4nary-value"


@pytest.fixture
def policy(tmp_path: Path) -> Callable[[str], PolicyHook]:
    def write(rules: str) -> PolicyHook:
        file = tmp_path / "policy.toml"
        file.write_text(rules)
        return PolicyHook("policy", {"file": str(file)})

    return write


ALLOWED = [
    "",
    'sources = ["vault"]',
    'sources = ["v*", "other"]',
    'recipients = ["email:*@example.com"]',
    'types = ["password"]',
    'longest_expiry = "90m"',
    "most_views = 1",
]
REFUSED = {
    'sources = ["aws-*"]': "the source vault is not allowed",
    "sources = []": "the source vault is not allowed",
    'recipients = ["email:*@example.org"]': "the recipient email:a@example.com is not allowed",
    'types = ["text"]': "the field type password is not allowed",
    'longest_expiry = "20m"': "it has to expire within 20m",
}


@pytest.mark.parametrize("rules", ALLOWED)
def test_what_a_policy_allows_may_leave(policy: Callable[[str], PolicyHook], rules: str) -> None:
    Registry().check_outgoing([policy(rules)], PLAN)


@pytest.mark.parametrize("rules", REFUSED)
def test_what_a_policy_does_not_allow_is_refused_with_its_reason(
    policy: Callable[[str], PolicyHook], rules: str
) -> None:
    with pytest.raises(PolicyError) as refused:
        Registry().check_outgoing([policy(rules)], PLAN)
    assert REFUSED[rules] in str(refused.value)
    assert refused.value.exit_code == 2


def test_no_end_and_no_limit_are_more_than_any(policy: Callable[[str], PolicyHook]) -> None:
    for rules, plan in (
        ('longest_expiry = "52w"', PLAN._replace(expires_at=None)),
        ("most_views = 100", PLAN._replace(views=None)),
        ("most_views = 1", PLAN._replace(views=2)),
    ):
        with pytest.raises(PolicyError):
            Registry().check_outgoing([policy(rules)], plan)


@pytest.mark.parametrize(
    "rules",
    [
        "= no toml",
        "most_view = 1",
        "most_views = 0",
        "most_views = true",
        'longest_expiry = "7"',
        'sources = "vault"',
    ],
)
def test_a_policy_that_cannot_be_read_lets_nothing_leave(
    policy: Callable[[str], PolicyHook], rules: str
) -> None:
    with pytest.raises(NotConfiguredError, match="policy"):
        Registry().check_outgoing([policy(rules)], PLAN)


@pytest.mark.parametrize(
    "table", [{}, {"file": "relative.toml"}, {"file": "/nowhere/policy.toml"}, {"file": 1}]
)
def test_a_policy_without_a_file_lets_nothing_leave(table: dict[str, Any]) -> None:
    with pytest.raises(NotConfiguredError):
        Registry().check_outgoing([PolicyHook("policy", table)], PLAN)


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_the_audit_is_notified_before_and_after_without_values(user: Terminal) -> None:
    file = user.here / "audit.jsonl"
    user.file("config.toml", f'[audit]\nfile = "{file}"\n')
    ci = {
        "GITHUB_ACTIONS": "1",
        "GITHUB_REPOSITORY": "acme/app",
        "GITHUB_RUN_ID": "7",
        "GITHUB_ACTOR": "eve",
    }
    config = {"SEALPIPE_CONFIG": str(user.here / "config.toml")}
    done = user.sealpipe("share", "-f", "Root=env:DB", "--title", "T", DB=CANARY, **config, **ci)
    assert done.code == 0, done
    before, after = lines(file)
    assert (before["outcome"], after["outcome"]) == ("sending", "created")
    assert after["short_code"] in done.out
    assert {name: after[name] for name in ("labels", "sources", "recipients", "views", "title",
        "run", "actor")} == {
        "labels": ["Root"], "sources": ["env/env"], "recipients": [], "views": 1, "title": "T",
        "run": "acme/app/7//", "actor": "eve",
    }  # fmt: skip
    assert CANARY not in file.read_text()
    assert done.out.strip().partition("#1")[2] not in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_failure_is_recorded_with_its_type(user: Terminal) -> None:
    file = user.here / "audit.jsonl"
    user.file("config.toml", f'[audit]\nfile = "{file}"\n')
    config = {
        "SEALPIPE_CONFIG": str(user.here / "config.toml"),
        "SEALPIPE_API_KEY": "svc_sk_live_" + "x" * 16 + "." + "A" * 43,
    }
    assert user.sealpipe("share", "-f", "text:x", **config).code == 3
    assert [line["outcome"] for line in lines(file)] == ["sending", "AuthenticationError"]


@pytest.mark.parametrize("required", [True, False])
def test_a_required_audit_that_cannot_be_written_stops_everything(
    user: Terminal, service: RunningService, *, required: bool
) -> None:
    table = (
        f'[audit]\nfile = "{user.here}/no/such/folder/audit.jsonl"\nrequired = '
        f"{str(required).lower()}\n"
    )
    user.file("config.toml", table)
    done = user.sealpipe("share", "-f", "text:x", SEALPIPE_CONFIG=str(user.here / "config.toml"))
    assert done.code == (14 if required else 0)
    assert len([seen for seen in service.seen() if seen.method == "POST"]) == (0 if required else 1)
    assert not required or "audit" in done.err


def test_what_the_machine_enforces_holds_whatever_the_user_sets(
    service: RunningService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "strict.toml").write_text(ALLOWS_ALL + "most_views = 1")
    machine = tmp_path / "machine.toml"
    machine.write_text(
        f'[enforce.policy]\nfile = "{tmp_path}/strict.toml"\n'
        f'[enforce.audit]\nfile = "{tmp_path}/audit.jsonl"\nrequired = true\n'
    )
    monkeypatch.setattr("sealpipe.config.MACHINE_CONFIG", machine)
    where = {"base_url": service.base_url, "link_base_url": service.link_base_url}
    with Client(api_key=service.create_key(), **where) as client:
        with pytest.raises(PolicyError, match="this machine's policy"):
            client.share(["text:x"], views=2)
        client.share(["text:x"], views=1)
    assert [line["outcome"] for line in lines(tmp_path / "audit.jsonl")] == [
        "refused",
        "sending",
        "created",
    ]
    machine.write_text("[audit]\n")
    with pytest.raises(Exception, match=r"only \[enforce\] is read there"):
        AsyncClient(api_key=service.create_key(), **where)


def test_a_third_partys_policy_is_loaded_only_where_the_config_names_it() -> None:
    with pytest.raises(NotConfiguredError, match="nobodys is not installed"):
        Registry().check_outgoing([PolicyHook("nobodys", {})], PLAN)


OVERSEER = f"""
import json
from sealpipe.plugin import PluginError, VetoError, hookimpl

@hookimpl
def sealpipe_check_outgoing(plan, config):
    if config.get("breaks"):
        raise RuntimeError("{CANARY}")
    if plan.title in config.get("titles", []):
        raise VetoError(f"the title {{plan.title}} is not for the outside")
    for recipient in plan.recipients if config.get("local") else ():
        raise VetoError(f"{{recipient.partition(':')[2]}} is not ours")

@hookimpl
def sealpipe_event(event, config):
    if config.get("deaf") == event["outcome"]:
        raise PluginError("nobody listens")
    with open(config["file"], "a") as file:
        file.write(json.dumps(event, default=str) + "\\n")
"""


@pytest.fixture
def overseen(user: Terminal, site: Site) -> Callable[..., Done]:
    """Share with a third party's overseer: the rest of its table, and the words of the command."""
    site.install("house-rules", OVERSEER)
    user.environ |= {
        "PYTHONPATH": str(site.folder),
        "SEALPIPE_CONFIG": str(user.here / "config.toml"),
        "DB": CANARY,
    }

    def share(rules: str, *words: str, allowed: str = "") -> Done:
        table = f'[oversight.house-rules]\nfile = "{user.here}/told.jsonl"\n{rules}\n'
        user.file("config.toml", allowed + table)
        return user.sealpipe("share", "-f", "env:DB", *words)

    return share


def sent(service: RunningService) -> int:
    return len([seen for seen in service.seen() if seen.method == "POST"])


def test_a_third_partys_overseer_has_its_table_and_sees_no_value(
    overseen: Callable[..., Done], user: Terminal
) -> None:
    done = overseen('titles = ["Secret plans"]', "--title", "Lunch")
    assert done.code == 0, done
    before, after = lines(user.here / "told.jsonl")
    assert (before["outcome"], after["outcome"], after["title"]) == ("sending", "created", "Lunch")
    text = (user.here / "told.jsonl").read_text()
    assert CANARY not in text
    assert done.out.strip().partition("#1")[2] not in text


REFUSALS = {
    'titles = ["Lunch"]': (
        2,
        "the policy house-rules does not allow this: the title Lunch is not for the outside",
    ),
    "breaks = true": (14, "house-rules raised an unexpected RuntimeError"),
    'deaf = "sending"': (14, "nobody listens"),
}


@pytest.mark.parametrize("rules", REFUSALS)
def test_what_it_refuses_or_cannot_say_is_not_sent(
    overseen: Callable[..., Done], service: RunningService, rules: str
) -> None:
    code, told = REFUSALS[rules]
    done = overseen(rules, "--title", "Lunch")
    assert (done.code, done.out, sent(service)) == (code, "", 0)
    assert told in done.err
    assert CANARY not in done.err


def test_a_webhooks_token_that_it_quotes_is_not_shown(
    overseen: Callable[..., Done], user: Terminal
) -> None:
    user.environ["SEALPIPE_PLUGIN_WEBHOOK__UNSIGNED"] = "1"
    done = overseen("local = true", "--send", "webhook:http://127.0.0.1:9/in?token=t0ken")
    assert (done.code, done.out) == (2, "")
    assert "http://127.0.0.1:9/in?*** is not ours" in done.err
    assert "t0ken" not in done.err + (user.here / "told.jsonl").read_text()


def test_a_failed_final_notification_is_a_warning(
    overseen: Callable[..., Done], service: RunningService
) -> None:
    done = overseen('deaf = "created"')
    assert (done.code, sent(service)) == (0, 1)
    assert "nobody listens" in done.err


def test_an_overseer_that_may_not_be_loaded_lets_nothing_leave(
    overseen: Callable[..., Done], service: RunningService
) -> None:
    done = overseen("", allowed="allow_plugins = []\n")
    assert (done.code, sent(service)) == (14, 0)
    assert "the plugin house-rules is not listed in allow_plugins" in done.err


def test_the_machine_can_fix_a_third_partys_too(
    site: Site, service: RunningService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.install("house-rules", OVERSEER)
    machine = tmp_path / "machine.toml"
    machine.write_text(
        f'[enforce.house-rules]\nfile = "{tmp_path}/told.jsonl"\ntitles = ["Lunch"]\n'
    )
    monkeypatch.setattr("sealpipe.config.MACHINE_CONFIG", machine)
    where = {"base_url": service.base_url, "link_base_url": service.link_base_url}
    with Client(api_key=service.create_key(), **where) as client:
        with pytest.raises(
            PolicyError, match="this machine's policy does not allow this: the title Lunch"
        ):
            client.share(["text:x"], title="Lunch")
        client.share(["text:x"], title="Dinner")
    assert [line["outcome"] for line in lines(tmp_path / "told.jsonl")] == [
        "refused",
        "sending",
        "created",
    ]


@pytest.mark.parametrize(
    ("user", "machine"),
    [
        ({"oversight": 1}, {}),
        ({"oversight": {"x": 1}}, {}),
        ({"audit": 1}, {}),
        ({}, {"enforce": 1}),
    ],
)
def test_a_table_that_is_none_is_an_error(user: dict[str, Any], machine: dict[str, Any]) -> None:
    with pytest.raises((SettingError, NotConfiguredError), match="is not a table"):
        read_policy_hooks(user, machine)


@pytest.mark.parametrize(
    "table",
    [{"file": "audit.jsonl"}, {}, {"file": "/x", "required": "yes"}, {"file": "/x", "fiel": 1}],
)
def test_an_audit_that_is_set_wrongly_is_an_error(table: dict[str, Any]) -> None:
    with pytest.raises(PluginError, match="audit"):
        Registry().notify_observers([PolicyHook("audit", table)], {"event": "share"})


def test_the_audit_records_every_message(user: Terminal) -> None:
    file, link = user.here / "audit.jsonl", user.here / "link"
    user.file("config.toml", f'[audit]\nfile = "{file}"\n')
    config = {"SEALPIPE_CONFIG": str(user.here / "config.toml")}
    done = user.sealpipe("share", "-f", "text:x", "--send", f"file:{link}", **config)
    assert (done.code, done.out) == (0, "")
    before, created, sent = lines(file)
    assert before["recipients"] == created["recipients"] == [f"file:{link}"]
    told = {name: sent[name] for name in ("event", "short_code", "recipient", "what", "outcome")}
    assert told == {
        "event": "delivery", "short_code": created["short_code"], "recipient": f"file:{link}",
        "what": "link", "outcome": "sent",
    }  # fmt: skip
    assert "#1" not in file.read_text()


def test_what_resume_finishes_is_recorded_too(user: Terminal, service: RunningService) -> None:
    file = user.here / "audit.jsonl"
    user.file("config.toml", f'[audit]\nfile = "{file}"\n')
    config = {"SEALPIPE_CONFIG": str(user.here / "config.toml")}
    service.set_faults({"fault": "reset", "after_commit": True, "times": "always"})
    assert (
        user.sealpipe(
            "share", "-f", "text:x", "--send", "file:link", "--deadline", "30s", **config
        ).code
        == 9
    )
    service.set_faults()
    assert user.sealpipe("resume", **config).code == 0
    told = [(line["event"], line["outcome"], line.get("resumed", False)) for line in lines(file)]
    assert told == [
        ("share", "sending", False),
        ("share", "OutcomeUnknownError", False),
        ("share", "sending", True),
        ("share", "replayed", True),
        ("delivery", "sent", False),
    ]
