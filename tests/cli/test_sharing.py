"""`sealpipe share`: what stands on which stream, and what arrives at the service and at the
recipient.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sealpipe_rehearsal.running_service import RunningService
from sealpipe_rehearsal.server import start
from support.terminal import ABROAD, Terminal, created, opened

SECRET = {"DB_PASSWORD": "s3cret & 'quoted' é"}
CODE = r"[A-Za-z0-9_-]+"


def share(user: Terminal, *words: str, **environ: str | None) -> Any:
    """`share -f env:DB_PASSWORD` and more words."""
    return user.sealpipe("share", "-f", "env:DB_PASSWORD", *words, **{**SECRET, **environ})


# -- what arrives at the service ----------------------------------------------------------------

ALWAYS = {"encryption_type", "data", "access_token"}
USUAL = {*ALWAYS, "expired_at", "access_counts_left", "item_key_wrap"}


@pytest.mark.parametrize(
    ("words", "members", "absent"),
    [
        (
            [],
            {"access_counts_left": 1, "encryption_type": "e2ee-aes256-gcm"},
            {"title", "passcode_verifier"},
        ),
        (["--views", "5"], {"access_counts_left": 5}, set()),
        (["--views", "unlimited"], {}, {"access_counts_left"}),
        (["--no-expiry"], {}, {"expired_at"}),
        (
            ["--expires-at", "2099-01-02T03:04:05+01:00"],
            {"expired_at": "2099-01-02T02:04:05Z"},
            set(),
        ),
        (["--timed-view", "30"], {"timed_view": 30}, set()),
        (["--notify-on", "viewed,expired"], {"notify_on": ["viewed", "expired"]}, set()),
        (["--title", "Prod"], {"title": "Prod"}, {"description"}),
        (
            ["--description", "Wer's liest, ist da: ✓"],
            {"description": "Wer's liest, ist da: ✓"},
            {"title"},
        ),
        (["--custody", "off"], {}, {"item_key_wrap"}),
    ],
)
def test_each_option_arrives_as_the_member_that_the_specification_names(
    user: Terminal,
    service: RunningService,
    words: list[str],
    members: dict[str, Any],
    absent: set[str],
) -> None:
    assert share(user, *words).code == 0
    (body,) = created(service)
    assert {name: body.get(name) for name in members} == members
    assert not absent & body.keys()
    assert body.keys() == (USUAL | members.keys()) - absent


@pytest.mark.parametrize(("text", "hours"), [(None, 72), ("90m", 1.5), ("2d", 48), ("1w", 168)])
def test_a_duration_arrives_as_the_moment_it_ends(
    user: Terminal, service: RunningService, text: str | None, hours: float
) -> None:
    before = datetime.now(UTC)
    assert share(user, *(["--expires-in", text] if text else [])).code == 0
    ends = datetime.fromisoformat(created(service)[0]["expired_at"])
    span = timedelta(hours=hours)
    assert before + span - timedelta(seconds=1) <= ends <= datetime.now(UTC) + span


def test_a_passcode_arrives_as_its_verifier_only_and_the_link_wants_it(
    user: Terminal, service: RunningService
) -> None:
    done = share(user, "--passcode-from", "env:CODE", CODE="open sesame")
    (request,) = service.seen()
    assert b"open sesame" not in bytes(request)
    assert re.fullmatch(r"[A-Za-z0-9_-]{43}", json.loads(request.body)["passcode_verifier"])
    assert opened(service, done.out, "open sesame") == {"DB_PASSWORD": SECRET["DB_PASSWORD"]}


@pytest.mark.parametrize(
    ("custody", "key", "outcome", "wrapped"),
    [
        ("auto", "self", "stored", True),
        ("require", "self", "stored", True),
        ("off", "self", "none", False),
        ("auto", "none", "none", False),
    ],
)
def test_custody_is_what_was_asked_for_and_what_the_key_can(
    user: Terminal, service: RunningService, custody: str, key: str, outcome: str, *, wrapped: bool
) -> None:
    user.at(service, custody=key)
    done = share(user, "--custody", custody, "--output", "json")
    assert (done.code, done.json["custody"]) == (0, outcome)
    assert ("item_key_wrap" in created(service)[-1]) is wrapped
    assert opened(service, done.json["link"]) == {"DB_PASSWORD": SECRET["DB_PASSWORD"]}


def test_auto_custody_falls_back_once_with_a_warning_where_the_key_has_none(
    user: Terminal, service: RunningService
) -> None:
    user.at(service, custody="none")
    done = share(user)
    first, second = (seen for seen in service.seen() if seen.method == "POST")
    assert (
        done.code,
        dict(first.headers)["idempotency-key"] != dict(second.headers)["idempotency-key"],
    ) == (0, True)
    assert json.loads(second.body) == {
        k: v for k, v in json.loads(first.body).items() if k != "item_key_wrap"
    }
    assert "without a wrap" in done.err


# -- where values come from ---------------------------------------------------------------------


def test_several_fields_come_in_order_with_their_labels_and_types(
    user: Terminal, service: RunningService
) -> None:
    user.file("prod.env", "TOKEN=abc\nOTHER=def\n")
    user.file("key.pem", "line one\nline two\n")
    done = user.sealpipe(
        "share", "-f", "Root password=env:DB_PASSWORD", "-f", "dotenv:prod.env#TOKEN", "-f",
        "file:key.pem",
        "-f", "User=text:deploy", "-f", "Piped=stdin:", stdin="from a pipe", **SECRET,
    )  # fmt: skip
    fields = service.recipient().open_link(done.out.strip())
    assert [(field.key, field.type) for field in fields] == [
        ("Root password", "password"),
        ("TOKEN", "password"),
        ("key.pem", "multiline"),
        ("User", "text"),
        ("Piped", "password"),
    ]


@pytest.mark.parametrize(
    ("words", "keys"),
    [
        (["env:A", "Two=env:B"], ["A", "Two"]),
        (["-f", "Two=env:B", "env:A"], ["Two", "A"]),
        (["env:A", "-f", "Two=env:B"], ["Two", "A"]),
        ([], ["C"]),
    ],
)
def test_a_bare_reference_is_a_field_and_replaces_those_of_the_variable(
    user: Terminal, service: RunningService, words: list[str], keys: list[str]
) -> None:
    environ = {"A": "a", "B": "b", "C": "c", "SEALPIPE_SHARE_FIELD": "env:C"}
    done = user.sealpipe("share", *words, **environ)
    assert [each.key for each in service.recipient().open_link(done.out.strip())] == keys


@pytest.mark.parametrize(
    "value", ["from a pipe\n", "\ufeffmarked", " blanks ", "a\r\nb\x00c", "'\"\\$(id)`"]
)
def test_what_is_piped_in_arrives_exactly(
    user: Terminal, service: RunningService, value: str
) -> None:
    done = user.sealpipe("share", "-f", "Piped=stdin:", stdin=value)
    assert opened(service, done.out) == {"Piped": value}


def test_the_service_tag_is_read_off_the_credential(bare: Terminal) -> None:
    with start(service_tag="crs") as other:
        bare.at(other)
        assert bare.environ["SEALPIPE_API_KEY"].startswith("crs_sk_live_")
        done = share(bare)
        assert done.code == 0
        assert opened(other, done.out) == {"DB_PASSWORD": SECRET["DB_PASSWORD"]}


def test_in_a_gitlab_job_a_link_needs_a_file_and_nothing_is_sent_without(
    user: Terminal, service: RunningService
) -> None:
    done = share(user, GITLAB_CI="true", **ABROAD)
    assert (done.code, done.out, service.seen()) == (2, "", [])
    assert "--link-file" in done.err
    done = share(user, "--link-file", "link.txt", GITLAB_CI="true", CI_PROJECT_DIR=str(user.here))
    assert (done.code, done.out) == (0, "")
    assert opened(service, (user.here / "link.txt").read_text())
    assert sorted(path.name for path in user.here.iterdir()) == ["link.txt"], (
        "no state in the checkout"
    )
