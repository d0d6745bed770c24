"""Every byte that a share writes, sends, executes or leaves on disk, on success and on each way to
fail.

Each secret is looked for in all of that, in every encoding, and must stand only where it belongs:
the link where the user wants it, the auth part in the Authorization header, everything else nowhere
at all. Each case is one real process under strace with a umask of 0, between it and the service a
server that makes the faults.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from cli.leaks.canaries import LINK_FILE, PLANT, SHARE, Canaries, leaks, planted, share_with
from sealpipe_rehearsal.running_service import RunningService
from support.ci_jobs import BUILDKITE
from support.damage import flipped
from support.faults import echoes, holds, holds_before, reset_after, says
from support.faulty import Fault, Faulty, passes
from support.leaks import Detector
from support.ports import silent_port
from support.strace import Watched
from support.terminal import ABROAD, Terminal

# -- the cases ----------------------------------------------------------------------------------


def nothing(_: Canaries, __: RunningService) -> None:
    """All is as it should be."""


class Case(NamedTuple):
    """What is run, how it ends, and where the link belongs (None: nowhere)."""

    code: int
    words: Sequence[str] = ()
    link_at: str | None = None
    then: Fault = passes
    before: Callable[[Canaries, RunningService], object] = nothing
    key: Mapping[str, object] = {}
    inject: str | None = None
    requests: int | None = None
    kept: bool = False
    says: str = ""


def without_protection(_: Canaries, service: RunningService) -> None:
    service.set_account(view_protection=False)


def file(name: str, ending: bytes) -> Callable[[Canaries, RunningService], object]:
    """The named file holds its secret, and then something that is wrong."""

    def change(canaries: Canaries, _: RunningService) -> None:
        path = canaries.user.here / name
        path.write_bytes(path.read_bytes().rstrip() + ending)

    return change


def environ(**changes: str) -> Callable[[Canaries, RunningService], object]:
    return lambda canaries, _: canaries.user.environ.update(changes)


CASES = {
    "success": Case(0, link_at="stdout", requests=1),
    "success, from the start of Python": Case(
        0, link_at="stdout", before=environ(PYTHONDONTWRITEBYTECODE="1"), requests=1
    ),
    "success as JSON": Case(0, ["--output", "json"], link_at="stdout", requests=1),
    "a link file and a receipt": Case(
        0, ["--link-file", "out/link", "--receipt", "out/receipt"], link_at=LINK_FILE, requests=1
    ),
    "a link file, as JSON": Case(
        0, ["--link-file", "out/link", "--output", "json"], link_at=LINK_FILE, requests=1
    ),
    "without custody": Case(0, ["--custody", "off"], link_at="stdout", requests=1),
    "a key without custody": Case(0, link_at="stdout", key={"custody": "none"}, requests=2),
    "a dry run": Case(0, ["--dry-run"], requests=0, says="would post to"),
    "a dry run as JSON": Case(0, ["--dry-run", "--output", "json"], requests=0),
    "help": Case(0, ["--help"], requests=0),
    "refused by scope": Case(4, key={"scopes": ["shares:read"]}, requests=1, says="error_code 78"),
    "refused by plan": Case(4, before=without_protection, requests=1, says="error_code 53"),
    "refused by the gateway": Case(3, then=says(403, '{"Message": "Forbidden"}'), requests=1),
    "refused as invalid": Case(
        5,
        then=says(
            400, '{"error_code": 19, "message": "no", "additional_data": {"title": "why"}}'
        ),
        requests=1,
    ),
    "an echo in the message": Case(
        5, then=echoes(400, '{"error_code": 19, "message": "bad HEADER"}'), requests=1,
        says="bad [withheld]"
    ),
    "an echo that JSON has escaped": Case(
        5, then=echoes(400, '{"error_code": 19, "message": "bad ESCAPED"}'), requests=1,
        says="[withheld]"
    ),
    "an echo in the additional data, as JSON": Case(
        5, ["--output", "json"], requests=1, says="[withheld]",
        then=echoes(400,
            '{"error_code": 19, "message": "", "additional_data": {"HEADER": ["ESCAPED"]}}'),
    ),
    "an echo of the gateway": Case(3, then=echoes(403, '{"Message": "HEADER"}'), requests=1,
        says="[withheld]"),
    "an echo in a proxy's page": Case(9, then=echoes(502, "<pre>Authorization: HEADER</pre>"),
        kept=True),
    # A deadline that ends the last call is what it says, not the echo.
    "an echo that is no HTTP": Case(
        9, ["--deadline", "5s"], then=echoes(0, "Authorization: HEADER\r\n\r\n"), kept=True,
        says="[withheld]"
    ),
    "nobody listens": Case(10,
        before=environ(SEALPIPE_BASE_URL=f"http://127.0.0.1:{silent_port()}/v1"), requests=0),
    "500 for ever": Case(9, then=says(500), kept=True),
    "500 for ever, as JSON": Case(9, ["--output", "json"], then=says(500), kept=True),
    "429 for ever": Case(7, then=says(429)),
    "no answer": Case(9, then=reset_after, kept=True),
    "bad JSON": Case(12, then=says(201, '{"short_code": "x'), kept=True),
    "a redirect": Case(
        12, then=says(307, headers={"Location": "http://127.0.0.1:9/elsewhere"}), requests=1,
        kept=True
    ),
    "a missing variable": Case(14, ["-f", "env:NOT_SET"], requests=0),
    "a missing file": Case(14, ["-f", "file:nowhere"], requests=0),
    "a missing key": Case(14, ["-f", "dotenv:prod.env#NO"], requests=0),
    "a broken dotenv file": Case(14, before=file("prod.env", b"\n= broken 'line\n"), requests=0),
    "not UTF-8": Case(14, before=file("secret.pem", b"\xff\xfe"), requests=0),
    "in base64": Case(0, ["-f", "file:secret.pem?encode=base64"], link_at="stdout", requests=1),
    "not base64": Case(14, ["-f", "file:secret.pem?decode=base64"], requests=0),
    "not hex, as JSON": Case(14, ["-f", "file:secret.pem?decode=hex", "--output", "json"],
        requests=0),
    "no JSON": Case(14, ["-f", "file:secret.pem?format=json#x"], requests=0),
    "no place in it": Case(2, ["-f", "file:secret.pem#/x/y"], requests=0),
    "a passcode that ends in a newline": Case(2, before=file("passcode", b"\n"), requests=0),
    "a passcode with a tab": Case(2, before=file("passcode", b"\tx"), requests=0),
    "a malformed credential": Case(
        2, before=lambda canaries,
        _: canaries.user.environ.update(SEALPIPE_API_KEY=canaries.authorization), requests=0
    ),
    "a bad option": Case(2, ["--views", "none"], requests=0),
    "an unknown option, as JSON": Case(2, ["--view", "1", "--output", "json"], requests=0),
    "two credentials": Case(2, ["--api-key-file", "passcode"], requests=0),
    "a full disk": Case(2, inject="fsync:error=ENOSPC:when=1", requests=0),
    "a disk that is full after the answer": Case(0, inject="fsync:error=ENOSPC:when=3",
        link_at="stdout", requests=1),
    "a plugin that works": Case(0, PLANT, link_at="stdout", before=planted(""), requests=1),
    "a plugin that fails": Case(14, PLANT, before=planted("Planted.fetch = loud"), requests=0,
        says="unexpected Loud"),
    "a plugin that fails, as JSON": Case(
        14, [*PLANT, "--output", "json"], before=planted("Planted.fetch = loud"), requests=0
    ),
    "a plugin that cannot be made": Case(14, PLANT, before=planted("Planted.__init__ = loud"),
        requests=0),
    "a plugin that cannot be imported": Case(14, PLANT, before=planted("loud()"), requests=0),
    "a bug of ours while sealing": Case(
        1, PLANT, before=planted("sealpipe.wire.tokens.access_token = loud"), requests=0,
        says="internal error: Loud"
    ),
    "a bug of ours while sealing, as JSON": Case(
        1, [*PLANT, "--output", "json"], before=planted("sealpipe.wire.tokens.access_token = loud"),
        requests=0
    ),
    "a bug of ours while writing the outbox": Case(
        1, PLANT, before=planted("sealpipe.state.outbox.Journal.create = loud"), requests=0
    ),
    "a bug of ours after the answer": Case(
        1, PLANT, before=planted("sealpipe.share.post._note_response = loud"), requests=1, kept=True
    ),
    "GitLab without a file for the link": Case(2, before=environ(GITLAB_CI="true", **ABROAD),
        requests=0),
    "any CI without a way for the link": Case(2, before=environ(CI="true", **ABROAD), requests=0),
    "any CI, captured": Case(
        0, ["--print"], before=environ(JENKINS_URL="http://127.0.0.1/", **ABROAD), link_at="stdout",
        requests=1
    ),
}  # fmt: skip


@pytest.fixture
def faulty(service: RunningService) -> Iterator[Faulty]:
    with Faulty(service.address) as server:
        yield server


def check(canaries: Canaries, watched: Watched, faulty: Faulty, case: Case) -> str | None:
    """Hold what all cases have in common; the link, if there is one."""
    assert watched.done.code == case.code, watched.done
    assert case.says in watched.done.out + watched.done.err
    requests = len(faulty.received())
    assert case.requests in (None, requests)
    link = _link(canaries.user, watched, case)
    assert (
        leaks(canaries, watched, requests, link, case.link_at, may_be_cut=case.requests is None)
        == []
    )
    detector = Detector(canaries.secrets(watched))
    for received in faulty.received():
        head = received.head.replace(canaries.authorization.encode(), b"")
        assert detector.find(head + received.body) == set()
    assert watched.executed == [], "a share starts no other program"
    assert ("resume" in watched.done.err, len(canaries.user.outbox())) == (
        (True, 1) if case.kept else (False, 0)
    )
    return link


def _link(user: Terminal, watched: Watched, case: Case) -> str | None:
    if case.link_at is None:
        assert "#1" not in watched.done.out
        return None
    text = watched.done.out if case.link_at == "stdout" else (user.here / "out/link").read_text()
    link = json.loads(text)["link"] if text.startswith("{") else text.rstrip("\n")
    key = base64.urlsafe_b64decode(link.partition("#1")[2] + "=")
    assert key in watched.drawn, "the content key was seen as it was drawn"
    return str(link)


@pytest.mark.parametrize("name", CASES)
def test_each_secret_stands_only_where_it_belongs(
    bare: Terminal, service: RunningService, faulty: Faulty, name: str
) -> None:
    case = CASES[name]
    canaries = Canaries(bare, service, faulty.base_url, **case.key)
    bare.file("out/.keep", "")
    faulty.plan(then=case.then)
    case.before(canaries, service)
    watched = canaries.watch(*share_with(*case.words), inject=case.inject)
    check(canaries, watched, faulty, case)


LEAKING = {
    "a value on stderr": 'os.write(2, os.environ["CANARY_ENV"].encode())',
    "a part of the passcode in a file": 'open("log", "w").write(open("passcode").read()[4:14])',
    "the environment, handed to a program": 'os.spawnlp(os.P_WAIT, "true", "true")',
    "the auth part, in another header": """
