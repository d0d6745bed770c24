"""`sealpipe rehearse --job`: the commands of CI jobs, with all that they need, and nobody hears of
it.
"""

from __future__ import annotations

import re

import pytest

from sealpipe_rehearsal.commands import ci_job
from sealpipe_rehearsal.running_service import RunningService
from support.ci_jobs import batch_file
from support.fake_chat import FakeSlack
from support.parts import ROOT
from support.terminal import Terminal, addresses

JOB = ("rehearse", "--job", "--", "sealpipe")


def test_options_stay_but_nothing_is_sent_or_stored(
    bare: Terminal, service: RunningService
) -> None:
    with FakeSlack() as slack:
        environ = {
            **addresses(service),
            "SEALPIPE_API_KEY": service.create_key().reveal(),
            "SEALPIPE_SHARE_FIELD": "User=text:deploy\nPassword=env:DB_PASSWORD",
            "SEALPIPE_SHARE_RECEIPT": "share.json",
            "SEALPIPE_SHARE_TITLE": "Staging",
            "SEALPIPE_SHARE_SEND": "slack:",
            "SEALPIPE_SHARE_ALSO_TO": f"dir:{bare.here}/kept",
            "SLACK_WEBHOOK_URL": slack.webhook_url,
            "GITLAB_CI": "true",
        }
        done = bare.sealpipe(*JOB, "share", **environ)
        assert done.code == 0, done
        assert slack.messages == []
    assert "made-up values for empty variables: DB_PASSWORD" in done.err
    assert "ignored in a rehearsal, which sends and stores nothing: send, also-to" in done.err
    assert '"title": "Staging"' in (bare.here / "share.json").read_text()
    assert not (bare.here / "kept").exists()
    assert service.seen() == []


def test_a_request_is_collected_by_its_receipt_and_only_shown(bare: Terminal) -> None:
    asked = bare.sealpipe(
        *JOB, "request", "--ask=user=User name:text", "--ask=Staging password", "--receipt=r.json"
    )
    assert asked.code == 0, asked
    done = bare.sealpipe(
        *JOB, "collect", f"--to=file:{bare.here}/pw#staging_password", "--", "r.json"
    )
    assert done.code == 0, done
    assert f"would write the new file {bare.here}/pw (staging_password)" in done.out
    assert not (bare.here / "pw").exists()


def test_options_and_codes_are_written_as_always(bare: Terminal) -> None:
    done = bare.sealpipe(
        *JOB, "share", "-f", "User=text:deploy", "--field", "Password=env:P", "--output", "json"
    )
    assert (done.code, done.json["outcome"]) == (0, "created"), done
    assert "made-up values for empty variables: P" in done.err
    done = bare.sealpipe(
        *JOB, "collect", "ABC", "--to", f"file:{bare.here}/pw#Staging password", "--after", "expire"
    )
    assert (done.code, "would write" in done.out) == (0, True), done
    done = bare.sealpipe(*JOB, "shares", "expire", "-odd", "--output", "json")
    assert (done.code, done.json["short_code"]) == (0, "-odd"), done
    assert bare.sealpipe(*JOB, "share", "--field").code == 2


@pytest.mark.parametrize("variable", [{}, {"SEALPIPE_REQUEST_ASK": "Password"}])
def test_a_code_or_a_receipt_that_is_not_there_gets_a_submission(
    bare: Terminal, variable: dict[str, str]
) -> None:
    for operand in ("code:ABC", "%23x", "no-such.json"):
        done = bare.sealpipe(
            *JOB, "collect", "--print", "--output=json", "--key=env:SEED", "--", operand, **variable
        )
        (submission,) = done.json["submissions"]
        assert [field["value"] for field in submission["fields"]] == ["stand-in for Password"]


BATCH = batch_file("email:acme@example.com")
MAIL = {
    "SEALPIPE_PLUGIN_EMAIL__HOST": "mail.example",
    "SEALPIPE_PLUGIN_EMAIL__SENDER": "us@example.com",
    "SEALPIPE_PLUGIN_EMAIL__USERNAME": "us",
    "SEALPIPE_PLUGIN_EMAIL__PASSWORD": "",
}
"""A job of a fork: its secret is empty."""


