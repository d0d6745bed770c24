"""The audit log is a chain: what is changed, removed, added or cut off is found, and where it
is.
"""

from __future__ import annotations

import base64
import json
import multiprocessing
import os
import re
import resource
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from sealpipe.errors import NotConfiguredError, PluginError
from sealpipe.registry import Registry
from sealpipe.registry.stores import PolicyHook
from sealpipe_plugins.audit import chain
from sealpipe_plugins.audit.verify import verify
from sealpipe_rehearsal.running_service import RunningService
from support.distributions import ALLOWS_ALL, Machine, lists
from support.terminal import Terminal

KEY = "0123456789abcdef-key"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "audit.jsonl"


@pytest.fixture
def key(tmp_path: Path) -> Path:
    file = tmp_path / "audit.key"
    file.write_text(KEY + "\n")
    return file


def write(log: Path, number: int = 1, *, required: bool = True, **config: Any) -> None:
    overseer = PolicyHook("audit", {"file": str(log), "required": required, **config})
    for each in range(number):
        Registry().notify_observers([overseer], {"event": "share", "number": each, "title": "T"})


def lines(log: Path) -> list[bytes]:
    return log.read_bytes().splitlines(keepends=True)


def found(
    log: Path, key: bytes | None = KEY.encode(), head: str | None = None
) -> list[tuple[int, str]]:
    return verify(log, key, head).findings


def test_lines_hold_the_mark_of_the_line_before(log: Path, key: Path) -> None:
    write(log, 3, key=f"file:{key}")
    told = [json.loads(line) for line in lines(log)]
    assert [each["seq"] for each in told] == [1, 2, 3]
    assert [each["prev"] for each in told] == [chain.FIRST_PREV, told[0]["mac"], told[1]["mac"]]
    seen = verify(log, KEY.encode())
    assert (seen.lines, seen.head, seen.findings, seen.remarks) == (
        3,
        f"3:{told[2]['mac']}",
        [],
        [],
    )


def changed(found: list[bytes]) -> list[bytes]:
    return [found[0], found[1].replace(b'"T"', b'"U"'), *found[2:]]


def forged(found: list[bytes]) -> list[bytes]:
    """By somebody who knows the format and not the key."""
    link = chain.parse_line(found[1].rstrip(b"\n"))
    assert link is not None
    body = link.body.replace(b'"T"', b'"U"')
    mac = chain.compute_mac(body, b"some other key, of 16")
    return [found[0], body[:-1] + f',"mac":"{mac}"}}\n'.encode(), *found[2:]]


ATTACKS: dict[str, tuple[Any, int, str]] = {
    "changed": (changed, 2, "was changed"),
    "changed, and marked anew": (forged, 2, "was changed"),
    "removed": (lambda old: [old[0], *old[2:]], 2, "comes after 1 line that were removed"),
    "the first one removed": (lambda old: old[1:], 1, "comes after 1 line that were removed"),
    "added": (
        lambda old: [old[0], b'{"event":"share"}\n', *old[1:]],
        2,
        "is not a line of the chain",
    ),
    "added at the end": (
        lambda old: [*old, b'{"event":"share"}\n'],
        6,
        "is not a line of the chain",
    ),
    "repeated": (lambda old: [old[0], old[0], *old[1:]], 2, "is duplicated"),
    "in another order": (lambda old: [old[1], old[0], *old[2:]], 1, "removed"),
    "blank lines": (lambda old: [old[0], b"\n", *old[1:]], 2, "is not a line of the chain"),
}


@pytest.mark.parametrize("way", ATTACKS)
def test_verify_finds_what_was_done_to_a_log(log: Path, key: Path, way: str) -> None:
    write(log, 5, key=f"file:{key}")
    attack, number, says = ATTACKS[way]
    log.write_bytes(b"".join(attack(lines(log))))
    assert found(log)[0][0] == number
    assert says in found(log)[0][1]


def test_only_the_head_tells_of_a_tail_that_was_cut_off(log: Path, key: Path) -> None:
    write(log, 5, key=f"file:{key}")
    head = verify(log, KEY.encode()).head
    write(log, 2, key=f"file:{key}")
    assert found(log, head=head) == []
    log.write_bytes(b"".join(lines(log)[:3]))
    assert found(log) == []
    assert found(log, head=head) == [(4, "and what followed is missing: 2 lines cut off")]
    write(log, 4, key=f"file:{key}")
    assert "this is a different chain" in found(log, head=head)[0][1]


