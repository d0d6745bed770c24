"""What was handed over stands on stdout or in its place, and nowhere else; the state folder has
ciphertext only.

As in `test_a_share_leaks_nothing`: one real process under strace, and every byte that leaves it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from cli.leaks.canaries import Canaries, canary, leaks
from sealpipe import Client, SealpipeError, Secret
from sealpipe.state.receipt import Receipt
from sealpipe.wire import fields, keys, sealed_box
from sealpipe.wire.encoding import decode_base64url, encode_base64, encode_base64url
from sealpipe.wire.fields import Field
from sealpipe_rehearsal.running_service import RunningService
from support.faults import reset_after, says
from support.faulty import Fault, Faulty, passes
from support.leaks import Detector, exposed, shown
from support.strace import Watched
from support.terminal import Terminal

PROMPTS = "Staging password", "key=Private key:multiline"
ONE_USE = "--deadline", "1s"
PLACE = "work/out/"


class Asked:
    """A user with canaries, and a request to them that was answered with two more."""

    def __init__(
        self, user: Terminal, service: RunningService, base_url: str, *, own_key: bool = False
    ) -> None:
        self.canaries = Canaries(user, service, base_url)
        self.service = service
        self.typed = [canary("password"), canary("key")]
        self.canaries.values |= {"typed: password": self.typed[0], "typed: key": self.typed[1]}
        pair = keys.from_seed(bytes(range(100, 132)))
        with self.client() as client:
            made = client.request(PROMPTS, key=pair if own_key else "credential")
        self.receipt: Receipt = made.receipt
        if own_key:
            seed = encode_base64url(bytes(pair.seed))
            user.file("seed", seed)
            self.canaries.values["seed"] = seed
            self.canaries.bytes |= {"own seed": bytes(pair.seed), "own scalar": bytes(pair.scalar)}
        user.file("r.json", self.receipt.dump())
        user.file("out/.keep", "")
        self.link = made.collect_link
        self.answer(*self.typed)

    def client(self) -> Client:
        environ = self.canaries.user.environ
        return Client(
            api_key=environ["SEALPIPE_API_KEY"],
            base_url=self.service.base_url,
            link_base_url=self.service.link_base_url,
        )

    def answer(self, password: str, key: str) -> None:
        self.send(
            fields.dump(
                [Field("Staging password", password), Field("Private key", key, "multiline")]
            )
        )

    def send(self, plaintext: bytes) -> None:
        data = sealed_box.seal(decode_base64url(self.receipt.public_key), plaintext)
        self.service.submitter().send(self.link, data)

    def watch(self, *words: str) -> Watched:
        return self.canaries.watch("collect", "r.json", *words, *ONE_USE)


@pytest.fixture
def faulty(service: RunningService) -> Iterator[Faulty]:
    with Faulty(service.address) as server:
        yield server


def cut(watched: Watched, place: str, typed: Sequence[str], form: Callable[[str], str]) -> None:
    """Take out what belongs there: each once."""
    stream = bytes(watched.streams[place])
    for value in typed:
        shown_as = form(value).encode()
        assert stream.count(shown_as) == 1, (place, stream)
        stream = stream.replace(shown_as, b"")
    watched.streams[place] = bytearray(stream)


def as_json(value: str) -> str:
    return json.dumps(value)[1:-1]


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("own_key", [False, True])
def test_without_a_target_it_is_on_stdout_and_nowhere_else(
    bare: Terminal, service: RunningService, faulty: Faulty, form: str, *, own_key: bool
) -> None:
    asked = Asked(bare, service, faulty.base_url, own_key=own_key)
    watched = asked.watch("--output", form, *(["--key", "file:seed"] if own_key else []))
    assert watched.done.code == 0, watched.done
    cut(watched, "stdout", asked.typed, as_json if form == "json" else str)
    assert leaks(asked.canaries, watched, len(faulty.received()), None, None) == []
    assert watched.executed == []


@pytest.mark.parametrize(("words", "code"), [([], 2), (["--print"], 0)], ids=str)
def test_in_ci_it_is_on_stdout_only_with_leave(
    bare: Terminal, service: RunningService, faulty: Faulty, words: list[str], code: int
) -> None:
    asked = Asked(bare, service, faulty.base_url, own_key=False)
    bare.environ["CI"] = "true"
    watched = asked.watch(*words)
    assert watched.done.code == code, watched.done
    if words:
        cut(watched, "stdout", asked.typed, str)
    assert leaks(asked.canaries, watched, len(faulty.received()), None, None) == []


DECODED = "a file that came as base64"
STORED = {
    "files": ["--to", "file:out/pw#staging_password", "--to", "file:out/key#key"],
    "a folder": ["--dir", "out/all"],
    "files, and then it ends": ["--to", "file:out/pw#staging_password", "--after", "expire"],
    "files, as JSON": ["--to", "file:out/pw#staging_password", "--output", "json"],
    DECODED: ["--pick", "newest", "--to", "file:out/pw?decode=base64#staging_password"],
}


@pytest.mark.parametrize("name", STORED)
def test_with_a_target_it_is_in_its_place_and_nowhere_else(
    bare: Terminal, service: RunningService, faulty: Faulty, name: str
) -> None:
    asked = Asked(bare, service, faulty.base_url)
    if name == DECODED:
        asked.answer(*(encode_base64(value.encode()) for value in asked.typed))
    watched = asked.watch(*STORED[name])
    # The first submission, which is not base64, is unreadable.
    assert watched.done.code == (13 if name == DECODED else 0), watched.done
    in_place = {place for place, data in watched.places() if place.startswith(PLACE)}
    assert any(asked.typed[0].encode() in watched.streams[place] for place in in_place)
    for place in in_place:
        watched.streams[place] = bytearray(_without(asked.typed, bytes(watched.streams[place])))
    for place in [place for place in watched.left if place.startswith(PLACE)]:
        assert (bare.here.parent / place).stat().st_mode & 0o777 == 0o600
        watched.left[place] = _without(asked.typed, watched.left[place])
    modes = {
        made: mode for made, mode in watched.created if "/out/" in made or made.startswith("out/")
    }
    assert all(mode & 0o077 == 0 for mode in modes.values()), modes
    assert leaks(asked.canaries, watched, len(faulty.received()), None, None) == []


def _without(typed: Sequence[str], data: bytes) -> bytes:
    for value in typed:
        data = data.replace(value.encode(), b"")
    return data


class Case(NamedTuple):
    """A run after which no value stands anywhere."""

    code: int
    words: Sequence[str] = ()
    before: Callable[[Asked], object] = lambda _: None
    then: Fault = passes


TAKEN = ["--to", "file:taken#staging_password"]


def taken(asked: Asked) -> None:
    asked.canaries.user.file("taken", "somebody else's")


def rotten(asked: Asked) -> None:
    """The same values in what is no array of fields: every parser's error would have them at
    hand.
    """
    for form in (
        '{{"key": {}, "value": {}}}',
        '[{{"key": {}, "value": {}]',
        '[{{"label": {}, "value": {}}}]',
        "[{}, {}]",
    ):
        asked.send(form.format(*map(json.dumps, asked.typed)).encode())


NOWHERE = {
    "a dry run": Case(0, ["--to", "file:out/pw#staging_password", "--dry-run"]),
    "a dry run as JSON": Case(
        0, ["--to", "file:out/pw#staging_password", "--dry-run", "--output", "json"]
    ),
    "a place that is taken": Case(14, TAKEN, taken),
    "a place that is taken, as JSON": Case(14, [*TAKEN, "--output", "json"], taken),
    "a value that not every reader of a dotenv file takes alike": Case(
        14, ["--to", "dotenv:out/x.env#PW=staging_password"]
    ),
    "too many answers": Case(17, [], lambda asked: asked.answer("x", "y")),
    "what opens and is no answer": Case(13, ["--pick", "nobody"], rotten),
    "an answer that is not what the target takes": Case(
        13, ["--to", "file:out/pw?decode=hex#staging_password"]
    ),
    "a refusal": Case(3, then=says(401, '{"message":"Unauthorized"}')),
    "no answer": Case(7, then=reset_after),
    "a target that is none": Case(2, ["--to", "nowhere:x#key"]),
    "a key that is none": Case(2, ["--key", "env:CANARY_ENV"]),
}


@pytest.mark.parametrize("name", NOWHERE)
def test_where_it_comes_to_nothing_it_stands_nowhere(
    bare: Terminal, service: RunningService, faulty: Faulty, name: str
) -> None:
    case = NOWHERE[name]
    asked = Asked(bare, service, faulty.base_url)
    case.before(asked)
    faulty.plan(then=case.then)
    watched = asked.watch(*case.words)
    assert watched.done.code == case.code, watched.done
    assert leaks(asked.canaries, watched, len(faulty.received()), None, None) == []
    assert watched.executed == []


def test_what_is_kept_is_ciphertext(
    bare: Terminal, service: RunningService, faulty: Faulty
) -> None:
    asked = Asked(bare, service, faulty.base_url)
    taken(asked)
    watched = asked.watch(*TAKEN)
    (record,) = [content for name, content in watched.left.items() if name.endswith(".jsonl")]
    assert b'"data":"' in record
    assert Detector(asked.canaries.secrets(watched)).find(record) == set()


CHECKS = """
[checks.passes]
argv = ["/bin/sh", "-c", "read -r content; exit 0"]
[checks.refuses]
argv = ["/bin/sh", "-c", "read -r content; exit 1"]
"""


@pytest.mark.parametrize(("check", "code"), [("passes", 0), ("refuses", 14)])
def test_a_check_gets_values_by_its_standard_input_and_no_other_way(
    bare: Terminal, service: RunningService, faulty: Faulty, check: str, code: int
) -> None:
    asked = Asked(bare, service, faulty.base_url)
    # The command's environment is the user's own, but for our variables.
    del bare.environ["CANARY_ENV"]
    bare.environ["SEALPIPE_CONFIG"] = str(bare.file("checks.toml", CHECKS))
    watched = asked.watch("--check", check, "--dry-run", "--to", "file:out/pw#staging_password")
    assert watched.done.code == code, watched.done
    (pipe,) = [place for place in watched.streams if "pipe:" in place]
    cut(watched, pipe, asked.typed, as_json)
    assert leaks(asked.canaries, watched, len(faulty.received()), None, None) == []
    ((program, *_, path),) = watched.executed
    assert not any(word.startswith(b"SEALPIPE_") for word in watched.executed[0]), (program, path)


# -- in a program -------------------------------------------------------------------------------


def test_neither_results_nor_errors_nor_logs_show_a_value(
    bare: Terminal, service: RunningService, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    asked = Asked(bare, service, service.base_url)
    rotten(asked)
    detector = Detector(
        {f"typed {number}": value.encode() for number, value in enumerate(asked.typed)}
    )
    (tmp_path / "taken").write_text("x")
    told: list[object] = []
    with asked.client() as client:
        collected = client.collect(asked.receipt, state=tmp_path / "state", on_progress=told.append)
        assert [field.value for field in collected.submissions[0].fields] == [
            Secret(value) for value in asked.typed
        ]
        with pytest.raises(SealpipeError) as caught:
            client.collect(
                asked.receipt, to=[f"file:{tmp_path}/taken#staging_password"],
                state=tmp_path / "state",
                on_progress=told.append,
            )  # fmt: skip
    assert len(collected.unreadable) == 4
    things = [collected, *collected.submissions, *collected.unreadable, collected.problem(), *told]
    text = "\n".join([*map(shown, things), exposed(caught.value), caplog.text])
    assert detector.find(text.encode("utf-8", "surrogatepass")) == set()