def test_a_batch_is_planned_without_the_logins_of_its_channels(bare: Terminal) -> None:
    bare.file("vendors.toml", BATCH)
    done = bare.sealpipe(*JOB, "batch", "plan", "--", "vendors.toml", **MAIL)
    assert (done.code, done.out) == (0, "create\tacme\n"), done
    assert "made-up values for empty variables: SEALPIPE_PLUGIN_EMAIL__PASSWORD" in done.err


def test_a_job_gets_no_setting_of_the_real_service(bare: Terminal, service: RunningService) -> None:
    show = bare.file("show", "#!/bin/sh\nenv\n", 0o700)
    key = service.create_key().reveal()
    real = {
        **addresses(service),
        "SEALPIPE_API_KEY": key,
        "SEALPIPE_API_KEY_PREVIOUS": key,
        "SEALPIPE_STATE_DIR": "real",
    }
    own = {
        "SEALPIPE_SHARE_TITLE": "mine",
        "SEALPIPE_REQUEST_TITLE": "other",
        "SEALPIPE_STORE__X__PLUGIN": "vault",
    }
    done = bare.sealpipe(
        "rehearse", "--job", "--", str(show), "share", **real, **own, SEALPIPE_SHARE_SEND="slack:"
    )
    seen = dict(line.partition("=")[::2] for line in done.out.splitlines())
    assert not set(real.values()) & set(seen.values())
    assert {name for name in seen if name in own} == {
        "SEALPIPE_SHARE_TITLE",
        "SEALPIPE_STORE__X__PLUGIN",
    }
    assert not {"SEALPIPE_SHARE_SEND", "SEALPIPE_API_KEY_PREVIOUS"} & set(seen)


def test_the_page_names_every_option_that_is_left_out() -> None:
    page = (
        (ROOT / "docs/reference/rehearsal.md")
        .read_text(encoding="utf-8")
        .partition("### A command of a CI job")[2]
    )
    named = set(re.findall(r"`([a-z-]+)`", page.partition("\n## ")[0]))
    left_out = {name.replace("_", "-") for names in ci_job.LEFT_OUT.values() for name in names}
    assert left_out <= named


@pytest.mark.parametrize("kind", ["shares", "requests"])
def test_codes_are_expired_as_they_are_given(bare: Terminal, kind: str) -> None:
    done = bare.sealpipe(*JOB, kind, "expire", "--output=json", "--", "-code")
    assert (done.code, done.json["short_code"]) == (0, "-code"), done


@pytest.mark.parametrize("bind", [(), ("--bind=release:v1",)])
def test_a_sealed_link_is_made_up_with_its_text(bare: Terminal, bind: tuple[str, ...]) -> None:
    done = bare.sealpipe(
        *JOB, "unseal", "--expect=ABC", *bind, SEALPIPE_SEALED_LINK="of-a-real-account"
    )
    assert done.code == 0, done
    assert done.out.startswith("http://127.0.0.1:")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("rehearse", "--job"), "--job needs a command"),
        ((*JOB, "batch", "run", "--", "vendors.toml"), "--job does not know this command"),
        ((*JOB, "requests", "purge", "--", "x"), "--job does not know this command"),
        ((*JOB, "collect", "--", "pyproject.json"), "is not"),
        ((*JOB, "collect", "--to=file:x#a\x1bb", "--", "code"), "control character"),
        ((*JOB, "unseal", f"--bind={'x' * 513}"), "the rehearsal could not make up a share"),
    ],
)
def test_what_cannot_be_rehearsed_is_refused(
    bare: Terminal, words: tuple[str, ...], told: str
) -> None:
    bare.file("pyproject.json", "{}")
    done = bare.sealpipe(*words)
    assert done.code == 2, done
    assert told in done.err
