"""What is stored while it is shared stands in its place and nowhere else, whatever goes wrong.

As in `test_a_share_leaks_nothing`: one real process under strace, and every byte that leaves it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from leaks.exposing import exposed, shown
from leaks.needles import Detector, Found
from leaks.test_a_share_leaks_nothing import FIELDS, Canaries
from leaks.watching import Watched
from sealpipe import AsyncClient, Client, Field, Outbox, SealpipeError, Secret
from sealpipe.credential import Credential
from sealpipe.flows import share as sharing
from sealpipe_rehearsal.running import Running
from support.faulty import Fault, Faulty, passes, reset_after, says
from support.terminal import Terminal

PLACE = "work/out/it"
ALSO = ["--also-to", "file:out/it#Password"]
MORE = ["--also-to", "dir:out/all#K=secret.pem,P=Piped"]
SHARE = ["share", *FIELDS, "--passcode-from", "file:passcode", "--link-file", "link", "--deadline", "1s"]


class Storing:
    """A user with canaries, between whom and the service a server makes the faults."""

    def __init__(self, user: Terminal, service: Running, faulty: Faulty) -> None:
        self.canaries = Canaries(user, service, faulty.base_url)
        self.user = user
        user.file("out/.keep", "")

    def leaks(self, watched: Watched) -> list[Found]:
        """What stands where it does not belong: each place may hold its own value, whole and alone, and a link file."""
        own = {
            PLACE: self.canaries.values["environment"],
            "work/out/all/K": (self.user.here / "secret.pem").read_text(),
            "work/out/all/P": self.canaries.values["stdin"],
        }
        detector = Detector(self.canaries.secrets(watched))
        link = self.user.here / "link"
        written = link.read_bytes() if link.exists() else None
        found: list[Found] = []
        for place, data in watched.places():
            if place.startswith("TCP:"):
                data = data.replace(self.canaries.authorization.encode(), b"")
            is_link = data == written and place.startswith(("work/", "left in work/link"))
            if is_link or any(data == value.encode() and _near(place, name) for name, value in own.items()):
                continue
            found += detector.find(data, place)
        return sorted(found)


def _near(place: str, name: str) -> bool:
    """The file itself, or that which is given its name once it is written: in its folder, or without a name at all."""
    folder, _, file = name.rpartition("/")
    # Its name until then, where a kill came in between; the next write there clears it away.
    return place in (f"left in {name}", f"left in {folder}/.{file}.sealpipe-new") or place.startswith(f"{folder}/")


@pytest.fixture
def faulty(service: Running) -> Iterator[Faulty]:
    with Faulty((service.address.host, service.address.port)) as server:
        yield server


@pytest.fixture
def storing(bare: Terminal, service: Running, faulty: Faulty) -> Storing:
    return Storing(bare, service, faulty)


class Case(NamedTuple):
    code: int
    words: Sequence[str] = ()
    then: Fault = passes
    before: Callable[[Terminal], object] = lambda _: None
    inject: str | None = None
    kept: bool = False
    stored: bool = True


FIRST = ["-f", "Password=env:CANARY_ENV"]
CASES = {
    "success": Case(0),
    "several places": Case(0, MORE),
    "several places, as JSON": Case(0, [*MORE, "--output", "json"]),
    "a dry run": Case(0, ["--dry-run"], stored=False),
    "a dry run as JSON": Case(0, ["--dry-run", "--output", "json"], stored=False),
    "refused": Case(5, then=says(400, '{"error_code": 19, "message": "no", "additional_data": {}}')),
    "no answer": Case(9, then=reset_after, kept=True),
    "something else is there": Case(14, before=lambda user: user.file("out/it", "other"), stored=False),
    "a second place fails": Case(14, [*MORE, "--also-to", "file:nowhere/x#Password"]),
    "a second place fails, as JSON": Case(14, ["--also-to", "file:nowhere/x#Password", "--output", "json"]),
    "it cannot be decoded": Case(2, ["--also-to", "file:x?decode=hex#Password"], stored=False),
    "a reader would get it wrong": Case(14, ["--also-to", "dotenv:x#P=Password"]),
    "no field of that name": Case(2, ["--also-to", "file:x#Nobody"], stored=False),
    "a full disk": Case(14, inject="fsync:error=ENOSPC:when=3", stored=False),
    "nobody may note that it is stored": Case(2, inject="fsync:error=ENOSPC:when=5", kept=True),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_stored_stands_in_its_place_and_nowhere_else(storing: Storing, faulty: Faulty, name: str) -> None:
    case = CASES[name]
    faulty.plan(then=case.then)
    case.before(storing.user)
    watched = storing.canaries.watch(*SHARE, *FIRST, *ALSO, *case.words, inject=case.inject)
    assert watched.done.code == case.code, watched.done
    assert storing.leaks(watched) == []
    assert watched.executed == []
    assert len(storing.user.outbox()) == int(case.kept)
    file = storing.user.here / "out/it"
    assert (file.exists() and file.read_text() == storing.canaries.values["environment"]) == case.stored
    assert [mode for name, mode in watched.created if "out" in name and mode & 0o077] == []


def test_what_was_cut_off_is_listed_and_finished_without_leaking(storing: Storing) -> None:
    storing.user.file("out/it", "other")
    also_to = ("--also-to", "file:out/it?mode=replace#Password")
    cut_off = storing.canaries.watch(*SHARE, *FIRST, *also_to, inject="renameat:signal=SIGKILL:when=1")
    assert (cut_off.done.code, storing.leaks(cut_off)) == (-9, [])
    for words in (["--list"], ["--list", "--output", "json"], []):
        watched = storing.canaries.watch("resume", *words)
        assert (watched.done.code, storing.leaks(watched)) == (0, [])
    assert (storing.user.here / "out/it").read_text() == storing.canaries.values["environment"]


@pytest.mark.parametrize(
    "code",
    [
        """
