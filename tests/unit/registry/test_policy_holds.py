"""What an attack walked around a machine's policy with: each by the real command line, each
refused, nothing sent.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import sealpipe
from sealpipe import (
    Client,
    Field,
    NotConfiguredError,
    PolicyError,
    SettingError,
    policy,
)
from sealpipe.api import mcp, requests, shares
from sealpipe.api.operation import Operation
from sealpipe.api.shares import CreatedShare
from sealpipe.budget import call
from sealpipe.cli.commands import COMMANDS
from sealpipe.plugin import OutgoingAction
from sealpipe.plugin.context import ACTIONS
from sealpipe.registry import Registry
from sealpipe.registry.stores import PolicyHook
from sealpipe.session import Session
from sealpipe.share import post
from sealpipe.wire import keys
from sealpipe_rehearsal.running_service import RunningService
from support.distributions import ALLOWS_ALL, Machine, Site, lists
from support.ports import silent_port
from support.terminal import Done, Terminal, addresses, created

VALUE = "c4nary-value"
ENVIRON = {"DB": VALUE, "CODE": "c4nary-code-7"}


@pytest.fixture
def machine(user: Terminal) -> Machine:
    user.environ |= ENVIRON
    return Machine(user)


def assert_refused(done: Done, service: RunningService, says: str, code: int = 2) -> None:
    """Check that nothing was sent, and nothing told but why."""
    assert (done.code, done.out) == (code, ""), done
    assert says in done.err
    assert "c4nary" not in done.err
    assert service.seen() == []


WALKED_AROUND = {
    "a store that has a plugin's name": (
        lists(sources=["vault"]),
        ["share", "-f", "vault:DB"],
        {"SEALPIPE_STORE__VAULT__PLUGIN": "env"},
        "the store vault has the name of the plugin vault, but uses the plugin 'env'",
    ),
    "a store that has nearly a plugin's name": (
        lists(sources=["aws*"]),
        ["share", "-f", "aws_sm:DB"],
        {"SEALPIPE_CONFIG": "[stores.aws_sm]\nplugin = 'env'\n"},
        "the store aws_sm has the name of the plugin aws-sm, but uses the plugin 'env'",
    ),
    "a store of another plugin, where plugin and store are named": (
        lists(sources=["vault/*"]),
        ["share", "-f", "prod:DB"],
        {"SEALPIPE_STORE__PROD__PLUGIN": "env"},
        "the source env/prod is not allowed",
    ),
    "a channel that has another's name": (
        lists(sources=["env"], recipients=["email:*"]),
        ["share", "-f", "env:DB", "--send", "email:out.txt"],
        {"SEALPIPE_STORE__EMAIL__PLUGIN": "file"},
        "the store email has the name of the plugin email, but uses the plugin 'file'",
    ),
    "a channel's store, where the plugin is named": (
        lists(sources=["env"], recipients=["email/work:*"]),
        ["share", "-f", "env:DB", "--send", "work:out.txt"],
        {"SEALPIPE_STORE__WORK__PLUGIN": "file"},
        "the channel file/work is not allowed",
    ),
    "a recipient that no pattern has": (
        lists(sources=["env"], recipients=["file:/nowhere/*"]),
        ["share", "-f", "env:DB", "--send", "file:out.txt"],
        {},
        "out.txt is not allowed (its channel is file/file)",
    ),
    "what is stored, too": (
        lists(sources=["env"]),
        ["share", "-f", "env:DB", "--also-to", "file:copy"],
        {},
        "the sink file/file is not allowed",
    ),
    "a passcode's source": (
        lists(sources=["env"]),
        ["share", "-f", "env:DB", "--passcode-from", "file:code"],
        {},
        "the source file/file is not allowed",
    ),
    "a passcode that is drawn": (
        lists(sources=["env"], recipients=["*"]),
        ["share", "-f", "env:DB", "--passcode-generate", "--passcode-to", "file:code2"],
        {},
        "the source gen/gen is not allowed",
    ),
    "a parameter's source": (
        lists(sources=["env"], recipients=["*"]),
        ["share", "-f", "env:DB", "--send", "file:{to}", "--param", "to=text:out.txt"],
        {},
        "the source text/text is not allowed",
    ),
    "the passcode of a request, which the service gets": (
        lists(),
        ["request", "-a", "Password", "--passcode-from", "env:CODE"],
        {},
        "the source env/env is not allowed",
    ),
    "the seed of a request": (
        lists(),
        ["request", "-a", "Password", "--key", "new", "--seed-to", "file:seed"],
        {},
        "the sink file/file is not allowed",
    ),
    "a tool's argument": (
        lists(tools=["*"]),
        ["tools", "call", "create_share", "--param", "title=env:DB"],
        {},
        "the source env/env is not allowed",
    ),
    "a tool": (
        lists(tools=["list_shares"]),
        ["tools", "call", "expire_share", "--param", "short_code=text:abc"],
        {},
        "the source text/text is not allowed",
    ),
    "a tool that ends something": (
        lists(tools=["list_*"], sources=["text"]),
        ["tools", "call", "expire_share", "--param", "short_code=text:abc"],
        {},
        "the tool expire_share is not allowed",
    ),
    "where an answer goes": (
        lists(sinks=["vault"]),
        ["collect", "abc", "--to", "file:answer#*"],
        {},
        "",
    ),
    "a folder that an answer goes to": (
        lists(sinks=["vault"]),
        ["collect", "abc", "--dir", "answers"],
        {},
        "the sink dir/dir is not allowed",
    ),
    "an answer that goes to stdout": (
        lists(sinks=["vault"]),
        ["collect", "abc"],
        {},
        "the sink stdout/stdout is not allowed",
    ),
    "the key that opens an answer": (
        lists(sinks=["*"]),
        ["collect", "abc", "--key", "env:DB"],
        {},
        "the source env/env is not allowed",
    ),
    "ending a share": (
        ALLOWS_ALL + 'actions = ["share"]\n',
        ["shares", "expire", "abc"],
        {},
        "the action expire is not allowed",
    ),
    "purging a request": (
        ALLOWS_ALL + 'actions = ["expire"]\n',
        ["requests", "purge", "abc", "--confirm", "abc"],
        {},
        "the action purge is not allowed",
    ),
    "a share that is only tried": (
        lists(),
        ["share", "-f", "env:DB", "--dry-run"],
        {},
        "the source env/env is not allowed",
    ),
    "a field type that only shows in what is read": (
        ALLOWS_ALL + 'types = ["text"]\n',
        ["share", "-f", "env:DB"],
        {},
        "the field type password is not allowed",
    ),
    "the same in a share that is only tried": (
        ALLOWS_ALL + 'types = ["text"]\n',
        ["share", "-f", "env:DB", "--dry-run"],
        {},
        "the field type password is not allowed",
    ),
}


@pytest.mark.parametrize("way", WALKED_AROUND)
def test_a_machines_policy_is_not_walked_around(
    machine: Machine, service: RunningService, way: str
) -> None:
    rules, words, environ, says = WALKED_AROUND[way]
    machine.user.file("code", "4711-4711")
    if "SEALPIPE_CONFIG" in environ:
        config = machine.user.file("config.toml", environ["SEALPIPE_CONFIG"])
        environ = {**environ, "SEALPIPE_CONFIG": str(config)}
    if way == "where an answer goes":
        words = [*words[:-1], "file:answer"]
        says = "the sink file/file is not allowed"
    done = machine.allow(rules).sealpipe(*words, **environ)
    assert_refused(done, service, says)
    left = {path.name for path in machine.user.here.iterdir()}
    assert left <= {"code", "config.toml"}
    assert machine.user.outbox() == []


@pytest.mark.parametrize("options", [(), ("--dry-run",)], ids=["done", "tried"])
def test_what_a_policy_forbids_is_not_even_read(
    machine: Machine, service: RunningService, options: tuple[str, ...]
) -> None:
    """Reading may cost: a program is started, a password is made."""
    mark = machine.user.here / "mark"
    machine.user.file(
        "config.toml",
        f'[plugins.exec.commands.mark]\nargv = ["/bin/sh", "-c", "touch {mark}; echo x"]\n',
    )
    config = str(machine.user.here / "config.toml")
    done = machine.allow(lists(sources=["env"])).sealpipe(
        "share", "-f", "exec:mark", *options, SEALPIPE_CONFIG=config
    )
    assert_refused(done, service, "the source exec/exec is not allowed")
    assert not mark.exists()


def test_what_a_machines_policy_allows_is_done(machine: Machine, service: RunningService) -> None:
    rules = lists(sources=["env/env", "text"], sinks=["file"], recipients=["file/file:*out.txt"])
    words = (
        "-f",
        "env:DB",
        "--also-to",
        "file:copy",
        "--send",
        "file:{to}",
        "--param",
        "to=text:out.txt",
    )
    done = machine.allow(rules, audit=True).sealpipe("share", *words, "--passcode-from", "env:CODE")
    assert done.code == 0, done
    assert len(created(service)) == 1
    line = json.loads(machine.audit.read_text().splitlines()[0])
    told = {
        name: line[name]
        for name in ("event", "outcome", "sources", "sinks", "channels", "recipients")
    }
    assert told == {
        "event": "share", "outcome": "sending", "sources": ["env/env", "text/text"],
        "sinks": ["file/file"],
        "channels": ["file/file"], "recipients": [f"file:{machine.user.here}/out.txt"],
    }  # fmt: skip
    assert (line["service"], line["link_address"]) == (service.base_url, service.link_base_url)
    assert "c4nary" not in machine.audit.read_text()


@pytest.mark.parametrize("missing", ["sources", "sinks", "recipients", "tools"])
def test_a_machines_policy_names_all_lists(
    machine: Machine, service: RunningService, missing: str
) -> None:
    rules = "".join(
        line for line in ALLOWS_ALL.splitlines(keepends=True) if not line.startswith(missing)
    )
    done = machine.allow(rules + "most_views = 1\n").sealpipe("share", "-f", "env:DB")
    assert_refused(done, service, f"is this machine's and lacks {missing}", code=14)


def test_a_users_own_policy_allows_what_it_does_not_name(user: Terminal) -> None:
    user.file("policy.toml", "most_views = 1\n")
    config = user.file("config.toml", f'[policy]\nfile = "{user.here}/policy.toml"\n')
    done = user.sealpipe(
        "share", "-f", "env:DB", "--also-to", "file:copy", DB=VALUE, SEALPIPE_CONFIG=str(config)
    )
    assert done.code == 0, done


def test_rules_may_stand_in_the_config_itself(machine: Machine, service: RunningService) -> None:
    machine.enforce(
        '[enforce.policy]\nsources = ["vault"]\nsinks = []\nrecipients = []\ntools = []\n'
    )
    assert_refused(
        machine.sealpipe("share", "-f", "env:DB"), service, "the source env/env is not allowed"
    )


ELSEWHERE = {
    "base_url": {"SEALPIPE_BASE_URL": "http://127.0.0.1:9/v1"},
    "link_base_url": {"SEALPIPE_LINK_BASE_URL": "http://127.0.0.1:9/x"},
    "ca_file": {"SEALPIPE_CA_FILE": "/nowhere/other.pem"},
    "SSL_CERT_FILE": {"SSL_CERT_FILE": "/nowhere/other.pem"},
}


def fixed(service: RunningService, ca_file: str = "") -> str:
    table = (
        f'[enforce.service]\nbase_url = "{service.base_url}"\nlink_base_url = '
        f'"{service.link_base_url}"\n'
    )
    return table + (f'ca_file = "{ca_file}"\n' if ca_file else "")


@pytest.mark.parametrize("setting", ELSEWHERE)
def test_another_service_than_the_machines_is_refused(
    machine: Machine, service: RunningService, setting: str
) -> None:
    machine.allow(ALLOWS_ALL, audit=True, more=fixed(service, "/etc/ca.pem"))
    done = machine.sealpipe("share", "-f", "env:DB", **ELSEWHERE[setting])
    assert_refused(done, service, "this machine fixes")
    assert setting in done.err
    (line,) = machine.audit.read_text().splitlines()
    assert json.loads(line)["outcome"] == "refused"


@pytest.mark.parametrize("setting", ["ca_file", "SSL_CERT_FILE"])
def test_no_certificates_are_added_to_the_systems(
    machine: Machine, service: RunningService, setting: str
) -> None:
    machine.enforce(fixed(service, "system"))
    assert_refused(
        machine.sealpipe("share", "-f", "env:DB", **ELSEWHERE[setting]),
        service,
        "this machine fixes ca_file",
    )
    assert machine.sealpipe("share", "-f", "env:DB").code == 0


def test_the_machines_service_is_the_default(machine: Machine, service: RunningService) -> None:
    machine.enforce(fixed(service))
    nothing = dict.fromkeys(addresses(service))
    assert machine.sealpipe("share", "-f", "env:DB", **nothing).code == 0
    same = {"SEALPIPE_LINK_BASE_URL": service.link_base_url + "/"}
    assert machine.sealpipe("share", "-f", "env:DB", **same).code == 0
    assert len(created(service)) == 2


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ("service = 1", "is not a table"),
        ("[enforce.service]\nurl = 'x'", "'url', which is not a setting"),
        ("[enforce.service]\nbase_url = 7", "the value is not a string"),
        ("[enforce.service]\nbase_url = 'http://example.com/v1'", "enforce.service.base_url"),
        ("[enforce.service]\nca_file = 'ca.pem'", "the path is not absolute"),
    ],
)
def test_a_wrong_table_lets_nothing_leave(
    machine: Machine, service: RunningService, table: str, says: str
) -> None:
    machine.enforce(table if table.startswith("[") else f"[enforce]\n{table}\n")
    assert_refused(machine.sealpipe("share", "-f", "env:DB"), service, says)


def test_a_required_audit_that_cannot_be_written_stops_collecting(
    machine: Machine, service: RunningService
) -> None:
    machine.enforce('[enforce.audit]\nfile = "/proc/nowhere/audit.jsonl"\nrequired = true\n')
    for words in (["--to", "file:x"], ["--dir", "x"], []):
        assert_refused(
            machine.sealpipe("collect", "abc", *words), service, "the audit log", code=14
        )
    for words in (
        ["shares", "expire", "abc"],
        ["requests", "expire", "abc"],
        ["tools", "call", "share_stats"],
    ):
        assert_refused(machine.sealpipe(*words), service, "the audit log", code=14)


def interrupted(machine: Machine, service: RunningService, *words: str) -> None:
    service.set_faults({"fault": "reset", "after_commit": True, "times": "always"})
    assert machine.sealpipe(*words, "--deadline", "30s").code == 9
    service.set_faults()


@pytest.mark.parametrize(
    ("words", "today"),
    [
        (["share", "-f", "env:DB"], lists(sources=["vault"])),
        (["share", "-f", "env:DB", "--passcode-from", "env:CODE"], lists(sources=["vault"])),
        (["share", "-f", "env:DB", "--also-to", "file:copy"], lists(sources=["env"])),
        (["share", "-f", "env:DB", "--send", "file:out"], lists(sources=["env"])),
        (["share", "-f", "env:DB", "--views", "3"], ALLOWS_ALL + "most_views = 1\n"),
        (["request", "-a", "Password", "--passcode-from", "env:CODE"], lists()),
    ],
)
def test_what_a_policy_refuses_today_does_not_leave_by_resume(
    machine: Machine, service: RunningService, words: list[str], today: str
) -> None:
    machine.enforce("")
    interrupted(machine, service, *words)
    before = len(service.seen())
    done = machine.allow(today, audit=True).sealpipe("resume")
    assert (done.code, done.out, len(service.seen())) == (2, "", before), done
    assert "is not allowed" in done.err or "at most" in done.err
    assert "is kept" in done.err
    refusal = json.loads(machine.audit.read_text().splitlines()[-1])
    assert (refusal["outcome"], refusal["resumed"]) == ("refused", True)
    machine.audit.unlink()
    assert machine.allow(ALLOWS_ALL, audit=True).sealpipe("resume").code == 0
    told = [json.loads(line) for line in machine.audit.read_text().splitlines()]
    assert [line["outcome"] for line in told if line["event"] == words[0]] == [
        "sending",
        "replayed",
    ]
    assert {line["resumed"] for line in told if line["event"] == words[0]} == {True}


def test_links_to_elsewhere_do_not_leave_by_resume(
    machine: Machine, service: RunningService
) -> None:
    machine.enforce("")
    service.set_faults({"fault": "reset", "after_commit": True, "times": "always"})
    elsewhere = {"SEALPIPE_LINK_BASE_URL": "http://127.0.0.1:9/evil"}
    assert machine.sealpipe("share", "-f", "env:DB", "--deadline", "30s", **elsewhere).code == 9
    service.set_faults()
    done = machine.enforce(fixed(service)).sealpipe("resume")
    assert (done.code, done.out) == (2, "")
    assert "this machine fixes" in done.err


def test_unsealing_is_asked_about_and_written_down(
    machine: Machine, service: RunningService
) -> None:
    machine.enforce("")
    made = machine.sealpipe("share", "-f", "env:DB", "--seal-link", "--output", "json").json
    before = len(service.seen())
    done = machine.allow(ALLOWS_ALL + 'actions = ["share"]\n', audit=True).sealpipe(
        "unseal", made["sealed_link"]
    )
    assert (done.code, done.out) == (2, "")
    assert "the action unseal is not allowed" in done.err
    machine.allow(ALLOWS_ALL, audit=True)
    assert machine.sealpipe("unseal", made["sealed_link"]).code == 0
    assert machine.sealpipe("unseal", made["sealed_link"], "--expect", "another").code == 13
    told = [json.loads(line) for line in machine.audit.read_text().splitlines()]
    assert [line["outcome"] for line in told] == [
        "refused",
        "begun",
        "done",
        "begun",
        "EnvelopeError",
    ]
    assert {(line["event"], *line["short_codes"]) for line in told} == {
        ("unseal", made["short_code"])
    }
    assert len(service.seen()) == before


def test_an_audit_that_cannot_be_written_keeps_a_link_sealed(machine: Machine) -> None:
    machine.enforce("")
    sealed = machine.sealpipe("share", "-f", "env:DB", "--seal-link").out.strip()
    machine.enforce('[enforce.audit]\nfile = "/proc/nowhere/audit.jsonl"\nrequired = true\n')
    done = machine.sealpipe("unseal", sealed)
    assert (done.code, done.out) == (14, "")


def test_the_doctor_sends_the_credential_nowhere_else(
    machine: Machine, service: RunningService
) -> None:
    machine.enforce('[enforce.service]\nbase_url = "http://127.0.0.1:9/v1"\n')
    done = machine.sealpipe("doctor")
    assert "this machine fixes base_url" in done.out
    assert (done.code, service.seen()) == (2, [])


def test_the_doctors_test_share_is_asked_about(machine: Machine, service: RunningService) -> None:
    done = machine.allow(lists()).sealpipe("doctor", "--roundtrip")
    assert "the source literal/literal is not allowed" in done.out
    assert [
        body for body in created(service) if body
    ] == []  # an empty one asks for the key's scope
    done = machine.allow(ALLOWS_ALL, audit=True).sealpipe("doctor", "--roundtrip")
    assert (done.code, len([body for body in created(service) if body])) == (0, 1), done
    assert [json.loads(line)["outcome"] for line in machine.audit.read_text().splitlines()] == [
        "sending",
        "created",
    ]


# -- the library -------------------------------------------------------------------------------


@pytest.fixture
def enforcing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    def enforce(rules: str) -> None:
        (tmp_path / "policy.toml").write_text(rules)
        (tmp_path / "machine.toml").write_text(
            f'[enforce.policy]\nfile = "{tmp_path}/policy.toml"\n'
        )
        monkeypatch.setattr("sealpipe.config.MACHINE_CONFIG", tmp_path / "machine.toml")

    return enforce


CALLS: dict[str, Callable[[Any], Any]] = {
    "share": lambda c: c.share(["text:x"]),
    "a literal field": lambda c: c.share([Field("P", "x")]),
    "request": lambda c: c.request(["Password"], passcode="4711-4711"),
    "create_share": lambda c: c.create_share(data=60 * "A", access_token=43 * "A"),
    "create_request": lambda c: c.create_request(
        title="t", public_key=KEY, fields=[("P", "password")]
    ),
    "expire_share": lambda c: c.expire_share("abc"),
    "expire_request": lambda c: c.expire_request("abc"),
    "purge_request": lambda c: c.purge_request("abc", confirm="abc"),
    "delete_request": lambda c: c.delete_request("abc"),
    "collect": lambda c: c.collect("abc"),
    "collect_each": lambda c: c.collect_each(["abc"], folder="x", after="expire"),
    "call_tool": lambda c: c.call_tool("share_stats"),
}
READS = {
    "list_shares", "iter_shares", "get_share", "list_requests", "iter_requests", "get_request",
    "list_submissions", "get_stats", "list_tools", "get_capabilities", "share_log",
    "iter_share_log",
}  # fmt: skip


KEY = keys.from_seed(b"\1" * 32).public_key


def addresses_of(service: RunningService) -> dict[str, str]:
    return {"base_url": service.base_url, "link_base_url": service.link_base_url}


@pytest.mark.parametrize("way", CALLS)
def test_a_client_asks_before_anything_is_sent(
    enforcing: Callable[[str], None], service: RunningService, way: str
) -> None:
    enforcing(lists() + "actions = []\n")
    with (
        Client(api_key=service.create_key(), **addresses_of(service)) as client,
        pytest.raises(PolicyError, match="is not allowed"),
    ):
        CALLS[way](client)
    assert service.seen() == []


def test_every_method_of_a_client_is_asked_about_or_reads() -> None:
    """A new one stands in this file, too."""
    others = {"close", "resume", "from_settings", "from_session"}
    methods = {name for kind in Client.__mro__ for name in vars(kind) if not name.startswith("_")}
    methods = {name for name in methods if callable(getattr(Client, name, None))}
    assert methods == {*CALLS, *READS, *others} - {"a literal field"}


def test_a_flow_that_forgets_to_ask_sends_nothing(
    enforcing: Callable[[str], None], service: RunningService
) -> None:
    enforcing(ALLOWS_ALL)
    with Client(api_key=service.create_key(), **addresses_of(service)) as client:
        with pytest.raises(PolicyError, match="the policy was not asked about this action"):
            call(shares.expire("abc"), client.session.start_budget())
        client.list_shares()
    assert [seen.method for seen in service.seen()] == ["GET"]


CHANGES: dict[str, Operation[Any]] = {
    each.name: each
    for each in (
        shares.create(b"{}", "key"),
        shares.expire("abc"),
        requests.create(b"{}", "key", KEY),
        requests.delete("abc"),
        replace(requests.delete("abc"), name="purge the request"),
        mcp.call(mcp.McpSession(), "share_stats", {}),
    )
}
KIND_AT = {
    "OutgoingAction": 0,
    "describe_raw": 1,
    "describe_new": 1,
    "use_values": 1,
}
"""Which argument of a function is an action's kind."""


