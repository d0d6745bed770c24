"""`sealpipe rehearse --job`: the commands of CI jobs, with all that they need, and nobody hears of it."""

from __future__ import annotations

import pytest

from sealpipe_rehearsal.running_service import RunningService
from support.fake_chat import FakeSlack
from support.terminal import Terminal, addresses

JOB = ("rehearse", "--job", "--", "sealpipe")


def test_options_stay_but_nothing_is_sent_or_stored(bare: Terminal, service: RunningService) -> None:
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
    asked = bare.sealpipe(*JOB, "request", "--ask=user=User name:text", "--ask=Staging password", "--receipt=r.json")
    assert asked.code == 0, asked
    done = bare.sealpipe(*JOB, "collect", f"--to=file:{bare.here}/pw#staging_password", "--", "r.json")
    assert done.code == 0, done
    assert f"would write the new file {bare.here}/pw (staging_password)" in done.out
    assert not (bare.here / "pw").exists()


@pytest.mark.parametrize("variable", [{}, {"SEALPIPE_REQUEST_ASK": "Password"}])
def test_a_code_or_a_receipt_that_is_not_there_gets_a_submission(bare: Terminal, variable: dict[str, str]) -> None:
    for operand in ("code:ABC", "%23x", "no-such.json"):
        done = bare.sealpipe(*JOB, "collect", "--print", "--output=json", "--key=env:SEED", "--", operand, **variable)
        (submission,) = done.json["submissions"]
        assert [field["value"] for field in submission["fields"]] == ["stand-in for Password"]


@pytest.mark.parametrize("kind", ["shares", "requests"])
def test_codes_are_expired_as_they_are_given(bare: Terminal, kind: str) -> None:
    done = bare.sealpipe(*JOB, kind, "expire", "--output=json", "--", "-code")
    assert (done.code, done.json["short_code"]) == (0, "-code"), done


@pytest.mark.parametrize("bind", [(), ("--bind=release:v1",)])
def test_a_sealed_link_is_made_up_with_its_text(bare: Terminal, bind: tuple[str, ...]) -> None:
    done = bare.sealpipe(*JOB, "unseal", "--expect=ABC", *bind, SEALPIPE_SEALED_LINK="of-a-real-account")
    assert done.code == 0, done
    assert done.out.startswith("http://127.0.0.1:")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("rehearse", "--job"), "--job needs a command"),
        ((*JOB, "batch", "run", "--", "vendors.toml"), "--job does not know this command"),
        ((*JOB, "requests", "purge", "--", "x"), "--job does not know this command"),
        ((*JOB, "collect", "--", "pyproject.json"), "is not"),
    ],
)
def test_what_cannot_be_rehearsed_is_refused(bare: Terminal, words: tuple[str, ...], told: str) -> None:
    bare.file("pyproject.json", "{}")
    done = bare.sealpipe(*words)
    assert done.code == 2, done
    assert told in done.err
