"""The audit logs of many machines come together at a webhook: what arrives, what is lost, and what
`audit verify --collected` finds.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from sealpipe.client_base import registry
from sealpipe.errors import NotConfiguredError, PluginError
from sealpipe.registry.policies import send_audit
from sealpipe.registry.stores import PolicyHook
from sealpipe_plugins.audit import observer
from sealpipe_plugins.audit.collected import verify
from support.fake_web import Asked, FakeWeb, Reply, drop_after, hang
from support.ports import silent_port
from support.terminal import Terminal

KEY = b"0123456789abcdef-key"
TOKEN = "t0ken-of-the-collector"
LIMITS = dict(observer._SENDING_SECONDS)


class Collector(FakeWeb):
    """Stores what it accepts."""

    stored = b""

    def answer(self, asked: Asked) -> Reply:
        if asked.headers.get("authorization") not in (f"Bearer {TOKEN}", f"Splunk {TOKEN}"):
            return Reply(401)
        self.stored += asked.body
        return Reply(204)


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as running:
        yield running


@pytest.fixture(autouse=True)
def a_process_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("heads", "unsent", "_retry_at"):
        monkeypatch.setattr(observer, name, {})
    monkeypatch.setattr(observer, "_SENDING_SECONDS", {False: 30.0, True: 30.0})  # a busy machine


class Machine:
    """A machine with a log of its own, and who writes it."""

    def __init__(self, here: Path, collector: FakeWeb, **webhook: Any) -> None:
        here.mkdir(exist_ok=True)
        (here / "key").write_bytes(KEY)
        (here / "token").write_text(TOKEN + "\n")
        self.log = here / "audit.jsonl"
        self.table: dict[str, Any] = {
            "file": str(self.log),
            "key": f"file:{here}/key",
            "webhook": {"url": collector.base_url, "token": f"file:{here}/token", **webhook},
        }

    def note(self, number: int = 1, **event: Any) -> None:
        plugins = registry()
        for each in range(number):
            told: Mapping[str, Any] = {"event": "share", "number": each, "time": "T", **event}
            plugins.notify_observers([PolicyHook("audit", self.table)], told)
        plugins.close()

    def send(self) -> list[tuple[Path, int]]:
        return list(send_audit([PolicyHook("audit", self.table)], registry().make_context))


@pytest.fixture
def machine(tmp_path: Path, collector: Collector) -> Machine:
    return Machine(tmp_path / "one", collector)


@pytest.fixture
def breaks(tmp_path: Path) -> Callable[[bytes], list[tuple[int, str]]]:
    def find(stored: bytes) -> list[tuple[int, str]]:
        file = tmp_path / "collected.jsonl"
        file.write_bytes(stored)
        return verify(file, KEY).findings

    return find


def test_lines_arrive_as_they_are_in_the_log(machine: Machine, collector: Collector) -> None:
    machine.note(3)
    assert collector.stored == machine.log.read_bytes()
    assert len(collector.asked) == 3
    assert {each.headers["content-type"] for each in collector.asked} == {"application/x-ndjson"}
    assert observer.unsent == {}
    streams = {json.loads(line)["stream"] for line in collector.stored.splitlines()}
    assert len(streams) == 1


def test_a_token_with_a_scheme_of_its_own_is_the_whole_header(
    machine: Machine, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLLECTOR_TOKEN", f"Splunk {TOKEN}")
    machine.table["webhook"]["token"] = "env:COLLECTOR_TOKEN"
    machine.note()
    assert [each.headers["authorization"] for each in collector.asked] == [f"Splunk {TOKEN}"]


def test_what_it_did_not_accept_is_sent_with_the_next_line(
    machine: Machine, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observer, "_RETRY_AFTER", 0.0)
    collector.instead = [Reply(503), Reply(500)]
    machine.note(2)
    assert "failed (500)" in observer.unsent[machine.log]
    assert collector.stored == b""
    machine.note()
    assert observer.unsent == {}
    assert collector.stored == machine.log.read_bytes()


def test_one_that_is_down_is_left_alone_for_a_while(machine: Machine, collector: Collector) -> None:
    collector.rule = lambda _: Reply(503)
    machine.note(5)
    assert len(collector.asked) == 1
    assert len(machine.log.read_bytes().splitlines()) == 5


HOSTILE: dict[str, Any] = {
    "hangs": hang,
    "answers without an end": Reply(200, b"x" * 100, endless=True),
    "answers too much": Reply(200, b"x" * 1_000_000),
    "redirects": Reply(307, headers={"location": "http://127.0.0.1:9/elsewhere"}),
    "refuses the token": Reply(401, f"Bearer {TOKEN}"),
    "is somewhere else": Reply(404),
    "has no room": Reply(413),
}


@pytest.mark.parametrize("required", [False, True])
@pytest.mark.parametrize("way", HOSTILE)
def test_a_command_goes_on_unless_it_is_required(
    tmp_path: Path,
    collector: Collector,
    monkeypatch: pytest.MonkeyPatch,
    way: str,
    *,
    required: bool,
) -> None:
    if way in ("hangs", "answers without an end"):
        monkeypatch.setattr(observer, "_SENDING_SECONDS", {False: 0.5, True: 0.5})
    machine = Machine(tmp_path / "one", collector, required=required)
    collector.instead = [HOSTILE[way]]
    if required:
        with pytest.raises(PluginError) as refused:
            machine.note()
        told = refused.value.message
    else:
        machine.note()
        told = observer.unsent[machine.log]
    assert f"127.0.0.1:{collector.port}" in told or "webhook" in told
    assert TOKEN not in told
    assert machine.send() == [(machine.log, 1)]
    assert collector.stored.splitlines()[-1:] == machine.log.read_bytes().splitlines()


def test_a_command_is_held_for_two_seconds_at_most() -> None:
    assert LIMITS == {False: 2.0, True: 10.0}


def test_one_that_answers_a_byte_at_a_time_holds_nobody(
    tmp_path: Path, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observer, "_SENDING_SECONDS", {False: 0.5, True: 0.5})
    machine = Machine(tmp_path / "one", collector)
    ended = threading.Event()

    def drip(listener: socket.socket) -> None:
        line, _ = listener.accept()
        with line, suppress(OSError):
            line.sendall(b"HTTP/1.1 200 OK\r\nX-Filler: ")
            while not ended.wait(0.05):
                line.sendall(b"x")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        machine.table["webhook"]["url"] = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        thread = threading.Thread(target=drip, args=(listener,), daemon=True)
        thread.start()
        machine.note()
        assert "did not respond in time" in observer.unsent[machine.log]
        ended.set()
        thread.join()


def test_a_lost_answer_sends_lines_once_more_which_is_no_break(
    machine: Machine, collector: Collector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observer, "_RETRY_AFTER", 0.0)
    collector.instead = [drop_after]
    machine.note(2)
    stored = tmp_path / "stored"
    stored.write_bytes(collector.stored)
    seen = verify(stored, KEY)
    assert (seen.lines, seen.repeated, seen.findings) == (3, 1, [])


def two_machines(tmp_path: Path, collector: Collector, patch: pytest.MonkeyPatch) -> list[bytes]:
    for name in ("build-1", "build-2"):
        patch.setattr(observer, "gethostname", lambda name=name: name)
        Machine(tmp_path / name, collector).note(3)
    return collector.stored.splitlines(keepends=True)


def test_each_machine_has_a_chain_in_what_was_collected(
    tmp_path: Path, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = two_machines(tmp_path, collector, monkeypatch)
    file = tmp_path / "collected.jsonl"
    for mixed in (lines, lines[::-1], [*lines[::2], *lines[1::2]]):
        file.write_bytes(b"\n".join(mixed))  # with blank lines, as some receivers have them
        seen = verify(file, KEY)
        assert seen.findings == []
        assert sorted((each.machine, len(each.lines)) for each in seen.chains.values()) == [
            ("build-1", 3),
            ("build-2", 3),
        ]
    head = next(iter(seen.chains.values())).head
    assert verify(file, KEY, head).findings == []
    assert "do not hold" in verify(file, KEY, "4:" + "a" * 64).findings[0][1]


ATTACKS: dict[str, tuple[Callable[[list[bytes]], list[bytes]], str]] = {
    "removed": (lambda old: [*old[:4], old[5]], "comes after 1 line not here"),
    "the first ones removed": (lambda old: [*old[:3], old[5]], "comes after 2 lines not here"),
    "changed": (lambda old: [*old[:5], old[5].replace(b"share", b"shore")], "was changed"),
    "added": (lambda old: [*old, b'{"event":"share"}\n'], "is not a line of an audit log"),
    "cut": (lambda old: [*old[:5], old[5][:100]], "is not a line of an audit log"),
}


@pytest.mark.parametrize("way", ATTACKS)
def test_what_is_missing_or_changed_is_found_and_whose_it_is(
    tmp_path: Path,
    collector: Collector,
    monkeypatch: pytest.MonkeyPatch,
    breaks: Callable[[bytes], list[tuple[int, str]]],
    way: str,
) -> None:
    lines = two_machines(tmp_path, collector, monkeypatch)
    attack, says = ATTACKS[way]
    found = breaks(b"".join(attack(lines)))
    assert says in found[0][1]
    if way not in ("added", "cut"):  # those lines no longer say whose they are
        assert "of build-2" in found[0][1]


REPLACED: dict[str, Callable[[bytes], bytes]] = {
    "changed": lambda line: line.replace(b"share", b"shore"),
    "its mark broken": lambda line: line.replace(b'"mac":"', b'"mac":"x'),
}


@pytest.mark.parametrize("way", REPLACED)
def test_a_changed_line_is_not_told_as_missing(
    tmp_path: Path,
    collector: Collector,
    monkeypatch: pytest.MonkeyPatch,
    breaks: Callable[[bytes], list[tuple[int, str]]],
    way: str,
) -> None:
    lines = two_machines(tmp_path, collector, monkeypatch)
    lines[4] = REPLACED[way](lines[4])
    ((number, what),) = breaks(b"".join(lines))
    assert number == 5
    assert "it says that it is number 2 of the chain" in what
    assert what.endswith("of build-2")
    only_missing = breaks(b"".join([*lines[:3], *lines[4:]]))
    assert [number for number, _ in only_missing] == [4, 5]
    assert only_missing[1][1].startswith("comes after 1 line not here")


def test_a_chain_that_names_two_machines_is_told(
    tmp_path: Path, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("build-1", "build-2"):
        monkeypatch.setattr(observer, "gethostname", lambda name=name: name)
        Machine(tmp_path / "one", collector).note(2)
    file = tmp_path / "collected.jsonl"
    file.write_bytes(collector.stored)
    seen = verify(file, KEY)
    assert seen.findings == []
    ((number, what),) = seen.remarks
    assert number == 3
    assert what.startswith("names the machine build-2, other lines of the chain")
    assert "name build-1" in what
    (chain,) = seen.chains.values()
    assert chain.machine == "build-1, build-2"


def test_a_log_that_was_cut_off_and_continued_is_found(
    machine: Machine, collector: Collector, breaks: Callable[[bytes], list[tuple[int, str]]]
) -> None:
    machine.note(3)
    lines = machine.log.read_bytes().splitlines(keepends=True)
    machine.log.write_bytes(b"".join(lines[:2]))
    machine.note(1, title="another")
    found = breaks(collector.stored)
    assert any("its log was cut off and continued" in what for _, what in found)


def test_a_new_file_begins_a_chain_of_its_own(
    machine: Machine, collector: Collector, breaks: Callable[[bytes], list[tuple[int, str]]]
) -> None:
    machine.note(2)
    machine.log.rename(machine.log.with_suffix(".1"))
    machine.note(2)
    assert len({json.loads(line)["stream"] for line in collector.stored.splitlines()}) == 2
    assert breaks(collector.stored) == []


def test_a_truncated_line_is_not_sent(
    machine: Machine, collector: Collector, breaks: Callable[[bytes], list[tuple[int, str]]]
) -> None:
    machine.note(2)
    with machine.log.open("ab") as file:
        file.write(b'{"event":"sha')
    machine.note(1)
    assert len(collector.stored.splitlines()) == 3
    assert breaks(collector.stored) == []


def test_processes_that_log_at_once_send_each_line_once_and_in_order(
    machine: Machine, collector: Collector
) -> None:
    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(machine.note, 5) for _ in range(8)]:
            done.result()
    machine.send()
    assert collector.stored == machine.log.read_bytes()
    assert len(collector.stored.splitlines()) == 40


def test_much_is_sent_in_several_posts(machine: Machine, collector: Collector) -> None:
    url, machine.table["webhook"] = machine.table["webhook"], {"url": "http://127.0.0.1:9/"}
    machine.note(30, title="x" * 40_000)
    machine.table["webhook"] = url
    assert machine.send() == [(machine.log, 30)]
    assert len(collector.asked) > 1
    assert collector.stored == machine.log.read_bytes()
    assert machine.send() == [(machine.log, 0)]


def test_how_far_it_is_has_the_permissions_of_the_log(machine: Machine) -> None:
    machine.log.touch(0o600)
    machine.log.chmod(0o660)
    machine.note()
    sent = machine.log.with_name("audit.jsonl.sent")
    assert sent.stat().st_mode & 0o777 == 0o660
    assert sent.stat().st_gid == machine.log.stat().st_gid
    sent.write_bytes(b"[" * 5000)  # nonsense: everything is sent again
    assert machine.send() == [(machine.log, 1)]


def test_how_far_it_is_is_never_written_through_a_symbolic_link(
    machine: Machine, tmp_path: Path
) -> None:
    machine.log.with_name("audit.jsonl.sent").symlink_to(tmp_path / "victim")
    machine.note()
    assert not (tmp_path / "victim").exists()
    assert "audit.jsonl.sent" in observer.unsent[machine.log]


@pytest.mark.parametrize(
    ("webhook", "says"),
    [
        ({}, "needs `url`"),
        ({"url": 1}, "needs `url`"),
        ({"url": "https://x.example", "required": "yes"}, "true or false"),
        ({"url": "https://x.example", "tokens": "x"}, "unknown setting"),
        ({"url": "https://x.example", "token": "Bearer x"}, "write file:/PATH or env:NAME"),
        ({"url": "https://x.example", "token": "env:NOT_SET_ANYWHERE"}, "is empty, or not set"),
        ("https://x.example", "needs `url`"),
        ({"url": "https://["}, "no valid address"),
        ({"url": "logs.example.com/x"}, "no valid address"),
    ],
)
def test_a_wrong_setting_lets_nothing_happen(machine: Machine, webhook: Any, says: str) -> None:
    machine.table["webhook"] = webhook
    with pytest.raises(NotConfiguredError, match=says):
        machine.note()


def test_an_address_without_tls_is_refused(machine: Machine) -> None:
    machine.table["webhook"] = {"url": "http://logs.example.com/x?token=canary", "required": True}
    with pytest.raises(NotConfiguredError, match="must be an https address") as refused:
        machine.note()
    assert "canary" not in refused.value.message


def write_config(user: Terminal, machine: Machine, **webhook: Any) -> dict[str, str]:
    settings = {**machine.table["webhook"], **webhook}
    rows = [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
    text = f'[audit]\nfile = "{machine.log}"\nkey = "{machine.table["key"]}"\n[audit.webhook]\n'
    return {"SEALPIPE_CONFIG": str(user.file("webhook.toml", text + "\n".join(rows) + "\n"))}


def test_commands_send_the_log_and_verify_finds_it_whole(
    user: Terminal, machine: Machine, collector: Collector
) -> None:
    config = write_config(user, machine)
    assert user.sealpipe("share", "text:x", **config).code == 0
    stored = user.file("collected.jsonl", collector.stored.decode())
    key = machine.table["key"]
    done = user.sealpipe("audit", "verify", "--collected", str(stored), "--key", key, **config)
    assert done.code == 0, done
    assert done.out.startswith("2 lines, 0 repeated, of 1 chain on 1 machine; none")
    words = ("--collected", str(stored), "--key", key, "--output", "json")
    told = json.loads(user.sealpipe("audit", "verify", *words, **config).out)
    assert [each["lines"] for each in told["chains"]] == [2]
    stored.write_bytes(b"".join(collector.stored.splitlines(keepends=True)[1:]))
    done = user.sealpipe("audit", "verify", "--collected", str(stored), "--key", key, **config)
    assert done.code == 13
    assert "comes after 1 line not here, in the chain" in done.err
    summary, chain = done.out.splitlines()
    assert summary == "1 line, 0 repeated, of 1 chain on 1 machine; 1 finding"
    assert "\t1 line\t" in chain
    told = user.sealpipe("audit", "verify", *words, **config)
    assert (told.code, told.error["type"]) == (13, "AuditError")
    assert [each["line"] for each in told.json["findings"]] == [1]
    assert [each["lines"] for each in told.json["chains"]] == [1]


def test_while_it_is_down_a_command_says_so_and_audit_send_catches_up(
    user: Terminal, machine: Machine, collector: Collector
) -> None:
    down = write_config(user, machine, url=f"http://127.0.0.1:{silent_port()}/")
    done = user.sealpipe("share", "text:x", **down)
    assert done.code == 0, done
    assert "is not sent yet: the audit's webhook at 127.0.0.1" in done.err
    assert user.sealpipe("audit", "send", **down).code == 14
    up = write_config(user, machine)
    done = user.sealpipe("audit", "send", **up)
    assert (done.code, done.out) == (0, f"{machine.log}: 2 lines sent\n")
    assert collector.stored == machine.log.read_bytes()
    told = json.loads(user.sealpipe("audit", "send", "--output", "json", **up).out)
    assert told["logs"] == [{"file": str(machine.log), "lines": 0}]


def test_nothing_is_shared_while_a_required_one_is_down(user: Terminal, machine: Machine) -> None:
    down = write_config(user, machine, url=f"http://127.0.0.1:{silent_port()}/", required=True)
    done = user.sealpipe("share", "text:x", **down)
    assert done.code == 14, done
    assert "the audit's webhook" in done.err
    assert json.loads(user.sealpipe("shares", "list", "--output", "json").out)["shares"] == []


def test_audit_send_without_a_webhook_says_what_to_set(user: Terminal) -> None:
    done = user.sealpipe("audit", "send")
    assert done.code == 2
    assert "[audit.webhook]" in done.err


def test_the_log_alone_loads_no_http_client(user: Terminal) -> None:
    """A log without a webhook costs no more than before."""
    code = (
        "import sys\nfrom sealpipe.client_base import registry\n"
        "from sealpipe.registry.stores import PolicyHook\n"
        f"hook = PolicyHook('audit', {{'file': '{user.here}/audit.jsonl'}})\n"
        "registry().notify_observers([hook], {'event': 'share'})\n"
        "sys.exit('httpx' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