def test_a_log_that_was_emptied_is_found_by_its_head(log: Path) -> None:
    write(log, 2)
    head = verify(log, None).head
    log.write_bytes(b"")
    assert "2 lines cut off" in found(log, None, head)[0][1]
    write(log, 2)
    assert found(log, None) == []


def test_without_a_key_a_whole_chain_can_be_forged_and_the_head_tells(log: Path) -> None:
    write(log, 3)
    head = verify(log, None).head
    log.unlink()
    overseer = PolicyHook("audit", {"file": str(log)})
    for _ in range(3):
        Registry().notify_observers([overseer], {"event": "nothing"})
    assert found(log, None) == []
    assert found(log, None, head) != []


def test_lines_of_another_key_or_of_none_are_found(log: Path, key: Path) -> None:
    write(log, 1, key=f"file:{key}")
    write(log, 1)
    write(log, 1, key=f"file:{key}")
    assert found(log) == [(2, "is not protected by the key: it was written without one, or forged")]
    assert found(log, None) == [
        (1, "cannot be verified without its key"),
        (3, "cannot be verified without its key"),
    ]
    other_key = found(log, b"another-key-of-16-bytes")
    assert other_key[0] == (1, "was changed, or written under another key")


@pytest.mark.parametrize("cut", [1, 40, 200])
def test_a_line_that_was_cut_off_does_not_spoil_the_chain(log: Path, key: Path, cut: int) -> None:
    write(log, 3, key=f"file:{key}")
    log.write_bytes(log.read_bytes()[:-cut])
    seen = verify(log, KEY.encode())
    assert seen.findings == []
    assert [number for number, _ in seen.remarks] == ([3] if cut > 1 else [])
    write(log, 2, key=f"file:{key}")
    seen = verify(log, KEY.encode())
    assert seen.findings == []
    assert seen.remarks == (
        [] if cut == 1 else [(3, "was truncated while it was written, as line 4 records")]
    )
    if cut > 1:
        log.write_bytes(b"".join([*lines(log)[:2], *lines(log)[3:]]))
        assert "which was removed" in found(log)[0][1]


def test_the_next_line_after_something_strange_goes_on_with_the_chain(log: Path, key: Path) -> None:
    write(log, 2, key=f"file:{key}")
    with log.open("a") as file:
        file.write("somebody was here\n")
    write(log, 2, key=f"file:{key}")
    assert found(log) == [(3, "is not a line of the chain: it was changed or added")]


@pytest.mark.parametrize("number", ["9" * 4300, "-" + "9" * 4300, str(2**63), "0"])
def test_an_invalid_line_number_is_reported_and_breaks_nothing(log: Path, number: str) -> None:
    write(log, 1)
    for each in (number.removeprefix("-"), number):
        body = f'{{"seq":{each},"prev":"","chain":"sha256"}}'.encode()
        with log.open("ab") as file:
            file.write(body[:-1] + f',"mac":"{chain.compute_mac(body, None)}"}}\n'.encode())
    assert [at for at, _ in found(log, None)] == [2, 3]
    write(log, 1)
    assert json.loads(lines(log)[-1])["seq"] == 2


def test_a_log_without_a_line_of_ours_is_read_in_little_room(log: Path) -> None:
    import tracemalloc

    log.write_bytes((b"x" * 1023 + b"\n") * 30_000 + b"y" * 8 * 1024 * 1024 + b"\n" * 30_000)
    tracemalloc.start()
    try:
        assert len(found(log, None)) == 1000
        assert tracemalloc.get_traced_memory()[1] < 8 * 1024 * 1024
    finally:
        tracemalloc.stop()


def test_a_disk_without_room_leaves_no_half_line(log: Path) -> None:
    write(log, 2)
    before = log.read_bytes()
    process = multiprocessing.get_context("fork").Process(
        target=_cramped, args=(log, len(before) + 100)
    )
    process.start()
    process.join()
    assert process.exitcode == 7
    assert log.read_bytes() == before


def _cramped(log: Path, size: int) -> None:
    import signal

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    try:
        write(log)
    except PluginError:
        os._exit(7)
    os._exit(0)


