"""Link and passcode that are sent: each stands in its own message and nowhere else, whatever goes
wrong.

As in `test_a_share_leaks_nothing`: one real process under strace, and every byte that leaves it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple
from uuid import uuid4

import pytest

from cli.leaks.canaries import SHARE, Canaries, canary
from sealpipe_rehearsal.running_service import RunningService
from support.fake_web import Asked, Receiver
from support.leaks import Detector, Found
from support.ports import silent_port
from support.strace import Watched
from support.terminal import Terminal

CODE = "left in work/out/it"


class Setting:
    """A user with canaries, one of them the webhook's signing secret, and who receives."""

    def __init__(self, user: Terminal, service: RunningService, receiver: Receiver) -> None:
        self.canaries = Canaries(user, service, service.base_url)
        self.receiver = receiver
        self.user = user
        self.signing = canary("signing")
        self.who = "kim-7f3a-91c2-5e0d-44b7"  # no word that a message may have
        self.token = f"t0ken-{uuid4().hex}"
        user.file("out/.keep", "")
        user.environ |= {"SEALPIPE_PLUGIN_WEBHOOK__SECRET": self.signing, "WHO": self.who}

    def watch(self, *words: str) -> Watched:
        return self.canaries.watch(*words)

    def words(self, *, passcode_to_receiver: bool) -> list[str]:
        hook, file = f"{self.receiver.target}?for={{who}}&token={self.token}", "file:out/it"
        send, passcode_to = (file, hook) if passcode_to_receiver else (hook, file)
        return [*SHARE, "--send", send, "--passcode-to", passcode_to, "--param", "who=env:WHO"]

    def leaks(self, watched: Watched) -> list[Found]:
        """What stands where it does not belong."""
        secrets = {**self.canaries.secrets(watched), "signing secret": self.signing.encode()}
        detector = Detector(secrets)
        mine = [*self.receiver.secrets, *self._written()]
        found: list[Found] = []
        for place, data in watched.places():
            if place.startswith("TCP:"):
                data = data.replace(self.canaries.authorization.encode(), b"")
                for hook in self.receiver.hooks:
                    data = data.replace(hook.body, _without(hook))
            elif place.startswith(("work/out/", CODE)):
                for secret in mine:
                    data = b"" if data == f"{secret}\n".encode() else data
            found += detector.find(data, place)
        address = Detector(
            {"recipient": self.who.encode(), "token in the address": self.token.encode()}
        )
        found += address.find(watched.done.err.encode(), "stderr")
        found += Detector({"token in the address": self.token.encode()}).find(
            watched.done.out.encode(), "stdout"
        )
        return sorted(found)

    def _written(self) -> list[str]:
        file = self.user.here / "out/it"
        return [file.read_text().rstrip("\n")] if file.exists() else []


def _without(hook: Asked) -> bytes:
    """A message with its one secret taken out, where it is and where the text has it, and no more
    often.
    """
    members = hook.json
    secret = members.pop("passcode" if members["event"] == "passcode" else "link")
    assert members["text"].count(secret) == 1
    return json.dumps(
        {**members, "text": members["text"].replace(secret, "")}, ensure_ascii=False
    ).encode()


@pytest.fixture
def setting(bare: Terminal, service: RunningService) -> Iterator[Setting]:
    with Receiver() as receiver:
        yield Setting(bare, service, receiver)


class Case(NamedTuple):
    code: int
    words: Sequence[str] = ()
    answers: Callable[[Asked], int | None] = lambda _: 204
    messages: int = 1
    kept: bool = False


CASES = {
    "a message": Case(0),
    "as JSON": Case(0, ["--output", "json"]),
    "a text of one's own": Case(0, ["--message-template", "text.txt"]),
    "refused": Case(11, answers=lambda _: 403, kept=True),
    "refused, as JSON": Case(11, ["--output", "json"], lambda _: 403, kept=True),
    "failed": Case(11, answers=lambda _: 500, kept=True),
    "no answer": Case(11, answers=lambda _: None, kept=True),
    "led away": Case(11, answers=lambda _: 307, kept=True),
    "nobody listens": Case(
        11, ["--views", "2", "--send", f"webhook:http://127.0.0.1:{silent_port()}/"], kept=True
    ),
    "a dry run": Case(0, ["--dry-run"], messages=0),
    "a wrong target": Case(2, ["--views", "2", "--send", "file:out/nowhere/x"], messages=0),
    "a wrong text": Case(2, ["--message-template", "prod.env"], messages=0),
}


