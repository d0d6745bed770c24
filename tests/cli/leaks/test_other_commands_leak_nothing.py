"""What holds for a share holds on every other path where a secret moves: drawn, handed to a tool,
kept by a command.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import pytest

from cli.fake_mcp import FakeMcp, FakeTool, text
from cli.leaks.canaries import PLANT, Canaries, leaks, planted
from sealpipe import Client
from sealpipe.wire import keys
from sealpipe_rehearsal.running_service import RunningService
from support.fake_web import Fault, Reply, drop
from support.faults import reset_after, says
from support.faulty import Faulty
from support.leaks import Detector
from support.strace import Watched
from support.terminal import Terminal

ONE_USE = "--deadline", "1s"


@pytest.fixture
def faulty(service: RunningService) -> Iterator[Faulty]:
    with Faulty(service.address) as server:
        yield server


def nothing_is_told(canaries: Canaries, watched: Watched, requests: int, code: int) -> None:
    """Its exit code, and no secret anywhere but in the Authorization header of so many requests."""
    assert watched.done.code == code, watched.done
    assert leaks(canaries, watched, requests, None, None) == []
    assert watched.executed == []


# -- gen: secrets that are drawn here ------------------------------------------------------------


DRAWN = [
    "-f",
    "gen:password",
    "-f",
    "Hex=gen:hex",
    "-f",
    "Words=gen:passphrase",
    "-f",
    "gen:ssh#private,public",
]


def share_what_is_drawn(
    canaries: Canaries, service: RunningService, *words: str
) -> tuple[Watched, str]:
    """A share of new secrets, which are looked for from then on; and its link."""
    watched = canaries.watch("share", *DRAWN, *words, *ONE_USE)
    link = watched.done.out.rstrip("\n")
    assert watched.done.code == 0, watched.done
    opened = {field.key: field.value for field in service.recipient().open_link(link)}
    assert list(opened)[:5] == ["password", "Hex", "Words", "private", "public"]
    private = "".join(str(opened["private"]).splitlines()[1:-1])
    # Its first lines hold what every such file begins with, and the public half: that is no secret.
    whole = base64.b64decode(private)
    secret = whole[whole.rindex(b"ssh-ed25519") + 11 + 4 + 32 :][4:36]
    canaries.values |= {name: str(opened[name]) for name in ("password", "Hex")} | where_words_meet(
        opened["Words"]
    )
    canaries.bytes |= {"hex, decoded": bytes.fromhex(str(opened["Hex"])), "private half": secret}
    assert Detector({"private half": secret}).find(whole), "it is there to be found"
    return watched, link


def where_words_meet(passphrase: object) -> dict[str, str]:
    """The parts of a passphrase that hold a separator: a word alone may well stand in the name of
    some file.
    """
    text = str(passphrase)
    meets = [place for place, sign in enumerate(text) if not sign.isalpha()]
    return {f"Words {number}": text[max(0, at - 4) : at + 5] for number, at in enumerate(meets)}


def test_what_was_drawn_is_in_the_share_and_nowhere_else(
    bare: Terminal, service: RunningService, faulty: Faulty
) -> None:
    canaries = Canaries(bare, service, faulty.base_url)
    watched, link = share_what_is_drawn(canaries, service)
    assert leaks(canaries, watched, 1, link, "stdout") == []
    (received,) = faulty.received()
    head = received.head.replace(canaries.authorization.encode(), b"")
    assert Detector(canaries.secrets(watched)).find(head + received.body) == set()


TOLD = """
import sealpipe_plugins.generate.source as gen
fetch = gen.GenSource.fetch
def told(self, locator):
    made = fetch(self, locator)
    os.write(2, str(made.content).encode())
    return made