def list_actions() -> set[str]:
    """Each kind that stands in the code of core, with its subject if it has one."""
    found = set()
    callees = re.compile("|".join(["describe_ending", "end_under_policy", *KIND_AT]))
    texts = map(Path.read_text, Path(sealpipe.__file__).parent.rglob("*.py"))
    for text in filter(callees.search, texts):  # others need not be parsed
        for each in ast.walk(ast.parse(text)):
            if not isinstance(each, ast.Call):
                continue
            name = (
                each.func.attr
                if isinstance(each.func, ast.Attribute)
                else getattr(each.func, "id", "")
            )
            words = [word.value if isinstance(word, ast.Constant) else None for word in each.args]
            if name == "describe_ending":
                found.add((words[1], words[2]))
            elif name == "end_under_policy":
                found.add((words[1], "request"))
            elif name in KIND_AT:
                found.add((words[KIND_AT[name]], ""))
    return {f"{kind} {subject}".rstrip() for kind, subject in found if kind is not None}


def test_every_action_of_the_code_has_its_operations() -> None:
    assert list_actions() == set(policy.OPERATIONS)
    assert {name.partition(" ")[0] for name in policy.OPERATIONS} == set(ACTIONS)
    assert {name for names in policy.OPERATIONS.values() for name in names} == set(CHANGES)