wrapped = sealpipe.network.service_network.build_request
def request(service, *rest):
    made = wrapped(service, *rest)
    made.headers.append((b"x-debug", service.credential.auth_secret.reveal_bytes()))
    return made
sealpipe.network.service_network.build_request = request""",
    "the custody part, in the URL": """
wrapped = sealpipe.network.service_network.build_request
def request(service, operation, *rest):
    made = wrapped(service, operation, *rest)
    made.url.target += b"?k=" + service.credential.custody_secret.reveal_bytes()
    return made
sealpipe.network.service_network.build_request = request""",
    "the content key, in a header": """
wrapped = sealpipe.api.shares.create
def create(*given, **more):
    made = wrapped(*given, **more)
    made.headers["x-key"] = base64.b64encode(sealpipe.wire.envelope.kept[0]).decode()
    return made
sealpipe.api.shares.create = create
sealed = sealpipe.wire.envelope.seal_chunks
def seal_chunks(content_key, *rest, **more):
    sealpipe.wire.envelope.kept = [content_key]
    return sealed(content_key, *rest, **more)
sealpipe.wire.envelope.seal_chunks = seal_chunks""",
    "the link, on stderr too": """
announce = sealpipe.cli.deliver.announce
def told(share):
    announce(share)
    print(share.link.reveal(), file=sys.stderr)