gen.GenSource.fetch = told"""


def test_a_source_that_tells_what_it_drew_does_not_pass(
    bare: Terminal, service: RunningService, faulty: Faulty
) -> None:
    canaries = Canaries(bare, service, faulty.base_url)
    planted(TOLD)(canaries, service)
    watched, link = share_what_is_drawn(canaries, service, *PLANT)
    found = {each.secret for each in leaks(canaries, watched, 1, link, "stdout")}
    assert found >= {"password", "Hex", "Words 0", "private half"}


@pytest.mark.parametrize("words", [["--dry-run"], ["--dry-run", "--output", "json"]], ids=" ".join)
def test_a_dry_run_shows_nothing_of_what_it_drew(
    bare: Terminal, service: RunningService, faulty: Faulty, words: list[str]
) -> None:
    canaries = Canaries(bare, service, faulty.base_url)
    watched = canaries.watch("share", "-f", "gen:hex", "-f", "gen:hex?bytes=32", *words)
    assert sum(len(drawn) == 32 for drawn in watched.drawn) >= 2, (
        "they were drawn, and are looked for"
    )
    nothing_is_told(canaries, watched, 0, 0)


# -- tools: arguments by reference ---------------------------------------------------------------


class Calling(NamedTuple):
    """A call of a tool with a secret argument: how it ends, how often the argument is sent, what
    the endpoint does.
    """

    code: int
    sent: int
    reply: Reply | Fault | None = None
    words: Sequence[str] = ()
    kind: str = "string"
    scopes: frozenset[str] = frozenset(["shares:write"])


REFUSED = {"jsonrpc": "2.0", "id": 3, "error": {"code": 1, "message": "no"}}
CALLS = {
    "success": Calling(0, 1),
    "success as JSON": Calling(0, 1, words=["--output", "json"]),
    "an argument that is no number": Calling(2, 0, kind="integer"),
    "an argument that is no number, as JSON": Calling(2, 0, kind="integer",
        words=["--output", "json"]),
    "a scope that is missing": Calling(4, 1, scopes=frozenset()),
    "an error of the endpoint": Calling(5, 1, Reply(200, json.dumps(REFUSED))),
    "no answer": Calling(9, 1, drop),
    "an answer that is none": Calling(12, 1,
        Reply(200, "[]", {"Content-Type": "application/json"})),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_an_argument_of_a_tool_is_in_its_call_and_nowhere_else(
    bare: Terminal, service: RunningService, mcp: FakeMcp, name: str
) -> None:
    case = CALLS[name]
    canaries = Canaries(bare, service, mcp.base_url)
    mcp.tools = {
        "take": FakeTool("shares:write", {"code": {"type": case.kind}}, lambda _: text("taken"))
    }
    mcp.scopes = set(case.scopes)
    mcp.queued = {"tools/call": [case.reply] if case.reply else []}
    watched = canaries.watch(
        "tools", "call", "take", "--param", "code=env:CANARY_ENV", *ONE_USE, *case.words
    )
    argument = json.dumps(canaries.values["environment"], ensure_ascii=False).encode()
    sent = 0
    for place, stream in watched.streams.items():
        if place.startswith("TCP:"):
            sent += stream.count(argument)
            watched.streams[place] = bytearray(stream.replace(argument, b""))
    assert (watched.done.code, sent) == (case.code, case.sent), watched.done
    nothing_is_told(canaries, watched, len(mcp.messages), case.code)


# -- commands that have a credential and show none of it -----------------------------------------


def ask_for_a_secret(canaries: Canaries, service: RunningService) -> str:
    """A request sealed to the credential, answered with a secret that the command could open."""
    environ = canaries.user.environ
    public_key = keys.from_custody_secret(environ["SEALPIPE_API_KEY"].split(".")[2]).public_key
    with Client(
        api_key=environ["SEALPIPE_API_KEY"],
        base_url=service.base_url,
        link_base_url=service.link_base_url,
    ) as client:
        code = client.create_request(
            title="t", public_key=public_key, fields=[("P", "password")]
        ).short_code
    service.submitter().submit(f"{service.link_base_url}/r/{code}", {"P": canaries.values["file"]})
    return code


LOOKING = {
    "doctor": (["doctor"], 0),
    "doctor, as JSON": (["doctor", "--output", "json"], 0),
    "doctor with a round trip": (["doctor", "--roundtrip"], 0),
    "doctor of one source": (["doctor", "gen"], 0),
    "stats": (["stats"], 0),
    "the access log": (["shares", "log", "x"], 0),
    "the public half": (["custody", "public-key"], 0),
    "the public half, as JSON": (["custody", "public-key", "--output", "json"], 0),
    "plugins": (["plugins", "--all"], 0),
    "tools": (["tools", "list"], 0),
    "requests": (["requests", "list", "--output", "json"], 0),
    "a request": (["requests", "show", "CODE"], 0),
    "its submissions": (["requests", "submissions", "CODE", "--output", "json"], 0),
    "ending it": (["requests", "expire", "CODE"], 0),
    "ending several": (["requests", "expire", "CODE", "nowhere", "--yes", "--output", "json"], 6),
    "destroying it": (["requests", "purge", "CODE", "--confirm", "CODE", "--output", "json"], 0),
    "destroying it unconfirmed": (["requests", "purge", "CODE"], 2),
}


@pytest.mark.parametrize("name", LOOKING)
def test_a_command_that_needs_the_credential_shows_none_of_it(
    bare: Terminal, service: RunningService, faulty: Faulty, name: str
) -> None:
    words, code = LOOKING[name]
    canaries = Canaries(bare, service, faulty.base_url)
    short_code = ask_for_a_secret(canaries, service)
    watched = canaries.watch(*[short_code if word == "CODE" else word for word in words])
    nothing_is_told(canaries, watched, len(faulty.received()), code)


def test_a_reminder_shows_none_of_it(
    bare: Terminal, service: RunningService, faulty: Faulty
) -> None:
    """Its entry in the outbox, its message and what this machine knows of the request hold no
    secret.
    """
    canaries = Canaries(bare, service, faulty.base_url)
    watched = canaries.watch(
        "request", "-a", "Password", "--name", "acme", "--receipt", "{name}.json"
    )
    nothing_is_told(canaries, watched, len(faulty.received()), 0)
    before = len(faulty.received())
    watched = canaries.watch("requests", "remind", "acme.json", "--send", "file:mail.txt")
    nothing_is_told(canaries, watched, len(faulty.received()) - before, 0)
    assert canaries.watch("requests", "link", "--name", "acme").done.out.startswith(
        service.link_base_url
    )


@pytest.mark.parametrize(
    "fault", [says(500), says(403, '{"Message": "no"}'), says(200, "{"), reset_after]
)
@pytest.mark.parametrize(
    "words", [["doctor", "--roundtrip"], ["requests", "expire", "CODE"], ["stats"]], ids=" ".join
)
def test_nor_where_the_service_fails(
    bare: Terminal,
    service: RunningService,
    faulty: Faulty,
    words: list[str],
    fault: Callable[..., None],
) -> None:
    canaries = Canaries(bare, service, faulty.base_url)
    short_code = ask_for_a_secret(canaries, service)
    faulty.plan(then=fault)
    watched = canaries.watch(*[short_code if word == "CODE" else word for word in words], *ONE_USE)
    assert watched.done.code != 0
    nothing_is_told(canaries, watched, len(faulty.received()), watched.done.code)


# -- keys of the rehearsal -----------------------------------------------------------------------


@pytest.mark.parametrize("output", ["text", "json"])
def test_a_new_key_of_the_rehearsal_is_on_stdout_and_nowhere_else(
    bare: Terminal, service: RunningService, faulty: Faulty, output: str
) -> None:
    """What registers it at the service is a hash of the auth part, and the custody part's public
    key.
    """
    canaries = Canaries(bare, service, faulty.base_url)
    watched = canaries.watch(
        "rehearsal", "key", "create", "--port", str(service.address.port), "--output", output
    )
    assert watched.done.code == 0, watched.done
    found = re.search(r"svc_sk_live_[\w-]{16}\.([\w-]{43})\.([\w-]{43})", watched.done.out)
    assert found
    canaries.values |= {"new key: auth part": found[1], "new key: custody part": found[2]}
    pair = keys.from_custody_secret(found[2])
    canaries.bytes |= {"new key: seed": bytes(pair.seed), "new key: scalar": bytes(pair.scalar)}
    assert leaks(canaries, watched, 0, found[0], "stdout") == []


# -- the people at the other end, in a rehearsal --------------------------------------------------


@pytest.mark.parametrize("output", ["text", "json"])
def test_what_the_recipient_of_a_rehearsal_opens_is_on_stdout_and_nowhere_else(
    bare: Terminal, service: RunningService, faulty: Faulty, output: str
) -> None:
    canaries = Canaries(bare, service, faulty.base_url)
    done = bare.sealpipe("share", "-f", "env:CANARY_ENV", "--passcode-from", "file:passcode")
    assert done.code == 0, done
    bare.file("link", done.out)
    canaries.values["link's key"] = done.out.strip().partition("#1")[2]
    words = ["--link", "file:link", "--passcode-from", "file:passcode", "--output", output]
    watched = canaries.watch("rehearsal", "open", *words)
    assert watched.done.code == 0, watched.done
    shown = canaries.values["environment"]
    if output == "json":
        shown = json.dumps(shown)[1:-1]
    assert leaks(canaries, watched, 0, shown, "stdout") == []
    assert watched.executed == []


def test_what_the_vendor_of_a_rehearsal_answers_leaves_only_sealed(
    bare: Terminal, service: RunningService, faulty: Faulty
) -> None:
    canaries = Canaries(bare, service, faulty.base_url)
    link = bare.sealpipe("request", "-a", "P").out.strip()
    watched = canaries.watch("rehearsal", "answer", link, "-f", "P=env:CANARY_ENV")
    assert watched.done.code == 0, watched.done
    assert leaks(canaries, watched, 0, None, None) == []
    assert watched.executed == []
    assert canaries.values["environment"] in bare.sealpipe("collect", link.rpartition("/")[2]).out
