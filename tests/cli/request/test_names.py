"""A name is the owner's: it is kept on this machine and in the receipt, makes no path, and never
leaves.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sealpipe.cli.expire import select_created
from sealpipe.errors import UsageError
from sealpipe.request.options import plan_request
from sealpipe.share.options import plan_share
from sealpipe.state.creations import Creation, find_creation, list_creations, note_creation
from support import faults
from support.faulty import Faulty
from support.job import Job

NAME = "c4nary.of-the_vendor"
BASE = "https://api.example/v1"
NOW = datetime(2026, 11, 23, tzinfo=UTC)


def test_the_service_never_gets_a_name(job: Job) -> None:
    before = len(job.service.seen())
    assert (
        job.run("request", "-a", "Password", "--name", NAME, "--receipt", "{name}.json").code == 0
    )
    assert job.run("share", "-f", "text:x", "--name", NAME, "--link-file", "{name}.link").code == 0
    assert job.run("requests", "list").code == job.run("shares", "list").code == 0
    seen = job.service.seen()[before:]
    assert len(seen) >= 4
    assert all(
        NAME.encode() not in repr((each.target, each.headers)).encode() + each.body for each in seen
    )
    assert sorted(path.name for path in job.terminal.here.iterdir()) == [
        f"{NAME}.json",
        f"{NAME}.link",
    ]


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "a/b", "/", "a\\b", "a b", "a\n", "é", "{name}", "~", "a:b", "\0", "x" * 101],
)
def test_a_name_that_could_be_more_than_a_name_is_refused(name: str) -> None:
    for make in (
        lambda: plan_share(["text:x"], name=name),
        lambda: plan_request(["Password"], name=name),
    ):
        with pytest.raises(UsageError, match="the name has other characters") as refused:
            make()
        assert not name.strip(" .") or name not in f"{refused.value.message}{refused.value.remedy}"


@pytest.mark.parametrize("name", ["...", "-", "_", ".a", "x" * 100])
def test_any_other_name_of_these_characters_is_accepted(name: str) -> None:
    assert plan_share(["text:x"], name=name).name == name


def test_a_name_is_filled_into_a_target_and_other_braces_stay() -> None:
    options = plan_share(["text:x"], name="db", also_to=["file:a{{name}}/{name}{{{{/{name}"])
    assert [each.fill({}).body for each in options.targets] == ["a{name}/db{{/db"]
    assert [each.text for each in options.targets] == ["file:a{{name}}/db{{{{/db"]


def test_a_name_that_holds_the_credential_is_refused(job: Job) -> None:
    secret = job.terminal.environ["SEALPIPE_API_KEY"].rpartition(".")[2]
    for words in (("request", "-a", "Password"), ("share", "-f", "text:x", "--link-file", "l")):
        done = job.run(*words, "--name", secret)
        assert (done.code, job.entries()) == (2, [])
        assert secret not in done.out + done.err


def test_a_name_survives_a_lost_response(
    proxied: Callable[..., Faulty], job_at: Callable[..., Job]
) -> None:
    server = proxied(then=faults.reset_after)
    job = job_at(server)
    done = job.run(
        "request", "-a", "Password", "--name", NAME, "--receipt", "{name}.json", "--deadline", "2s",
        GITHUB_RUN_ID="7",
        GITHUB_ACTIONS="true", GITHUB_REPOSITORY="o/r", GITHUB_RUN_ATTEMPT="1", GITHUB_JOB="ask",
    )  # fmt: skip
    assert done.code == 9, done
    server.mend()
    assert job.run("resume", "--all").code == 0
    receipt = json.loads((job.terminal.here / f"{NAME}.json").read_text(encoding="utf-8"))
    assert (receipt["name"], receipt["run"]) == (NAME, "o/r/7/1/ask")
    assert f"\tactive\t{NAME}\tPassword\n" in job.run("requests", "list").out


def test_requests_of_different_names_can_share_a_target(job: Job) -> None:
    for name in ("one", "two"):
        asked = job.run("request", "-a", "Password", "--name", name, "--receipt", "{name}.json")
        job.service.submitter().submit(asked.out.strip(), {"Password": f"canary-{name}"})
    done = job.run("collect", "one.json", "two.json", "--to", "file:{name}.txt")
    assert done.code == 0, done
    assert [(job.terminal.here / f"{name}.txt").read_text() for name in ("one", "two")] == [
        "canary-one",
        "canary-two",
    ]
    job.run("request", "-a", "Password", "--name", "one", "--receipt", "again.json")
    refused = job.run("collect", "one.json", "again.json", "--to", "file:{name}.txt")
    assert (refused.code, "there are several requests" in refused.err) == (2, True)


def test_what_is_known_is_found_by_code_and_service(tmp_path: Path) -> None:
    folder = tmp_path / "created"
    one = Creation(
        "request",
        BASE,
        "a/b",
        NOW,
        NAME,
        "Title",
        "o/r/7/1/ask",
        "https://links.example/r/a%2Fb",
        created_at=NOW,
    )
    note_creation(folder, one)
    note_creation(folder, one)
    assert find_creation(folder, BASE, "request", "a/b") == one
    assert find_creation(folder, BASE, "share", "a/b") is None
    assert find_creation(folder, "https://other.example/v1", "request", "a/b") is None
    assert list_creations(folder, "request") == list_creations(folder, "request", BASE) == [one]
    assert (
        list_creations(folder, "share")
        == list_creations(folder, "request", "https://other.example/v1")
        == []
    )
    assert [oct(each.stat().st_mode & 0o777) for each in (folder, *folder.iterdir())] == [
        "0o700",
        "0o600",
    ]


def test_a_file_of_another_version_is_read_and_a_damaged_one_ignored(tmp_path: Path) -> None:
    note_creation(tmp_path / "c", Creation("share", BASE, "abc", created_at=NOW, name=NAME))
    (file,) = (tmp_path / "c").iterdir()
    members = json.loads(file.read_text())
    for known in ({}, {"unknown": 1}):
        file.write_text(json.dumps({**members, **known}))
        assert [each.name for each in list_creations(file.parent, "share")] == [NAME]
    for name in ("run", "link", "title", "expires_at"):
        file.write_text(json.dumps({key: value for key, value in members.items() if key != name}))
        assert [each.name for each in list_creations(file.parent, "share")] == [NAME]
    for content in (
        "",
        "[]",
        "{",
        "null",
        json.dumps({**members, "schema": 2}),
        json.dumps({**members, "name": 1}),
    ):
        file.write_text(content)
        assert list_creations(file.parent, "share") == []


@pytest.mark.parametrize(
    ("pattern", "run", "is_match"),
    [
        (None, None, True),
        ("staging-*", None, True),
        ("staging-db", "o/r/7/1/ask", True),
        ("staging", None, False),
        ("Staging-*", None, False),
        (None, "o/r/7", True),
        (None, "o/r/7/", False),  # what follows is missing, such as an empty variable
        (None, "o/r", True),
        (None, "o/r/7/2", False),
        (None, "o/r/7/1/as", False),
        ("staging-*", "o/x", False),
    ],
)
def test_names_match_patterns_and_runs_by_whole_parts(
    pattern: str | None,
    run: str | None,
    is_match: bool,  # noqa: FBT001
) -> None:
    created = Creation("share", BASE, "abc", created_at=NOW, name="staging-db", run="o/r/7/1/ask")
    assert select_created([created], pattern, run) == [created] * is_match
    nameless = Creation("share", BASE, "abc", created_at=NOW)
    assert select_created([nameless], "*", None) == select_created([nameless], None, "o/r") == []