sealpipe.cli.deliver.announce = told""",
}
IMPORTS = (
    "import base64, sys, sealpipe.api.shares, sealpipe.cli.deliver, sealpipe.cli.render, "
    "sealpipe.network.service_network\n"
)


@pytest.mark.parametrize("name", LEAKING)
def test_a_share_that_leaks_does_not_pass(
    bare: Terminal, service: RunningService, faulty: Faulty, name: str
) -> None:
    canaries = Canaries(bare, service, faulty.base_url)
    planted(IMPORTS + LEAKING[name])(canaries, service)
    watched = canaries.watch(*SHARE, *PLANT)
    assert watched.done.code == 0, watched.done
    link = watched.done.out.rstrip("\n")
    assert leaks(canaries, watched, len(faulty.received()), link, "stdout") != []


@pytest.mark.parametrize("fault", [holds, holds_before])
def test_nothing_leaks_when_sigterm_strikes_while_the_answer_is_awaited(
    bare: Terminal, service: RunningService, faulty: Faulty, fault: Fault
) -> None:
    canaries = Canaries(bare, service, faulty.base_url)
    faulty.plan(then=fault)
    watched = canaries.watch(
        *share_with("--deadline", "60s"), interrupt=lambda: faulty.committed.wait(30)
    )
    check(canaries, watched, faulty, Case(143, requests=1, kept=True))


def test_buildkites_agent_gets_the_link_by_its_standard_input_and_no_other_way(
    bare: Terminal, service: RunningService, faulty: Faulty
) -> None:
    canaries = Canaries(bare, service, faulty.base_url)
    # The agent's environment is the job's own, but for our variables.
    del bare.environ["CANARY_ENV"]
    agent = bare.file(
        "agent/buildkite-agent", "#!/bin/sh\nwhile read -r line; do :; done\nexit 0\n"
    )
    agent.chmod(0o755)
    bare.environ |= BUILDKITE | ABROAD | {"PATH": f"{agent.parent}:{bare.environ['PATH']}"}
    watched = canaries.watch(
        "share", "-f", "file:secret.pem", "-f", "dotenv:prod.env#TOKEN", "--print"
    )
    assert watched.done.code == 0, watched.done
    link = watched.done.out.rstrip("\n")
    fragment = link.partition("#")[2]
    (pipe,) = [
        place for place, data in watched.streams.items() if "pipe:" in place and b"{" in data
    ]
    assert set(json.loads(watched.streams.pop(pipe)).values()) == {link, fragment, fragment[1:]}
    assert leaks(canaries, watched, 1, link, "stdout") == []
    assert [words[0] for words in watched.executed] == [bytes(agent)] * 3, "a mask and two outputs"
    assert not any(word.startswith(b"SEALPIPE_") for words in watched.executed for word in words)


def test_nothing_leaks_if_the_link_cannot_be_printed(
    bare: Terminal, service: RunningService, faulty: Faulty
) -> None:
    canaries = Canaries(bare, service, faulty.base_url)
    reading, writing = os.pipe()
    os.close(reading)
    try:
        watched = canaries.watch(*SHARE, stdout=writing)
    finally:
        os.close(writing)
    # The link was offered to stdout, whose reader is gone: it is the kernel that did not take it.
    link = bytes(watched.streams["stdout"]).decode().rstrip("\n")
    assert watched.done.code == 11
    assert leaks(canaries, watched, 1, link, "stdout") == []
    assert len(bare.outbox()) == 1


def test_resuming_leaks_nothing_either(
    bare: Terminal, service: RunningService, faulty: Faulty
) -> None:
    canaries = Canaries(bare, service, faulty.base_url)
    faulty.plan(then=says(500, commits=True))
    assert canaries.watch(*SHARE).done.code == 9
    (entry,) = bare.outbox()
    sealed = entry.read_bytes()
    sent = len(faulty.received())

    def resume(*words: str, **environ: str) -> tuple[Watched, int]:
        before = len(faulty.received())
        return canaries.watch("resume", *words, environ=environ), len(faulty.received()) - before

    watched, requests = resume("--list")
    assert (watched.done.code, leaks(canaries, watched, 0, None, None), requests) == (0, [], 0)
    watched, requests = resume(entry.stem, SEALPIPE_API_KEY=service.create_key().reveal())
    assert (watched.done.code, leaks(canaries, watched, 0, None, None), requests) == (2, [], 0)
    entry.write_bytes(flipped(sealed))
    watched, requests = resume(entry.stem, "--output", "json")
    assert (watched.done.code, leaks(canaries, watched, 0, None, None), requests) == (2, [], 0)
    entry.write_bytes(sealed)
    watched, requests = resume(entry.stem)
    assert (watched.done.code, leaks(canaries, watched, requests, None, None)) == (9, [])
    faulty.mend()
    watched, requests = resume()
    link = watched.done.out.rstrip("\n")
    assert (watched.done.code, requests, len(faulty.received()) > sent) == (0, 1, True)
    key = base64.urlsafe_b64decode(link.partition("#1")[2] + "=")
    assert leaks(canaries, watched, 1, link, "stdout") == []
    assert Detector({**canaries.secrets(watched), "content key": key}).find(sealed) == set()


def test_what_can_be_listed_and_expired_leaks_nothing(
    bare: Terminal, service: RunningService, faulty: Faulty
) -> None:
    canaries = Canaries(bare, service, faulty.base_url)
    code = json.loads(canaries.watch(*SHARE, "--output", "json").done.out)["short_code"]
    for words in (
        ["list"],
        ["show", code],
        ["expire", code],
        ["expire", code],
        ["list", "--output", "json"],
    ):
        before = len(faulty.received())
        watched = canaries.watch("shares", *words)
        assert leaks(canaries, watched, len(faulty.received()) - before, None, None) == []


# -- who else may look --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a link file and a receipt", "500 for ever"])
def test_under_a_umask_of_0_everything_that_is_made_is_for_its_owner_only(
    bare: Terminal, service: RunningService, faulty: Faulty, name: str
) -> None:
    case = CASES[name]
    canaries = Canaries(bare, service, faulty.base_url)
    bare.file("out/.keep", "")
    before = set(bare.home.parent.rglob("*"))
    faulty.plan(then=case.then)
    watched = canaries.watch(*share_with(*case.words), inject=case.inject)
    assert watched.done.code == case.code
    made = {
        path: stat.S_IMODE(path.stat().st_mode)
        for path in set(bare.home.parent.rglob("*")) - before
    }
    assert made
    assert {
        str(path): oct(mode)
        for path, mode in made.items()
        if mode != (0o700 if path.is_dir() else 0o600)
    } == {}
    assert {mode for _, mode in watched.created} == {0o600}, "from the first moment on"


def test_a_state_folder_that_is_open_to_others_is_closed(
    bare: Terminal, service: RunningService, faulty: Faulty
) -> None:
    canaries = Canaries(bare, service, faulty.base_url)
    outbox = bare.home / ".local/state/sealpipe/outbox"
    outbox.mkdir(parents=True)
    outbox.chmod(0o777)
    assert canaries.watch(*SHARE).done.code == 0
    assert stat.S_IMODE(outbox.stat().st_mode) == 0o700


@pytest.mark.parametrize("what", ["a link elsewhere", "a file"])
def test_an_outbox_that_is_no_folder_of_ours_is_refused(
    bare: Terminal, service: RunningService, faulty: Faulty, tmp_path: Path, what: str
) -> None:
    canaries = Canaries(bare, service, faulty.base_url)
    outbox = bare.home / ".local/state/sealpipe/outbox"
    outbox.parent.mkdir(parents=True)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    if what == "a file":
        outbox.write_text("")
    else:
        outbox.symlink_to(elsewhere)
    watched = canaries.watch(*SHARE)
    assert (watched.done.code, faulty.received(), list(elsewhere.iterdir())) == (2, [], [])


def test_what_everybody_can_see_of_a_running_share_holds_no_value(
    bare: Terminal, service: RunningService, faulty: Faulty
) -> None:
    """Any user of a machine can read the command lines of all processes."""
    canaries = Canaries(bare, service, faulty.base_url)
    faulty.plan(then=holds)
    shown: list[bytes] = []

    def look() -> None:
        faulty.committed.wait(30)
        for file in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):  # it has ended meanwhile
                shown.append(file.read_bytes())

    watched = canaries.watch(*share_with("--deadline", "60s"), interrupt=look)
    assert any(b"--passcode-from\0file:passcode" in line for line in shown), (
        "it was there to be seen"
    )
    assert Detector(canaries.secrets(watched)).find(b"\n".join(shown)) == set()