def send_under(session: Session, action: str, *operations: Operation[Any]) -> None:
    kind, _, subject = action.partition(" ")
    plan = OutgoingAction(kind, subject=subject)
    policy.run_under_policy(
        session, plan, lambda cleared: [cleared.send(each, 30.0) for each in operations]
    )


@pytest.mark.parametrize("action", policy.OPERATIONS)
def test_work_sends_the_operations_of_its_action_and_no_others(
    enforcing: Callable[[str], None], service: RunningService, action: str
) -> None:
    enforcing(ALLOWS_ALL)
    meant = policy.OPERATIONS[action]
    with Client(api_key=service.create_key(), **addresses_of(service)) as client:
        for name, operation in CHANGES.items():
            if name not in meant:
                with pytest.raises(PolicyError, match="the policy was not asked about this action"):
                    send_under(client.session, action, operation)
        assert service.seen() == []
        send_under(client.session, action, shares.list_page(), *(CHANGES[name] for name in meant))
    assert len(service.seen()) == 1 + len(meant)


def test_work_that_asks_again_may_send_the_second_action_only(
    enforcing: Callable[[str], None], service: RunningService
) -> None:
    enforcing(ALLOWS_ALL)

    def share_and_end(session: Session) -> None:
        send_under(session, "share", requests.delete("abc"))

    plan = OutgoingAction("expire", subject="request")
    with Client(api_key=service.create_key(), **addresses_of(service)) as client:
        with pytest.raises(PolicyError, match="was not asked"):
            policy.run_under_policy(client.session, plan, share_and_end)
        with pytest.raises(PolicyError, match="was not asked"):  # nor what lies between the two
            policy.run_under_policy(
                client.session,
                OutgoingAction("share"),
                lambda session: policy.run_under_policy(
                    session, plan, lambda _: session.send(requests.delete("a"), 9)
                ),
            )
    assert service.seen() == []