def test_many_processes_write_one_chain(log: Path, key: Path) -> None:
    context = multiprocessing.get_context("fork")
    writers = [
        context.Process(target=write, args=(log, 25), kwargs={"key": f"file:{key}"})
        for _ in range(6)
    ]
    for each in writers:
        each.start()
    for each in writers:
        each.join()
    seen = verify(log, KEY.encode())
    assert (seen.lines, seen.findings, seen.remarks) == (150, [], [])


def test_a_writer_waits_no_longer_than_it_has_patience(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    # As the registry imports it: a test that imports modules afresh leaves another one as the
    # package's attribute.
    observer = import_module("sealpipe_plugins.audit.observer")
    monkeypatch.setattr(observer, "_LOCK_TIMEOUT", 0.2)
    write(log)
    with log.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(PluginError, match="another process holds its lock"):
            write(log)
        write(log, required=False)
    assert len(lines(log)) == 1


def test_a_line_is_never_longer_than_what_is_read_of_the_end(log: Path) -> None:
    overseer = PolicyHook("audit", {"file": str(log), "required": True})
    for _ in range(2):
        Registry().notify_observers([overseer], {"event": "share", "labels": ["ä" * 500] * 20_000})
    assert max(map(len, lines(log))) <= chain.MAX_LINE
    assert json.loads(lines(log)[0])["left_out"] == {"labels": 19_950}
    assert found(log, None) == []


def test_an_event_that_fits_into_a_line_is_whole(log: Path) -> None:
    overseer = PolicyHook("audit", {"file": str(log), "required": True})
    labels = [f"{number} {'x' * 300}" for number in range(60)]
    Registry().notify_observers([overseer], {"event": "share", "labels": labels})
    assert json.loads(lines(log)[0])["labels"] == labels


def test_a_log_that_is_put_aside_begins_anew(log: Path) -> None:
    write(log, 2)
    log.rename(log.with_suffix(".1"))
    write(log, 2)
    assert found(log, None) == found(log.with_suffix(".1"), None) == []
    assert json.loads(lines(log)[0])["seq"] == 1


@pytest.mark.parametrize("file", ["/dev/null", "/dev/full"])
def test_a_log_is_a_regular_file(file: str) -> None:
    with pytest.raises(PluginError, match="cannot be written"):
        write(Path(file))


@pytest.mark.parametrize(
    "reference", ["env:SHORT", "env:NOBODYS", "file:audit.key", "file:/nowhere/key", "text:x", 7]
)
def test_a_key_that_cannot_be_used_is_an_error(
    log: Path, monkeypatch: pytest.MonkeyPatch, reference: object
) -> None:
    monkeypatch.setenv("SHORT", "123456789012345")
    with pytest.raises(NotConfiguredError, match="key"):
        write(log, key=reference, required=False)
    assert not log.exists()


# -- the command line --------------------------------------------------------------------------


def head_of(err: str) -> str:
    told = re.search(r"^audit: \S+ head (\S+)$", err, re.MULTILINE)
    assert told is not None, err
    return told[1]


def audited(user: Terminal, **config: str) -> dict[str, str]:
    more = "".join(f'{name} = "{value}"\n' for name, value in config.items())
    user.file("config.toml", f'[audit]\nfile = "{user.here}/audit.jsonl"\nrequired = true\n{more}')
    return {"SEALPIPE_CONFIG": str(user.here / "config.toml"), "AUDIT_KEY": KEY}


@pytest.mark.parametrize("keyed", [True, False])
def test_every_run_tells_the_head_and_verify_takes_it(user: Terminal, *, keyed: bool) -> None:
    config = audited(user, **({"key": "env:AUDIT_KEY"} if keyed else {}))
    done = user.sealpipe("share", "-f", "text:x", **config)
    assert (done.code, done.out.count("\n")) == (0, 1)
    head = head_of(done.err)
    assert user.sealpipe("shares", "list", **config).err == ""
    checked = user.sealpipe("audit", "verify", "audit.jsonl", "--head", head, **config)
    assert (checked.code, checked.out) == (
        0,
        f"2 lines, none changed, removed or added; head {head}\n",
    )
    assert ("not protected by a key" in checked.err) is not keyed
    told = user.sealpipe("audit", "verify", "audit.jsonl", "--output", "json", **config).json
    assert (told["lines"], told["head"], told["keyed"]) == (2, head, keyed)
    log = user.here / "audit.jsonl"
    log.write_bytes(lines(log)[0])
    cut = user.sealpipe(
        "audit", "verify", "audit.jsonl", "--head", head, "--output", "json", **config
    )
    assert (cut.code, cut.out, cut.error["type"]) == (13, "", "AuditError")
    assert "line 2 and what followed is missing: 1 line cut off" in cut.error["message"]


def test_the_head_is_printed_even_if_a_command_fails(user: Terminal) -> None:
    config = audited(user) | {"SEALPIPE_API_KEY": "svc_sk_live_" + "x" * 16 + "." + "A" * 43}
    done = user.sealpipe("share", "-f", "text:x", "--output", "json", **config)
    assert (done.code, done.error["type"]) == (3, "AuthenticationError")
    assert head_of(done.err).startswith("2:")


def test_verify_without_the_key_does_not_pass(user: Terminal) -> None:
    config = audited(user, key="env:AUDIT_KEY")
    assert user.sealpipe("share", "-f", "text:x", **config).code == 0
    for words in ([], ["--collected"], ["--output", "json"]):
        refused = user.sealpipe("audit", "verify", "audit.jsonl", *words)
        assert (refused.code, refused.out) == (2, "")
        assert "is protected by a key, and cannot be verified without it" in refused.err
        assert "--key file:/PATH" in refused.err
        assert "changed" not in refused.err
    assert (
        user.sealpipe(
            "audit", "verify", "audit.jsonl", "--key", "env:AUDIT_KEY", AUDIT_KEY=KEY
        ).code
        == 0
    )
    assert user.sealpipe("audit", "verify", "nowhere.jsonl").code == 2
    assert user.sealpipe("audit", "verify", "audit.jsonl", "--head", "12").code == 2
    unset = user.sealpipe("audit", "verify", "audit.jsonl", "--key", "env:AUDIT_KEY")
    assert (unset.code, unset.out) == (14, "")
    assert "the audit's key is missing: env:AUDIT_KEY is empty, or not set" in unset.err


def test_lines_that_need_a_key_are_told_as_that(user: Terminal) -> None:
    for key in ({}, {"key": "env:AUDIT_KEY"}):
        assert user.sealpipe("share", "-f", "text:x", **audited(user, **key)).code == 0
    done = user.sealpipe("audit", "verify", "audit.jsonl")
    assert done.code == 13
    assert "line 3 cannot be verified without its key" in done.err
    assert "give the key with --key" in done.err
    assert "was changed" not in done.err


@pytest.mark.parametrize("key", ["/etc/audit.key", "file:audit.key", "file:/nowhere"])
def test_a_wrong_key_option_is_named(user: Terminal, key: str) -> None:
    user.file("audit.jsonl", "")
    done = user.sealpipe("audit", "verify", "audit.jsonl", "--key", key)
    assert (done.code, done.out) == (14, "")
    assert "correct --key" in done.err
    assert "[audit]" not in done.err
    named = user.sealpipe("audit", "verify", "audit.jsonl", **audited(user, key=key))
    assert "correct `key` in [audit]" in named.err


@pytest.mark.parametrize("words", [[], ["--collected"]])
def test_a_file_without_a_line_is_told_as_that(user: Terminal, words: list[str]) -> None:
    user.file("audit.jsonl", "")
    done = user.sealpipe("audit", "verify", "audit.jsonl", *words)
    assert (done.code, done.err) == (0, "the file has no line: there was nothing to verify\n")


def test_verify_without_a_head_says_what_it_cannot_find(user: Terminal) -> None:
    config = audited(user, key="env:AUDIT_KEY")
    assert user.sealpipe("share", "-f", "text:x", **config).code == 0
    log = user.here / "audit.jsonl"
    log.write_bytes(lines(log)[0])
    done = user.sealpipe("audit", "verify", "audit.jsonl", **config)
    assert (done.code, done.err) == (0, "lines cut off at the end do not show without --head\n")
    head = re.search(r"[0-9]+:[0-9a-f]{64}", done.out)
    assert head is not None
    again = user.sealpipe("audit", "verify", "audit.jsonl", "--head", head[0], **config)
    assert (again.code, again.err) == (0, "")


def test_verify_says_what_is_wrong_and_nothing_of_what_it_cannot_find(user: Terminal) -> None:
    config = audited(user, key="env:AUDIT_KEY")
    assert user.sealpipe("share", "-f", "text:x", **config).code == 0
    log = user.here / "audit.jsonl"
    log.write_bytes(lines(log)[1])
    done = user.sealpipe("audit", "verify", "audit.jsonl", **config)
    assert done.code == 13
    assert "--head" not in done.err


@pytest.mark.parametrize(
    "words",
    [
        ["shares", "expire", "abc"],
        ["requests", "expire", "abc"],
        ["requests", "purge", "abc", "--confirm", "abc"],
        ["collect", "abc"],
        ["tools", "call", "share_stats"],
    ],
)
def test_whatever_is_done_is_written_down_before_and_after(
    user: Terminal, words: list[str]
) -> None:
    config = audited(user)
    user.sealpipe(*words, **config)
    first, *rest = [json.loads(line) for line in lines(user.here / "audit.jsonl")]
    kind = {"tools": "tool", "collect": "collect"}.get(words[0], words[1])
    assert (first["event"], first["outcome"]) == (kind, "begun")
    assert len(rest) == 1
    assert rest[0]["outcome"] not in ("begun", "sending")


def test_what_a_policy_refuses_is_written_down(user: Terminal, service: RunningService) -> None:
    machine = Machine(user).allow(lists(), audit=True)
    assert machine.sealpipe("share", "-f", "env:DB", "--title", "T", DB="c4nary").code == 2
    (line,) = [json.loads(each) for each in lines(machine.audit)]
    assert (line["event"], line["outcome"], line["sources"]) == ("share", "refused", ["env/env"])
    assert "the source env/env is not allowed" in line["reason"]
    assert service.seen() == []


def test_a_request_that_collecting_ends_has_its_own_lines_before_and_after(
    user: Terminal, service: RunningService
) -> None:
    machine = Machine(user).allow(ALLOWS_ALL, audit=True)
    asked = machine.sealpipe("request", "-a", "Password", "--output", "json").json
    service.submitter().submit(asked["collect_link"], {"Password": "c4nary"})
    before = len(lines(machine.audit))
    words = ["collect", asked["short_code"], "--to", "file:answer#Password", "--after", "expire"]
    assert machine.sealpipe(*words).code == 0
    told = [json.loads(each) for each in lines(machine.audit)[before:]]
    assert [(each["event"], each["outcome"]) for each in told] == [
        ("collect", "begun"),
        ("expire", "begun"),
        ("expire", "expired"),
        ("collect", "collected"),
    ]
    assert told[1]["short_codes"] == [asked["short_code"]]
    assert told[3]["ended"] is True
    assert "c4nary" not in machine.audit.read_text()


WITH_THE_CREDENTIAL: dict[str, list[str]] = {
    "a share's code": ["shares", "expire", "{}"],
    "a request's": ["requests", "expire", "{}"],
    "one to be purged": ["requests", "purge", "{}", "--confirm", "{}"],
    "a label": ["share", "-f", "{}=text:x"],
    "a file's name": ["share", "-f", "file:{}"],
    "a title": ["share", "-f", "text:x", "--title", "{}"],
    "a tool": ["tools", "call", "{}"],
}


@pytest.mark.parametrize("way", WITH_THE_CREDENTIAL)
@pytest.mark.parametrize("written", ["plain", "base64"])
def test_no_log_holds_the_credential(
    user: Terminal, service: RunningService, way: str, written: str
) -> None:
    custody = user.environ["SEALPIPE_API_KEY"].rpartition(".")[2]
    text = (
        custody if written == "plain" else base64.b64encode(custody.encode()).decode().rstrip("=")
    )
    user.file(text, "a value")
    machine = Machine(user).allow(ALLOWS_ALL, audit=True)
    done = machine.sealpipe(*(word.format(text) for word in WITH_THE_CREDENTIAL[way]))
    assert (done.code, service.seen()) == (2, [])
    assert text not in done.out + done.err + (
        machine.audit.read_text() if machine.audit.exists() else ""
    )


def test_a_file_named_like_the_credential_is_withheld(
    user: Terminal, service: RunningService
) -> None:
    custody = user.environ["SEALPIPE_API_KEY"].rpartition(".")[2]
    machine = Machine(user).allow(ALLOWS_ALL, audit=True)
    asked = machine.sealpipe("request", "-a", "Password", "--output", "json").json
    service.submitter().submit(asked["collect_link"], {"Password": "c4nary"})
    assert (
        machine.sealpipe("collect", asked["short_code"], "--to", f"file:{custody}#Password").code
        == 0
    )
    assert json.loads(lines(machine.audit)[-1])["stored"] == ["[withheld]"]
    assert custody not in machine.audit.read_text()