@pytest.mark.parametrize("passcode_to_receiver", [False, True], ids=["the link", "the passcode"])
@pytest.mark.parametrize("name", CASES)
def test_what_is_sent_stands_in_its_own_message_only(
    setting: Setting, name: str, *, passcode_to_receiver: bool
) -> None:
    case = CASES[name]
    setting.receiver.answers = case.answers
    setting.user.file("text.txt", "Für {title}: {link}\n")
    watched = setting.watch(*setting.words(passcode_to_receiver=passcode_to_receiver), *case.words)
    assert (watched.done.code, len(setting.receiver.hooks)) == (case.code, case.messages), (
        watched.done
    )
    assert setting.leaks(watched) == []
    assert watched.executed == []
    assert len(setting.user.outbox()) == int(case.kept)


def test_what_is_left_is_listed_and_finished_without_leaking(setting: Setting) -> None:
    setting.receiver.answers = lambda _: None
    assert setting.watch(*setting.words(passcode_to_receiver=False)).done.code == 11
    for words, code in ((["--list"], 0), (["--list", "--output", "json"], 0), ([], 11)):
        watched = setting.watch("resume", *words)
        assert (watched.done.code, setting.leaks(watched)) == (code, [])
    setting.receiver.answers = lambda _: 204
    watched = setting.watch("resume", "--resend")
    assert (watched.done.code, setting.leaks(watched)) == (0, [])
    assert len(set(setting.receiver.secrets)) == 1


@pytest.mark.parametrize(
    "code",
    [
        "sealpipe.cli.deliver.announce = lambda share: print(share.link.reveal(), file=sys.stderr)",
        (
            'sealpipe.cli.deliver.announce = lambda share: open("log", '
            '"w").write(share.deliveries.passcode.reveal())'
        ),
        (
            "sealpipe.cli.deliver.announce = lambda m: "
            "sealpipe.cli.render.print_note(m.deliveries.items[0].recipient.to)"
        ),
    ],
    ids=["the link on stderr", "the passcode in a file", "the recipient on stderr"],
)
def test_a_share_that_leaks_what_it_sends_does_not_pass(setting: Setting, code: str) -> None:
    """By a module that Python imports by itself at its start, and that waits for ours."""
    hook = f"import sys, sealpipe.cli.deliver, sealpipe.cli.render\n{code}\n"
    setting.user.file("site/sitecustomize.py", hook)
    setting.user.environ["PYTHONPATH"] = str(setting.user.here / "site")
    watched = setting.watch(*setting.words(passcode_to_receiver=False))
    assert watched.done.code == 0, watched.done
    assert setting.leaks(watched) != []


def test_an_audit_webhook_gets_neither_values_nor_links_and_its_token_is_nowhere_else(
    setting: Setting,
) -> None:
    token = uuid4().hex  # a header has no room for all that a canary has
    user, receiver = setting.user, setting.receiver
    user.file("audit.token", token)
    user.file(
        "audit.toml",
        f'[audit]\nfile = "{user.here}/audit.jsonl"\n[audit.webhook]\nrequired = true\n'
        f'url = "{receiver.base_url}/audit"\ntoken = "file:{user.here}/audit.token"\n',
    )
    user.environ["SEALPIPE_CONFIG"] = "audit.toml"
    watched = setting.watch(*SHARE, "--send", "file:out/it", "--output", "json")
    assert watched.done.code == 0, watched.done
    posts = [each for each in receiver.asked if each.path == "/audit"]
    assert len(posts) >= 2
    secrets = {**setting.canaries.secrets(watched), "token": token.encode()}
    detector = Detector(secrets)
    for post in posts:
        assert post.headers["authorization"] == f"Bearer {token}"
        assert not detector.find(post.body)
    places = [
        place for place, data in watched.places() if Detector({"t": token.encode()}).find(data)
    ]
    assert all(place.startswith(("TCP:", "work/audit.token")) for place in places), places
