"""The credential before this one: it opens what was sealed to it, tells what still depends on it,
and is never sent.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sealpipe import Client, CredentialError
from sealpipe.api.operation import Credential
from sealpipe.wire import keys, link
from support.faulty import Faulty
from support.job import Job, made


class Rotation:
    """An account with requests sealed to the key before its job's."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.previous = job.service.create_key(account=job.account).reveal()

    def request(self, api_key: str, **options: Any) -> str:
        secret = Credential.parse(api_key).custody_secret
        assert secret is not None
        pair = keys.from_custody_secret(secret.reveal())
        return made(
            self.job, public_key=pair.public_key, fields=[("Password", "password")], **options
        )

    def answer(self, code: str, value: str = "s3cret") -> None:
        self.job.service.submitter().submit(
            link.collect_link(self.job.service.link_base_url, code), {"Password": value}
        )

    def run(self, *words: str, **environ: str | None) -> Any:
        return self.job.run(*words, **{"SEALPIPE_API_KEY_PREVIOUS": self.previous, **environ})

    def listed(self, *words: str) -> tuple[int, list[str]]:
        """The exit code, and the codes that depend on the previous key."""
        done = self.run("requests", "list", "--sealed-to", "previous", *words)
        return done.code, [line.split("\t")[0] for line in done.out.splitlines()]


@pytest.fixture
def rotation(job: Job) -> Rotation:
    return Rotation(job)


# -- collect ---------------------------------------------------------------------------------------


def test_in_python_it_is_an_argument(rotation: Rotation) -> None:
    code = rotation.request(rotation.previous)
    rotation.answer(code, "from before")
    job = rotation.job
    arguments = {
        "api_key": job.api_key,
        "base_url": job.service.base_url,
        "link_base_url": job.service.link_base_url,
    }
    with Client(**arguments, api_key_previous=rotation.previous) as client:
        result = client.collect(code)
    assert [field.value.reveal() for each in result.submissions for field in each.fields] == [
        "from before"
    ]


def test_from_settings_reads_it(
    rotation: Rotation, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    code = rotation.request(rotation.previous)
    rotation.answer(code)
    job = rotation.job
    for name, value in {
        **job.terminal.environ,
        "SEALPIPE_API_KEY_PREVIOUS": rotation.previous,
    }.items():
        if name.startswith("SEALPIPE_"):
            monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with Client.from_settings() as client:
        assert client.collect(code).status == "collected"


@pytest.mark.usefixtures("extended")
def test_it_is_never_sent(rotation: Rotation, proxied: Callable[..., Faulty]) -> None:
    server = proxied()
    code = rotation.request(rotation.previous)
    rotation.answer(code)
    environ = {"SEALPIPE_BASE_URL": server.base_url}
    for words in (
        ("collect", code, "--after", "expire"),
        ("requests", "list", "--sealed-to", "previous"),
        ("requests", "list", "--sealed-to", "previous", "--status", "expired"),
        ("share", "-f", "env:DB_PASSWORD"),
        ("doctor",),
    ):
        rotation.run(*words, **environ)
    sent = b"".join(received.head + received.body for received in server.received())
    assert len(server.received()) > 6
    key_id, auth, custody = rotation.previous.partition("_sk_live_")[2].split(".")
    assert [part for part in (key_id, auth, custody) if part.encode() in sent] == []
    assert rotation.job.api_key.rpartition(".")[0].encode() in sent, (
        "what is looked for would be found"
    )


# -- a previous key that is none -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "says"),
    [
        (lambda _: "svc_sk_live_canary", "parts separated by dots"),
        (lambda key: key.rpartition(".")[0], "it has no custody secret, and so opens nothing"),
        (lambda key: key[:-4], "custody secret"),
        (lambda key: f" {key}", "white space"),
        (lambda key: f"Bearer {key}", "Bearer"),
        (lambda _: "canary", "does not start with"),
    ],
    ids=["cut off", "two parts", "too short", "blank", "Bearer", "nonsense"],
)
@pytest.mark.parametrize(
    "words", [("collect", "x"), ("share", "-f", "env:DB_PASSWORD"), ("requests", "list")]
)
def test_a_malformed_previous_credential_is_named_and_not_shown(
    rotation: Rotation, shape: Callable[[str], str], says: str, words: tuple[str, ...]
) -> None:
    before = len(rotation.job.service.seen())
    wrong = shape(rotation.previous)
    done = rotation.run(*words, SEALPIPE_API_KEY_PREVIOUS=wrong)
    assert (done.code, done.out) == (2, ""), done
    assert "SEALPIPE_API_KEY_PREVIOUS: " in done.err
    assert says in done.err
    assert "set it to the whole credential, all three parts, or unset it" in done.err
    assert "canary" not in done.err
    assert rotation.previous[-20:-5] not in done.err
    assert len(rotation.job.service.seen()) == before


def test_in_python_a_malformed_one_is_the_same_error(rotation: Rotation) -> None:
    job = rotation.job
    with pytest.raises(
        CredentialError, match="SEALPIPE_API_KEY_PREVIOUS: it has no custody secret"
    ):
        Client(
            api_key=job.api_key,
            base_url=job.service.base_url,
            link_base_url=job.service.link_base_url,
            api_key_previous=rotation.previous.rpartition(".")[0],
        )


# -- what depends on it ----------------------------------------------------------------------------


@pytest.mark.usefixtures("extended")
def test_nothing_depends_on_it_and_the_list_is_empty(rotation: Rotation) -> None:
    rotation.request(rotation.job.api_key)
    assert rotation.listed() == (0, [])
    assert rotation.listed("--status", "expired") == (0, [])
    done = rotation.run("requests", "list", "--sealed-to", "previous", "--output", "json")
    assert (done.code, done.json["requests"]) == (0, [])


@pytest.mark.usefixtures("extended")
def test_of_ended_requests_what_was_submitted_tells_the_key(rotation: Rotation) -> None:
    answered, empty, ours = (
        rotation.request(key)
        for key in (rotation.previous, rotation.previous, rotation.job.api_key)
    )
    rotation.answer(answered)
    rotation.answer(ours)
    for code in (answered, empty, ours):
        assert rotation.run("requests", "expire", code).code == 0
    assert rotation.listed() == (0, [])
    assert rotation.listed("--status", "expired") == (15, [answered])
    done = rotation.run("requests", "list", "--sealed-to", "credential", "--status", "expired")
    assert (done.code, done.out.split("\t")[0]) == (0, ours)
    assert rotation.run("requests", "purge", answered, "--confirm", answered).code == 0
    assert rotation.listed("--status", "expired") == (0, [])