def test_a_share_that_would_also_end_a_request_sends_nothing(
    enforcing: Callable[[str], None], service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A send is planted in the work of a verb, behind its policy."""
    enforcing(ALLOWS_ALL)
    create = post._create

    def create_and_end(session: Session, posting: post.Posting, *, unclear: bool) -> CreatedShare:
        call(requests.delete("abc"), session.start_budget(), max_tries=1)
        return create(session, posting, unclear=unclear)

    monkeypatch.setattr(post, "_create", create_and_end)
    with (
        Client(api_key=service.create_key(), **addresses_of(service)) as client,
        pytest.raises(PolicyError, match="expire the request"),
    ):
        client.share(["text:x"])
    assert service.seen() == []


def test_a_python_caller_cannot_choose_another_service(
    service: RunningService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "machine.toml").write_text(fixed(service))
    monkeypatch.setattr("sealpipe.config.MACHINE_CONFIG", tmp_path / "machine.toml")
    with pytest.raises(PolicyError, match="this machine fixes base_url"):
        Client(
            api_key=service.create_key(),
            base_url="http://127.0.0.1:9/v1",
            link_base_url=service.link_base_url,
        )


ASKED = {
    "share": ["share", "-f", "text:x"],
    "request": ["request", "-a", "Password"],
    "collect": ["collect", "abc"],
    "shares": ["shares", "expire", "abc"],
    "requests": ["requests", "expire", "abc"],
    "tools": ["tools", "call", "share_stats"],
    "run": ["run", "-e", "X=text:x", "--", "true"],
    "read": ["read", "text:x"],
    "copy": ["copy", "text:x", "--to", "file:copied"],
    "webhooks": ["webhooks", "verify", "--secret-from", "text:x", "--signature", "text:x"],
}
"""One command of each that changes something at the service or hands on a secret; others are in the
tables above.
"""
EXEMPT = {
    "unseal", "stats", "resume", "doctor", "plugins", "custody", "rehearse", "rehearsal",
    "completion", "audit", "batch", "mcp", "server",
}  # fmt: skip
"""They read, ask no service, or (`server`) are one. `resume`, `unseal`, `batch` and `mcp` have
tests of their own.
"""


@pytest.mark.parametrize("name", ASKED)
def test_where_nothing_is_allowed_no_command_sends_anything(
    machine: Machine, service: RunningService, name: str
) -> None:
    machine.allow(lists() + "actions = []\n")
    assert_refused(machine.sealpipe(*ASKED[name]), service, "is not allowed")


BATCH = """
name = "vendors"
kind = "request"
key = "name"
row = [{name = "acme"}, {name = "bolt"}]

[request]
ask = ["Password"]
send = ["file:{name}.link"]
"""


def test_a_policy_is_asked_about_each_row_of_a_batch(
    machine: Machine, service: RunningService
) -> None:
    machine.user.file("vendors.toml", BATCH)
    assert_refused(
        machine.allow(lists() + "actions = []\n").sealpipe("batch", "run", "vendors.toml"),
        service,
        "not allowed",
    )
    done = machine.allow(lists() + 'actions = ["batch"]\n').sealpipe("batch", "run", "vendors.toml")
    assert (done.code, done.out) == (18, "vendors\t2 rows: 2 failed\n")
    assert done.err.count("is not allowed") >= 2
    assert [seen for seen in service.seen() if seen.method != "GET"] == []


def test_the_audit_log_has_each_row_of_a_batch(machine: Machine, service: RunningService) -> None:
    machine.user.file("vendors.toml", BATCH)
    done = machine.allow(ALLOWS_ALL, audit=True).sealpipe("batch", "run", "vendors.toml")
    assert done.code == 0, done
    outcomes = [json.loads(line)["outcome"] for line in machine.audit.read_text().splitlines()]
    assert outcomes.count("created") == 2
    assert [seen.target for seen in service.seen() if seen.method == "POST"] == ["/v1/requests"] * 2


def test_every_command_is_asked_about_or_exempt() -> None:
    assert set(COMMANDS) - EXEMPT == set(ASKED)


# -- names -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["vault", "Vault", "VAULT", "aws_sm", "AWS-SM", "k8s", "stdin"])
def test_no_store_bears_the_name_of_a_plugin_that_it_is_not_of(name: str) -> None:
    registry = Registry(environ={}, config=lambda: {"stores": {name: {"plugin": "env"}}})
    with pytest.raises(SettingError, match="has the name of the plugin"):
        registry.source_info(name)


def test_a_store_may_bear_the_name_of_its_own_plugin() -> None:
    registry = Registry(environ={}, config=lambda: {"stores": {"vault": {"plugin": "vault"}}})
    assert registry.identify("source", "vault") == "vault/vault"


PLAN = OutgoingAction(
    "share",
    sources=("vault/prod-db",),
    recipients=("work:a@example.com",),
    channels=("email/work",),
)


@pytest.mark.parametrize(
    ("rule", "allowed"),
    [
        ('sources = ["prod-*"]', True),
        ('sources = ["vault/*"]', True),
        ('sources = ["vault/prod-db"]', True),
        ('sources = ["env/*"]', False),
        ('sources = ["vault"]', False),
        ('sources = ["Vault/prod-db"]', False),
        ('recipients = ["work:*@example.com"]', True),
        ('recipients = ["email/work:*@example.com"]', True),
        ('recipients = ["email/*:*"]', True),
        ('recipients = ["email:*@example.com"]', False),
        ('recipients = ["*@example.com"]', True),
        ('recipients = ["*"]', True),
        ('recipients = ["*:*@example.org"]', False),
        ('recipients = ["slack/work:*"]', False),
        ('recipients = ["work:*@example.org"]', False),
    ],
)
def test_a_pattern_with_a_slash_is_of_plugin_and_store(
    tmp_path: Path, rule: str, *, allowed: bool
) -> None:
    (tmp_path / "policy.toml").write_text(rule)
    overseer = PolicyHook("policy", {"file": str(tmp_path / "policy.toml")})
    if allowed:
        Registry().check_outgoing([overseer], PLAN._replace(complete=False))
        Registry().check_outgoing([overseer], PLAN)
        return
    with pytest.raises(PolicyError):
        Registry().check_outgoing([overseer], PLAN)


def test_a_third_partys_plugin_in_a_built_in_ones_place_is_not_taken_for_it(tmp_path: Path) -> None:
    """Its names tell it: a pattern for `email` does not mean it, with or without a slash."""
    plan = OutgoingAction(
        "share", recipients=("email:a@example.com",), channels=("email@evil/email@evil",)
    )
    for pattern, allowed in (("email:*", False), ("email/email:*", False), ("email@evil:*", True)):
        (tmp_path / "policy.toml").write_text(f'recipients = ["{pattern}"]')
        overseer = PolicyHook("policy", {"file": str(tmp_path / "policy.toml")})
        for each in (plan, plan._replace(complete=False)):
            if allowed:
                Registry().check_outgoing([overseer], each)
            else:
                with pytest.raises(PolicyError):
                    Registry().check_outgoing([overseer], each)


def test_a_plugin_that_the_config_prefers_is_known_by_its_entry_point(site: Site) -> None:
    site.install("evil", PREFERRED)
    registry = Registry(environ={}, config=lambda: {"plugins": {"env": {"from": "evil"}}})
    assert registry.identify("source", "env") == "env@evil/env@evil"
    stores = {"plugins": {"env": {"from": "evil"}}, "stores": {"mine": {"plugin": "env"}}}
    assert (
        Registry(environ={}, config=lambda: stores).identify("source", "mine")
        == "env@evil/mine@evil"
    )


PREFERRED = """
from sealpipe.plugin import SourceInfo, hookimpl

@hookimpl
def sealpipe_sources(register):
    register(SourceInfo("env", "not the environment", factory="evil:Evil"))
"""


def test_a_store_does_not_bear_the_name_of_a_third_partys_plugin(
    site: Site, tmp_path: Path
) -> None:
    site.install("shelf", PREFERRED.replace('"env"', '"shelf"'))
    registry = Registry(environ={}, config=lambda: {"stores": {"shelf": {"plugin": "env"}}})
    (tmp_path / "policy.toml").write_text("")
    with pytest.raises(SettingError, match="has the name of the plugin shelf"):
        registry.check_outgoing(
            [PolicyHook("policy", {"file": str(tmp_path / "policy.toml")})], PLAN
        )


@pytest.mark.parametrize("loose", ["file", "folder"])
@pytest.mark.parametrize("enforced", [True, False])
def test_a_policy_that_everybody_may_write_or_replace_allows_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loose: str, *, enforced: bool
) -> None:
    file = tmp_path / "own" / "policy.toml"
    file.parent.mkdir(mode=0o755)
    file.write_text(ALLOWS_ALL)
    file.chmod(0o644)
    overseer = PolicyHook("policy", {"file": str(file)}, enforced=enforced)
    Registry().check_outgoing([overseer], PLAN)
    wrong = file if loose == "file" else file.parent
    wrong.chmod(0o777)
    with pytest.raises(NotConfiguredError, match="any user can write") as refused:
        Registry().check_outgoing([overseer], PLAN)
    assert refused.value.remedy == f"chmod {'go-w' if loose == 'file' else 'o-w'} {wrong}"
    if enforced:  # no variable makes a machine's policy one that the CI has put there
        monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(file.parent))
        with pytest.raises(NotConfiguredError, match="any user can write"):
            Registry().check_outgoing([overseer], PLAN)


def test_expiry_rules_are_for_what_is_made(tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text('longest_expiry = "1d"')
    overseer = PolicyHook("policy", {"file": str(tmp_path / "policy.toml")})
    Registry().check_outgoing([overseer], OutgoingAction("collect"))
    with pytest.raises(PolicyError):
        Registry().check_outgoing([overseer], OutgoingAction("request"))


HOOK = f"webhook:http://127.0.0.1:{silent_port()}"


@pytest.mark.parametrize(
    ("allowed", "code"),
    [(f"{HOOK}/*?token=c4nary*", 11), ("webhook:https*", 2)],
    ids=["allowed", "refused"],
)
def test_the_query_of_a_webhooks_address_is_for_the_policy_alone(
    machine: Machine, allowed: str, code: int
) -> None:
    """It may hold a token: no message, no audit line and no list of what is left has it."""
    machine.allow(lists(sources=["env"], recipients=[allowed]), audit=True)
    machine.user.environ["SEALPIPE_PLUGIN_WEBHOOK__SECRET"] = "s3cret"
    send = ["--send", f"{HOOK}/in/0123456789abcdef0?token=c4nary-token", "--deadline", "30s"]
    done = machine.sealpipe("share", "-f", "env:DB", *send)
    assert done.code == code, done
    listed = machine.sealpipe("resume", "--list", "--output", "json")
    told = [done.err, done.out, listed.out, listed.err, machine.audit.read_text()]
    assert [text for text in told if "c4nary" in text or "0123456789abcdef" in text] == []
    assert f"{HOOK}/in/***?***" in done.err
    assert f"{HOOK}/in/***?***" in machine.audit.read_text()
