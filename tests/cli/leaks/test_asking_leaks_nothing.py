"""Asking for secrets: passcode, seed and access link of a request stand where they belong and
nowhere else.

As in `test_a_share_leaks_nothing`: one real process under strace, and every byte that leaves it.
The passcode belongs into the body that is sent, the seed into the place that --seed-to names, a
link that is sent into its message.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from cli.leaks.canaries import Canaries, canary
from sealpipe import AsyncClient, Client, Outbox, SealpipeError, Secret
from sealpipe.api.operation import Credential
from sealpipe.request import create as requesting
from sealpipe.request.options import plan_request
from sealpipe.wire import keys
from sealpipe.wire.encoding import decode_base64url, encode_base64url
from sealpipe_rehearsal.running_service import RunningService
from support.faults import echoes, reset_after, rewrites, says
from support.faulty import Fault, Faulty, passes
from support.leaks import Detector, Found, exposed, shown
from support.strace import Watched
from support.terminal import Terminal

ASK = ["request", "-a", "Staging password", "-a", "user=User name:text", "--deadline", "1s"]
PASSCODE = ["--passcode-from", "file:passcode"]
NEW = ["--key", "new", "--seed-to", "file:out/seed"]
SENT = ["--send", "file:out/link"]
SEED_FILE, LINK_FILE, RECEIPT = "work/out/seed", "work/out/link", "work/out/r.json"


@pytest.fixture
def faulty(service: RunningService) -> Iterator[Faulty]:
    with Faulty(service.address) as server:
        yield server


def leaks(
    canaries: Canaries, watched: Watched, faulty: Faulty, *, may_be_cut: bool = False
) -> list[Found]:
    """What stands where it does not belong; what belongs is cut out first, as often as it belongs
    and no more.

    With `may_be_cut`, the deadline may have ended the last request before the server had it whole.
    """
    seed_file = canaries.user.here / "out/seed"
    seed = seed_file.read_text() if seed_file.exists() else ""
    secrets = canaries.secrets(watched)
    if seed:
        pair = keys.from_seed(decode_base64url(seed))
        assert bytes(pair.seed) in watched.drawn, "it was seen as it was drawn"
        secrets |= {
            "seed": bytes(pair.seed),
            "scalar": bytes(pair.scalar),
            "seed as text": seed.encode(),
        }
    detector = Detector(secrets)
    authorization = canaries.authorization.encode()
    header = re.compile(
        rb"\r\nauthorization: " + re.escape(authorization) + rb"\r\n", re.IGNORECASE
    )
    passcode = json.dumps(canaries.values["passcode"], ensure_ascii=False).encode()
    posts = sum(received.method == "POST" for received in faulty.received())
    found: list[Found] = []
    headers = bodies = 0
    for place, data in watched.places():
        if place.startswith("TCP:"):
            data, count = header.subn(b"\r\n", data)
            headers += count
            bodies += data.count(b'"passcode":' + passcode)
            data = data.replace(b'"passcode":' + passcode, b"")
        if seed and place.startswith(("work/out/", f"left in {SEED_FILE}")):
            data = b"" if data == seed.encode() else data
        found += detector.find(data, place)
    requests = len(faulty.received())
    assert requests <= headers <= requests + may_be_cut
    assert bodies == 0 or posts <= bodies <= posts + may_be_cut
    return sorted(found)


def links_stand(watched: Watched, where: Sequence[str]) -> None:
    """A collect link stands in these places, once each, and in no other but the state directory's
    own record.
    """
    at = {}
    for place, data in watched.places():
        if place.startswith("TCP:"):
            continue
        if count := len(re.findall(rb"http://[^\s\"]+/r/[^\s\"]+", data)):
            place = re.sub(r"out/#\d+$", "out/a new file", place.removeprefix("left in "))
            at[
                re.sub(r"state/sealpipe/created/(#\d+|[0-9a-f]{32}\.json)$", "the record", place)
            ] = count
    assert at.keys() - {"work/out/a new file", "home/.local/the record"} == set(where), at
    assert set(at.values()) <= {1}


class Case(NamedTuple):
    code: int
    words: Sequence[str] = ()
    then: Fault = passes
    links: Sequence[str] = ()
    kept: bool = False


OTHER = encode_base64url(keys.from_seed(bytes(32)).public_key)
CASES = {
    "text": Case(0, links=["stdout"]),
    "JSON": Case(0, ["--output", "json"], links=["stdout"]),
    "a passcode": Case(0, PASSCODE, links=["stdout"]),
    "a fresh key": Case(0, [*NEW, *PASSCODE], links=["stdout"]),
    "a fresh key and a receipt": Case(
        0, [*NEW, *PASSCODE, "--receipt", "out/r.json"], links=["stdout", RECEIPT]
    ),
    "sent": Case(
        0,
        [*SENT, *PASSCODE, *NEW, "--receipt", "out/r.json", "--output", "json"],
        links=[LINK_FILE, RECEIPT],
    ),
    "a seed that is there already": Case(
        14, [*PASSCODE, "--key", "new", "--seed-to", "file:passcode"]
    ),
    "an echo in the message": Case(
        5, PASSCODE, then=echoes(400, '{"error_code": 19, "message": "bad HEADER"}')
    ),
    "500 for ever": Case(9, [*PASSCODE, *NEW], then=says(500), kept=True),
    "no answer": Case(9, PASSCODE, then=reset_after, kept=True),
    "no answer, as JSON": Case(9, [*PASSCODE, "--output", "json"], then=reset_after, kept=True),
    "bad JSON": Case(12, PASSCODE, then=says(201, '{"short_code": "x'), kept=True),
    "a swapped key": Case(12, [*PASSCODE, *NEW, *SENT], then=rewrites(public_key=OTHER)),
    "429 for ever": Case(7, [*PASSCODE, *NEW], then=says(429)),
}


@pytest.mark.parametrize("name", CASES)
def test_each_secret_of_a_request_stands_only_where_it_belongs(
    bare: Terminal, service: RunningService, faulty: Faulty, name: str
) -> None:
    case = CASES[name]
    canaries = Canaries(bare, service, faulty.base_url)
    bare.file("out/.keep", "")
    faulty.plan(then=case.then)
    watched = canaries.watch(*ASK, *case.words)
    assert watched.done.code == case.code, watched.done
    assert leaks(canaries, watched, faulty, may_be_cut=case.then is not passes) == []
    links_stand(watched, case.links)
    assert watched.executed == []
    assert len(bare.outbox()) == int(case.kept)


def test_what_is_left_is_listed_and_tried_again_without_leaking(
    bare: Terminal, service: RunningService, faulty: Faulty
) -> None:
    canaries = Canaries(bare, service, faulty.base_url)
    bare.file("out/.keep", "")
    faulty.plan(then=says(500))
    assert canaries.watch(*ASK, *PASSCODE, *NEW).done.code == 9
    for words, code in (
        (["--list"], 0),
        (["--list", "--output", "json"], 0),
        (["--deadline", "1s"], 9),
    ):
        before = len(faulty.received())
        watched = canaries.watch("resume", *words)
        assert watched.done.code == code, watched.done
        assert leaks_after(canaries, watched, faulty, before) == []


def leaks_after(canaries: Canaries, watched: Watched, faulty: Faulty, before: int) -> list[Found]:
    """The same of a later command: only what arrived since counts."""
    everything = faulty.received()

    class Since:
        def received(self) -> list[Any]:
            return everything[before:]

    canaries.user.here.joinpath("out/seed").unlink(missing_ok=True)  # it was drawn by the first
    return leaks(canaries, watched, Since(), may_be_cut=True)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "code",
    [
        (
            "sealpipe.cli.deliver.announce = lambda made: print(made.access_link.reveal(), "
            "file=sys.stderr)"
        ),
        (
            'sealpipe.cli.deliver.announce = lambda made: open("log", '
            '"w").write(open("out/seed").read())'
        ),
        (
            "sealpipe.cli.deliver.announce = lambda made: "
            "sealpipe.cli.render.print_note(open('passcode').read())"
        ),
    ],
    ids=["the access link on stderr", "the seed in a file", "the passcode on stderr"],
)
def test_a_request_that_leaks_does_not_pass(
    bare: Terminal, service: RunningService, faulty: Faulty, code: str
) -> None:
    canaries = Canaries(bare, service, faulty.base_url)
    bare.file("out/.keep", "")
    bare.file(
        "site/sitecustomize.py", f"import sys, sealpipe.cli.deliver, sealpipe.cli.render\n{code}\n"
    )
    bare.environ["PYTHONPATH"] = str(bare.here / "site")
    watched = canaries.watch(*ASK, *NEW, *PASSCODE)
    assert watched.done.code == 0, watched.done
    assert leaks(canaries, watched, faulty) != []


# -- in process ---------------------------------------------------------------------------------

CANARY = canary("passcode")
ENDS: dict[str, Fault] = {
    "refused": says(403, '{"error_code": 78, "message": "no"}'),
    "broken": says(200, "{"),
    "failing": says(500),
    "cut off": reset_after,
    "swapped": rewrites(public_key=OTHER),
}


def settings(service: RunningService, base_url: str) -> dict[str, Any]:
    return {
        "api_key": service.create_key(),
        "base_url": base_url,
        "link_base_url": service.link_base_url,
        "deadline": 0.5,
    }


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("end", ENDS)
def test_an_exception_of_a_request_tells_nothing(
    service: RunningService,
    faulty: Faulty,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    end: str,
    *,
    asynchronous: bool,
) -> None:
    faulty.plan(then=ENDS[end])
    for logger in ("", "httpx", "httpcore", "sealpipe", "asyncio"):
        caplog.set_level(logging.DEBUG, logger)
    given = settings(service, faulty.base_url)
    asked = {
        "passcode": CANARY,
        "key": "new",
        "seed_to": f"file:{tmp_path}/seed",
        "outbox": tmp_path / "outbox",
    }

    async def ask_async() -> None:
        async with AsyncClient(**given) as client:
            await client.request(["Password"], **asked)

    def ask() -> None:
        with Client(**given) as client:
            client.request(["Password"], **asked)

    with pytest.raises(SealpipeError) as caught:
        asyncio.run(ask_async()) if asynchronous else ask()
    seed = (tmp_path / "seed").read_bytes()
    detector = Detector(
        {"passcode": CANARY.encode(), "seed": decode_base64url(seed.decode()), "as text": seed}
    )
    assert detector.find(exposed(caught.value).encode("utf-8", "backslashreplace")) == set()
    assert detector.find(caplog.text.encode()) == set()


def test_no_object_on_the_way_gives_anything_away(service: RunningService, tmp_path: Path) -> None:
    given = settings(service, service.base_url)
    plan = plan_request(["Password"], passcode=CANARY, key="new", seed_to=f"file:{tmp_path}/seed")
    with Client(**given) as client:
        outbox = Outbox(tmp_path / "outbox", Credential.parse(given["api_key"]))
        made = requesting.request(client.session, plan, outbox)
        seed = (tmp_path / "seed").read_bytes()
        detector = Detector(
            {"passcode": CANARY.encode(), "seed": decode_base64url(seed.decode()), "as text": seed}
        )
        things: list[object] = [
            plan,
            made,
            made.entry,
            made.receipt,
            made.access_link,
            [made],
            {"made": made},
        ]
        for thing in things:
            assert detector.find(shown(thing).encode("utf-8", "backslashreplace")) == set(), type(
                thing
            )
        made.delivered()
    assert made.access_link is not None
    assert detector.find(made.access_link.reveal().encode()), "it is there to be found"


def told(make: Callable[[], object]) -> str:
    with pytest.raises(SealpipeError) as refused:
        make()
    return exposed(refused.value)


@pytest.mark.parametrize(
    "passcode", [f"{CANARY}\n", Secret(f"{CANARY}\x00")], ids=["text", "Secret"]
)
def test_a_passcode_that_is_refused_is_not_shown(
    service: RunningService, passcode: str | Secret
) -> None:
    with Client(**settings(service, service.base_url)) as client:
        text = told(lambda: client.request(["Password"], passcode=passcode))
    assert (
        Detector({"passcode": CANARY.encode()}).find(text.encode("utf-8", "backslashreplace"))
        == set()
    )