wrapped = also.put
def put(session, parcel, entry):
    output.note(parcel.fields[0].value.reveal())
    return (yield from wrapped(session, parcel, entry))
also.put = put""",
        'also.marked = lambda wanted, meta: open("log", "w").write(wanted[0].fields[0].value.reveal()) and []',
    ],
    ids=["the value on stderr", "the value in another file"],
)
def test_a_share_that_leaks_what_it_stores_does_not_pass(storing: Storing, code: str) -> None:
    """By a module that Python imports by itself at its start, and that waits for ours."""
    hook = f"from sealpipe.cli import output\nfrom sealpipe.flows.storing import also\n{code}\n"
    storing.user.file("site/sitecustomize.py", hook)
    storing.user.environ["PYTHONPATH"] = str(storing.user.here / "site")
    watched = storing.canaries.watch(*SHARE, *FIRST, *ALSO)
    assert watched.done.code == 0, watched.done
    assert storing.leaks(watched) != []


# -- in a library ---------------------------------------------------------------------------------------


FAILING = {
    "the place is taken": {"also_to": ["file:{there}"]},
    "a folder is missing": {"also_to": ["file:nowhere/x"]},
    "it cannot be decoded": {"also_to": ["file:x?decode=base64"]},
    "no field of that name": {"also_to": ["file:x#Nobody"]},
    "a reader would get it wrong": {"also_to": ["dotenv:x#P=Password"]},
    "two targets contradict": {"also_to": ["dotenv:x#P=Password", "dotenv:x#P=Password"]},
}


@pytest.mark.parametrize("asynchronous", [False, True], ids=["Client", "AsyncClient"])
@pytest.mark.parametrize("name", FAILING)
def test_an_error_of_a_place_gives_no_value_away(
    storing: Storing,
    faulty: Faulty,
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    *,
    asynchronous: bool,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").write_text("other")
    value = storing.canaries.values["environment"]
    also_to = [each.replace("{there}", "there") for each in FAILING[name]["also_to"]]
    settings = arguments(storing, faulty)

    async def awaited() -> None:
        async with AsyncClient(**settings) as client:
            await client.share([Field("Password", value)], also_to=also_to)

    def shared() -> None:
        with Client(**settings) as client:
            client.share([Field("Password", value)], also_to=also_to)

    with pytest.raises(SealpipeError) as caught:
        asyncio.run(awaited()) if asynchronous else shared()
    told = exposed(caught.value) + caplog.text
    assert Detector({"value": value.encode()}).find(told.encode("utf-8", "backslashreplace")) == set()


def test_no_object_on_the_way_gives_anything_away(
    storing: Storing, faulty: Faulty, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    value = storing.canaries.values["environment"]
    detector = Detector({"value": value.encode()})
    plan = sharing.plan([Field("Password", Secret(value))], also_to=["file:pw"])
    settings = arguments(storing, faulty)
    with Client(**settings) as client:
        sealed = client.run(sharing.prepare(plan, client.session))
        box = Outbox(tmp_path / "outbox", Credential.parse(settings["api_key"]))
        made = client.run(sharing.share(client.session, plan, box))
        for thing in (plan, sealed, *sealed.parcels, made, made.entry):
            assert detector.find(shown(thing).encode("utf-8", "backslashreplace")) == set(), type(thing)
        made.delivered()
    assert (tmp_path / "pw").read_text() == value


def arguments(storing: Storing, faulty: Faulty) -> dict[str, Any]:
    environ = storing.user.environ
    return {
        "api_key": environ["SEALPIPE_API_KEY"],
        "base_url": faulty.base_url,
        "link_base_url": environ["SEALPIPE_LINK_BASE_URL"],
    }
