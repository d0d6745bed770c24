"""`--debug` tells steps, sizes and times.

Every command is run with it, and what it says is searched.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from cli.fake_mcp import FakeMcp, FakeTool, text
from cli.leaks.canaries import FIELDS, PLANT, Canaries, canary, planted
from sealpipe import Client
from sealpipe.cli.commands import COMMANDS
from sealpipe_rehearsal.running_service import RunningService
from support.faults import echoes, reset_after, says
from support.faulty import Fault, Faulty
from support.leaks import Detector
from support.ports import silent_port
from support.terminal import Done, Terminal


class Made(NamedTuple):
    """What commands name: a share, a request with a submission, an entry of the outbox, a sealed
    link.
    """

    share: str
    request: str
    entry: str
    sealed: str
    typed: str
    secrets: dict[str, bytes]


BATCH = """
name = "vendors"
kind = "request"
rows = "rows.csv"
key = "key"
[request]
ask = ["Password"]
send = ["file:{key}.link"]
[collect]
to = ["file:{key}.password#Password"]
"""

# the server: tests/mcp/test_leaks.py.
CASES: dict[str, list[list[str]]] = {
    "share": [
        ["share", *FIELDS, "--passcode-from", "file:passcode"],
        ["share", *FIELDS, "--dry-run"],
    ],
    "request": [["request", "-a", "Password", "--passcode-from", "file:passcode"]],
    "collect": [
        ["collect", "{request}"],
        ["collect", "{request}", "--to", "file:stored#pw=Password", "--after", "expire"],
    ],
    "run": [["run", "-e", "SECRET=env:CANARY_ENV", "--", "true"]],
    "read": [["read", "env:CANARY_ENV"]],
    "copy": [["copy", "env:CANARY_ENV", "--to", "file:copied"]],
    "batch": [
        ["batch", "run", "batch.toml"],
        ["batch", "run", "--now", "batch.toml"],
        ["batch", "collect", "vendors"],
        ["batch", "status", "vendors"],
        ["batch", "rekey", "vendors"],
    ],
    "unseal": [["unseal"]],
    "shares": [
        ["shares", "show", "{share}"],
        ["shares", "list", "--limit", "3"],
        ["shares", "expire", "{share}"],
    ],
    "stats": [["stats"]],
    "tools": [["tools", "call", "take", "--param", "code=env:CANARY_ENV"]],
    "requests": [
        ["requests", "show", "{request}"],
        ["requests", "list"],
        ["requests", "expire", "{request}"],
    ],
    "webhooks": [
        ["webhooks", "verify", "--secret-from", "env:CANARY_ENV", "--signature", "file:passcode"]
    ],
    "resume": [["resume", "--list"], ["resume", "{entry}"]],
    "doctor": [["doctor", "--roundtrip"]],
    "plugins": [["plugins"]],
    "audit": [["audit", "verify", "no-such-file"]],
    "custody": [["custody", "public-key"]],
    "mcp": [["mcp", "policy", "init", "--policy", "mcp.toml"]],
    "rehearse": [],  # no command of the service's: what it runs has options of its own
    "rehearsal": [],  # its service's own
    "server": [],  # test_operators_leak_nothing.py
    "completion": [],  # prints a constant
}

WITH_ERRORS = {"audit": 2, "batch collect": 15, "resume": 11, "webhooks": 13}
"""The others succeed."""


@pytest.fixture
def canaries(bare: Terminal, service: RunningService) -> Canaries:
    return Canaries(bare, service, service.base_url)


@pytest.fixture
def made(canaries: Canaries, service: RunningService) -> Made:
    typed = canary("typed")
    environ = canaries.user.environ
    with Client(
        api_key=environ["SEALPIPE_API_KEY"],
        base_url=service.base_url,
        link_base_url=service.link_base_url,
    ) as client:
        share, request = client.share(["Password=text:x"]), client.request(["Password"])
    service.submitter().submit(request.collect_link, {"Password": typed})
    sealed = canaries.user.sealpipe("share", *FIELDS, "--seal-link", stdin=canaries.values["stdin"])
    assert sealed.code == 0, sealed
    canaries.user.environ["SEALPIPE_PLUGIN_WEBHOOK__UNSIGNED"] = "1"
    undelivered = canaries.user.sealpipe(
        "share",
        "-f",
        "env:CANARY_ENV",
        "--send",
        f"webhook:http://127.0.0.1:{silent_port()}/x",
        "--deadline",
        "1s",
    )
    assert undelivered.code == 11, undelivered
    (entry,) = canaries.user.outbox()
    canaries.user.file("batch.toml", BATCH)
    canaries.user.file("rows.csv", "key\na\n")
    known = {name: value.encode() for name, value in canaries.values.items()} | canaries.bytes
    known |= {"typed": typed.encode(), "fragment": share.link.reveal().partition("#1")[2].encode()}
    return Made(share.short_code, request.short_code, entry.stem, sealed.out.strip(), typed, known)


def check(done: Done, known: dict[str, bytes]) -> None:
    """Steps are told, and no secret is: not what is known, and not the link that was printed."""
    found = dict(known)
    for number, fragment in enumerate(re.findall(r"#1([A-Za-z0-9_-]{43})", done.out)):
        found[f"printed {number}"] = fragment.encode()
    assert re.search(r"^debug +\d+\.\d{3} s  sealpipe ", done.err, re.MULTILINE), done
    assert Detector(found).find(done.err.encode()) == set()


def test_every_command_is_here() -> None:
    assert set(CASES) == set(COMMANDS)


@pytest.mark.parametrize("name", [name for name, words in CASES.items() if words])
def test_no_command_tells_a_secret(canaries: Canaries, made: Made, mcp: FakeMcp, name: str) -> None:
    mcp.tools = {
        "take": FakeTool("shares:write", {"code": {"type": "string"}}, lambda _: text("taken"))
    }
    environ = {
        "SEALPIPE_SEALED_LINK": made.sealed,
        **({"SEALPIPE_BASE_URL": mcp.base_url} if name == "tools" else {}),
    }
    for words in CASES[name]:
        filled = [word.format(**made._asdict()) for word in words]
        at = filled.index("--") if "--" in filled else len(filled)
        line = [*filled[:at], "--debug", *filled[at:]]
        done = canaries.user.sealpipe(*line, stdin=canaries.values["stdin"], **environ)
        code = WITH_ERRORS.get(" ".join(words[:2]), WITH_ERRORS.get(name, 0))
        assert done.code == code or words == ["resume", "--list"], done
        check(done, made.secrets)


FAULTS: dict[str, tuple[int, Fault]] = {
    "an echo in the message": (5, echoes(400, '{"error_code": 19, "message": "bad HEADER"}')),
    "an echo that is no HTTP": (9, echoes(0, "Authorization: HEADER\r\n\r\n")),
    "500 for ever": (9, says(500)),
    "no answer": (9, reset_after),
    "bad JSON": (12, says(201, '{"short_code": "x')),
}


@pytest.fixture
def faulty(service: RunningService) -> Iterator[Faulty]:
    with Faulty(service.address) as server:
        yield server


@pytest.mark.parametrize("name", FAULTS)
def test_no_failure_tells_a_secret(canaries: Canaries, faulty: Faulty, name: str) -> None:
    code, fault = FAULTS[name]
    faulty.plan(then=fault)
    words = ["share", *FIELDS, "--passcode-from", "file:passcode", "--deadline", "2s", "--debug"]
    done = canaries.user.sealpipe(
        *words, stdin=canaries.values["stdin"], SEALPIPE_BASE_URL=faulty.base_url
    )
    assert done.code == code, done
    assert "POST /shares: " in done.err
    check(done, {name: value.encode() for name, value in canaries.values.items()} | canaries.bytes)


@pytest.mark.parametrize(
    ("where", "code"),
    [("Planted.fetch", 14), ("Planted.__init__", 14), ("sealpipe.wire.tokens.access_token", 1)],
)
@pytest.mark.parametrize("words", [[], ["--output", "json"]], ids=["text", "json"])
def test_frames_of_an_error_are_shown_without_what_they_hold(
    canaries: Canaries, service: RunningService, where: str, code: int, words: list[str]
) -> None:
    planted(f"{where} = loud")(canaries, service)
    done = canaries.user.sealpipe("share", *PLANT, *words, "--debug", apart=True)
    assert done.code == code, done
    assert re.search(r"planted_plugin\.py:\d+ loud", done.err)
    if words:
        assert json.loads(done.err.splitlines()[-1])["error"]["exit_code"] == code
    check(done, {name: value.encode() for name, value in canaries.values.items()} | canaries.bytes)
