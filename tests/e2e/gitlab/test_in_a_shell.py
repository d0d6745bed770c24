"""The templates end to end, as jobs of a shell runner: each job in a checkout of its own."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from e2e.gitlab.gitlab_ci import (
    ANSWERED,
    BOUND,
    SUBMITS,
    Pipeline,
    Template,
    handed,
    log_in,
    read_dotenv,
)
from sealpipe import errors
from sealpipe_rehearsal.running_service import RunningService
from support.fake_chat import FakeSlack
from support.fake_web import Reply
from support.openbao import Bao
from support.outside_text import ended, renamed
from support.terminal import Terminal, created, opened

CANARY = "canary-7f3a91"
ODD = 'Zoë\'s "5$$" `touch pwned`; $(touch pwned) | \\ # {x}'


def test_a_share_hands_its_short_code_to_a_later_job_and_its_link_sealed(
    pipeline: Pipeline, service: RunningService, tmp_path: Path
) -> None:
    file = pipeline.place / "deploy/fields.txt"
    file.parent.mkdir()
    file.write_text(
        "# what the contractor needs\n\nUser=text:deploy\n  # indented\nTwo lines=env:TWO_LINES\n"
    )
    pipeline.variables |= {
        "DB_PASSWORD": CANARY,
        "TWO_LINES": f"{CANARY}\n two",
        "OUT": str(tmp_path),
    }
    ran = pipeline.run(
        (
            "share",
            {
                "stage": "before",
                "job-name": "hand-over",
                "fields": "Password=env:DB_PASSWORD\n",
                "fields-file": "deploy/fields.txt",
                "title": ODD,
                "views": "3",
                "seal-link": "true",
            },
        ),
        tell={
            "stage": "after",
            "script": [
                'echo "got $SHARE_SHORT_CODE until $SHARE_EXPIRES_AT"',
                (
                    f'sealpipe unseal {BOUND} --link-file "$OUT/link" --sealed-file '
                    "sealpipe-link.sealed"
                ),
            ],
        },
    )
    assert ran.code == 0, ran.log
    (body,) = created(service)
    assert body["title"] == ODD.replace("$$", "$")
    receipt = json.loads(ran.artifact("hand-over", "sealpipe-share.json").read_text())
    report = read_dotenv(ran.report("hand-over"))
    assert report == {
        "SHARE_SHORT_CODE": receipt["short_code"],
        "SHARE_EXPIRES_AT": receipt["expires_at"],
    }
    assert f"got {receipt['short_code']} until {receipt['expires_at']}" in ran.log
    link = (tmp_path / "link").read_text()
    seen = opened(service, link)
    assert seen == {"Password": CANARY, "User": "deploy", "Two lines": f"{CANARY}\n two"}
    assert not list(pipeline.place.rglob("pwned"))
    everything = ran.log + "".join(
        path.read_text(errors="replace")
        for path in (pipeline.place / ".gitlab-ci-local/artifacts").rglob("*")
        if path.is_file()
    )
    assert CANARY not in everything
    assert link.partition("#")[2].strip() not in everything


def test_the_runners_tags_are_those_of_the_project_and_nothing_else_is_inherited(
    pipeline: Pipeline,
) -> None:
    share = (
        "share",
        {"stage": "before", "rehearse": "true", "fields": "P=text:x", "seal-link": "true"},
    )
    ran = pipeline.run(
        share, default={"tags": ["linux"], "before_script": ["echo not-in-our-image"]}
    )
    assert ran.code == 0, ran.log
    assert "not-in-our-image" not in ran.log


def test_a_link_that_slack_did_not_take_is_sent_by_a_later_job_that_has_the_outbox(
    pipeline: Pipeline, service: RunningService
) -> None:
    resume = [
        "mkdir -m 700 .sealpipe && tar -xf sealpipe-state.tar -C .sealpipe",
        "SEALPIPE_STATE_DIR=.sealpipe sealpipe resume --all --resend",
    ]
    with FakeSlack() as slack:
        slack.instead.append(Reply(500))
        pipeline.variables |= {"DB_PASSWORD": CANARY, "SLACK_WEBHOOK_URL": slack.webhook_url}
        ran = pipeline.run(
            ("share", {"stage": "before", "fields": "env:DB_PASSWORD", "send": "slack:"}),
            resume={"stage": "after", "script": resume, "when": "on_failure"},
        )
        assert "FAIL 11" in ran.log, ran.log
        assert " PASS  resume" in ran.log, ran.log
        (posted,) = slack.messages
    link = re.search(rf"{re.escape(service.link_base_url)}[^\s>|]+", json.dumps(posted))
    assert link is not None
    assert opened(service, link[0].rstrip('"\\')) == {"DB_PASSWORD": CANARY}
    assert len([seen for seen in service.seen() if seen.target == "/v1/shares"]) == 1
    assert re.search(r"#1[\w-]{43}", ran.log) is None
    assert read_dotenv(ran.report("sealpipe-share"))["SHARE_SHORT_CODE"] in link[0]


def test_what_a_vendor_submits_is_stored_by_a_later_job_that_logs_in_to_vault_by_its_id_token(
    pipeline: Pipeline, service: RunningService, one_bao: Bao
) -> None:
    log_in(pipeline, one_bao)
    ran = pipeline.run(
        (
            "request",
            {
                "stage": "before",
                "job-name": "ask",
                "ask": "Staging password\nuser=User name:text\n",
            },
        ),
        (
            "collect",
            {
                "stage": "after",
                "job-name": "store",
                "requests": "sealpipe-request.json",
                "to": "vault:secret/vendor/acme#password=staging_password,user=user\n",
                "after": "expire",
            },
        ),
        vendor=SUBMITS,
    )
    assert ran.code == 0, ran.log
    stored = one_bao.call("GET", "secret/data/vendor/acme")["data"]
    assert stored == ANSWERED
    assert ANSWERED["password"] not in ran.log
    code = json.loads(ran.artifact("ask", "sealpipe-request.json").read_text())["short_code"]
    assert read_dotenv(ran.report("ask"))["REQUEST_SHORT_CODE"] == code
    assert any(seen.method == "DELETE" and seen.target.endswith(code) for seen in service.seen())


def test_only_a_missing_submission_is_a_warning(pipeline: Pipeline, user: Terminal) -> None:
    code = user.sealpipe("request", "-a", "Password", "--output", "json").json["short_code"]
    pipeline.variables["SEALPIPE_API_KEY"] = user.environ["SEALPIPE_API_KEY"]
    collect = {"requests": "$ACME_REQUEST", "to": "file:/nowhere/x"}
    pipeline.variables["ACME_REQUEST"] = code
    pending = pipeline.run(("collect", collect))
    assert pending.code == 0, pending.log
    assert "WARN 15" in pending.log
    strict = pipeline.run(("collect", {**collect, "allow-exit-codes": [99]}))
    # The program itself ends with 0 wherever some exit code is allowed; how it takes the job is in
    # its log.
    assert "FAIL 15" in strict.log
    pipeline.variables["ACME_REQUEST"] = "no-such-code"
    missing = pipeline.run(("collect", collect))
    assert "FAIL 6" in missing.log


def test_when_a_later_job_fails_share_and_request_are_ended_and_what_is_gone_is_fine(
    pipeline: Pipeline, service: RunningService
) -> None:
    pipeline.variables["DB_PASSWORD"] = CANARY
    ran = pipeline.run(
        ("share", {"stage": "before", "fields": "env:DB_PASSWORD", "seal-link": "true"}),
        ("request", {"stage": "before", "ask": "Password"}),
        (
            "expire",
            {
                "shares": "$SHARE_SHORT_CODE\n\n$NEVER_REPORTED\n  no-such-code",
                "requests": "$REQUEST_SHORT_CODE",
            },
        ),
        fails={"stage": "after", "script": ["false"]},
    )
    assert ran.code != 0
    share = read_dotenv(ran.report("sealpipe-share"))["SHARE_SHORT_CODE"]
    request = read_dotenv(ran.report("sealpipe-request"))["REQUEST_SHORT_CODE"]
    assert f"expired {share}" in ran.log
    assert f"expired {request}" in ran.log
    assert ended(service) == [share, "no-such-code", request]
    assert " PASS  sealpipe-expire" in ran.log


def test_expiring_goes_on_after_one_that_fails_and_tells_of_it(
    pipeline: Pipeline, service: RunningService
) -> None:
    ran = pipeline.run(
        (
            "expire",
            {"shares": "-one\ntwo", "missing-ok": "false", "rules": [{"when": "always"}]},
        ),
        passes={"stage": "before", "script": ["true"]},
    )
    assert "FAIL 6" in ran.log  # the program itself ends with 0 wherever some exit code is allowed
    assert ended(service) == ["-one", "two"]


ODD_CODES = ("# x", "$(id)")


def test_codes_that_begin_with_any_sign_are_really_expired(
    pipeline: Pipeline, user: Terminal, service: RunningService
) -> None:
    for what in ("shares", "requests"):
        for code in ODD_CODES:
            words = ("share", "-f", "text:x") if what == "shares" else ("request", "-a", "Password")
            renamed(
                service, what, user.sealpipe(*words, "--output", "json").json["short_code"], code
            )  # type: ignore[arg-type]
    pipeline.variables |= {
        "SEALPIPE_API_KEY": user.environ["SEALPIPE_API_KEY"],
        "CODES": "\n".join(ODD_CODES),
    }
    ran = pipeline.run(
        ("expire", {"shares": "$CODES", "requests": "$CODES", "rules": [{"when": "always"}]})
    )
    assert ran.code == 0, ran.log
    assert user.sealpipe("shares", "list").out == user.sealpipe("requests", "list").out == ""


def test_a_request_whose_code_begins_with_a_sign_is_really_collected(
    pipeline: Pipeline, user: Terminal, service: RunningService, tmp_path: Path
) -> None:
    user.sealpipe("request", "-a", "Password", "--output", "json", "--receipt", "r.json")
    code = json.loads((user.here / "r.json").read_text())["short_code"]
    link = f"{service.link_base_url}/r/{code}"
    service.submitter().submit(link, {"Password": "hunter22"})
    renamed(service, "requests", code, "#x")
    pipeline.variables |= {
        "SEALPIPE_API_KEY": user.environ["SEALPIPE_API_KEY"],
        "CODE": "#x",
        "OUT": str(tmp_path),
    }
    ran = pipeline.run(("collect", {"requests": "$CODE", "to": "file:$OUT/answer"}))
    assert ran.code == 0, ran.log
    assert (tmp_path / "answer").read_text() == "hunter22"


LINES = ("#x", "# x y", "$(touch pwned)", "$NEVER_REPORTED", "-x", "*", "END", "\\", "%24x")


@pytest.mark.parametrize(("missing_ok", "code"), [("true", 0), ("false", 6)])
def test_every_line_is_a_code_whatever_it_begins_with(
    tmp_path: Path, missing_ok: str, code: int
) -> None:
    """A variable that no job has reported stays as it is written at GitLab, unlike in the program
    above.
    """
    text = "\n".join(["", *(f"  {line} " for line in LINES), "\t"])
    environ = {"TEMPLATE_SHARES": text, "TEMPLATE_REQUESTS": "", "TEMPLATE_MISSING_OK": missing_ok}
    ended = [["shares", "expire", "--output", "text", "--", line] for line in LINES]
    assert handed("expire", tmp_path, environ) == (code, ended)


def test_without_a_code_the_expire_job_says_that_nothing_expired_and_is_a_warning(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    given = {"TEMPLATE_SHARES": " \n", "TEMPLATE_REQUESTS": "", "TEMPLATE_MISSING_OK": "true"}
    code, ended = handed("expire", tmp_path, given)
    assert ended == []
    assert Template.read("expire").job["allow_failure"] == {"exit_codes": [code]}
    ours = {getattr(each, "exit_code", None) for each in vars(errors).values()}
    assert {2, 6} < ours
    assert code not in ours, "no exit code of sealpipe's is a warning, too"
    assert capfd.readouterr().out.startswith(
        "sealpipe: no code given: nothing expired\n  set the input shares"
    )


def test_collect_is_handed_every_line_and_fails_as_sealpipe_does(tmp_path: Path) -> None:
    told = handed("collect", tmp_path, {"TEMPLATE_REQUESTS": "\n".join(LINES)})
    assert told == (6, [["collect", "--output", "text", "--", *LINES]])


@pytest.mark.parametrize(
    ("inputs", "told"),
    [
        ({"fields": "text:a"}, "add --print if you capture stdout"),
        ({"fields": "text:a", "seal-link": "true", "fields-file": "no-such-file"}, "no-such-file"),
        ({"fields": "# nothing", "seal-link": "true"}, "nothing to share"),
    ],
)
def test_what_cannot_be_shared_sends_nothing(
    pipeline: Pipeline, service: RunningService, inputs: dict[str, str], told: str
) -> None:
    pipeline.variables["SEALPIPE_LINK_BASE_URL"] = "https://links.example/s"  # no rehearsal's
    ran = pipeline.run(("share", inputs))
    assert ran.code != 0
    assert told in ran.log
    assert service.seen() == []
