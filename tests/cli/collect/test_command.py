"""`sealpipe collect`: what it prints where, and what it ends with."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.collect.submitter import ask, hands_out, kept
from sealpipe.collect.results import choose_worst_error
from sealpipe.errors import (
    DeliveryError,
    NoSubmissionError,
    NotFoundError,
    PendingError,
    PluginError,
    PublicKeyMismatchError,
    SealpipeError,
    StateError,
    TooManySubmissionsError,
    UnreadableSubmissionError,
)
from sealpipe.sinks.targets import make_plain_name
from support.commands import SEALPIPE
from support.job import PAIR, Job, Proxied, deletes, ended
from support.outside_text import commands
from support.terminal import PATIENCE

HOSTILE = "\x1b[31m\x07\x9b2J\r\n::add-mask::x\n##[error]y\n##vso[task.x]z\u202e\u2028"
HOSTILE += "\n##teamcity[x]\n##utp:x\nsection_start:1:x\n--- x"
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e]")


def test_json_is_one_object_for_one_and_a_list_for_several(job: Job) -> None:
    asked, silent = ask(job), ask(job)
    code = asked.answer()
    bad = asked.send("AA==")
    done = job.run("collect", asked.code, "--output", "json")
    told = done.json
    assert (done.code, done.error["exit_code"]) == (13, 13)
    assert list(told)[:4] == ["schema", "short_code", "status", "count"]
    assert (told["schema"], told["status"], told["count"]) == (1, "collected", 2)
    (row,) = told["submissions"]
    assert row["fields"] == [
        {"key": "Staging password", "value": "hunter2", "type": "password"},
        {"key": "User name", "value": "bob", "type": "text"},
    ]
    assert row["short_code"] == code
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", row["created_at"])
    assert [each["short_code"] for each in told["unreadable"]] == [bad]
    assert Path(told["kept_in"]).is_file()

    both = job.run("collect", asked.code, silent.code, "--output", "json")
    assert (both.code, [each["status"] for each in both.json]) == (13, ["collected", "pending"])
    assert [each["schema"] for each in both.json] == [1, 1]


def test_a_folder_has_a_folder_for_each_answer_with_names_of_ours(job: Job) -> None:
    asked = ask(job)
    asked.send_fields(
        ("Staging password", "a"),
        ("../../x", "b"),
        ("User name", "c"),
        ("Staging password", "d"),
        ("LD_PRELOAD", "e"),
    )
    assert job.run("collect", asked.file(), "--dir", "out").code == 0
    (folder,) = (job.terminal.here / "out").iterdir()
    files = [path for path in folder.iterdir() if path.name != "index.json"]
    assert {path.name: path.read_text() for path in files} == {
        "staging_password": "a", "field-2": "b", "user": "c", "field-4": "d", "field-5": "e",
    }  # fmt: skip
    index = json.loads((folder / "index.json").read_text())
    assert index["schema"] == 1
    assert [(row["file"], row["key"]) for row in index["fields"]][1] == ("field-2", "../../x")
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_folder_takes_as_many_files_as_it_says_and_no_more(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sealpipe.collect.open.MAX_FILES", 3)
    asked = ask(job)
    asked.send_fields(*((f"field {number}", "x") for number in range(3)))
    assert job.run("collect", asked.file(), "--dir", "out").code == 0
    (folder,) = (job.terminal.here / "out").iterdir()
    asked.send_fields(*((f"field {number}", "x") for number in range(4)))
    done = job.run("collect", asked.file(), "--pick", "newest", "--dir", "out")
    assert "it has 4 fields, but a directory accepts at most 3" in done.err
    assert done.code == 13
    assert list((job.terminal.here / "out").iterdir()) == [folder]


def test_a_dry_run_tells_what_would_go_where_and_sends_and_stores_nothing(
    job: Job, proxied: Proxied
) -> None:
    asked, server = ask(job), proxied()
    asked.answer()
    asked.send("AA==")
    job.terminal.environ["SEALPIPE_BASE_URL"] = server.base_url
    words = [
        "collect",
        asked.file(),
        "--to",
        "file:pw#staging_password",
        "--after",
        "expire",
        "--dry-run",
    ]
    done = job.run(*words)
    assert (done.code, done.out.count("\n")) == (13, 1)
    assert "would write the new file pw (staging_password)" in done.out
    told = job.run(*words, "--output", "json")
    assert [each["keys"] for each in told.json["planned"]] == [["staging_password"]]
    assert {request.method for request in server.received()} == {"GET"}
    assert [path.name for path in job.terminal.here.iterdir()] == ["r.json"]
    assert job.left() == []
    for text in (done.out, done.err, told.out, told.err):
        assert "hunter2" not in text


# -- words and receipts -------------------------------------------------------------------------


def test_a_file_that_is_named_like_a_code_is_never_read(job: Job) -> None:
    asked, planted = ask(job), ask(job, key=PAIR)
    asked.answer()
    job.terminal.file(asked.code, planted.receipt.dump())
    for word in (asked.code, f"code:{asked.code}"):
        assert job.run("collect", "--", word).out.startswith("Staging password: hunter2\n")


def test_a_code_that_looks_like_a_file_is_a_code_behind_its_prefix(job: Job) -> None:
    for word in ("code:a.json", "code:a/b"):
        done = job.run("collect", word)
        assert done.code == 6, done
    assert job.run("collect", "a.json").code == 2


@pytest.mark.parametrize("code", ["-Abc_def-Gh1", "-hAb", "-o", "-h", "-wait", "---", "--a-b"])
def test_a_code_may_begin_with_a_dash(job: Job, code: str) -> None:
    """One in sixty-four does: nobody's script should fail for it."""
    asked = ask(job)
    asked.answer()
    job.service.service.database.rows(
        "UPDATE requests SET short_code = :new WHERE short_code = :old",
        {"new": code, "old": asked.code},
    )
    words = [code] if len(code) > 2 and code[1] != "-" else ["--", code]
    for options in ([], ["--pick", "newest"]):
        done = job.run("collect", *options, *words)
        assert done.out.startswith("Staging password: hunter2\n"), done


def test_a_receipt_may_be_called_after_such_a_code(job: Job) -> None:
    asked = ask(job)
    asked.answer()
    for name in ("-Abc_def-Gh1.json", "-a/b"):
        asked.file(name)
        done = job.run("collect", "--pick", "newest", name)
        assert done.out.startswith("Staging password: hunter2\n"), done


# -- exit codes ---------------------------------------------------------------------------------


def test_several_codes_each_have_their_outcome_and_the_worst_is_the_exit_code(job: Job) -> None:
    fine, silent, foreign, expired = ask(job), ask(job), ask(job, key=PAIR), ask(job)
    fine.answer()
    expired.end()
    outcome = {
        (silent.code,): 15,
        (expired.code,): 16,
        (foreign.code,): 13,
        ("no-such-code",): 6,
        (fine.code, silent.code): 15,
        (silent.code, expired.code): 16,
        (silent.code, foreign.code, fine.code, "no-such-code"): 13,
    }
    for codes, code in outcome.items():
        done = job.run("collect", *codes)
        assert done.code == code, done
        assert ("hunter2" in done.out) is (fine.code in codes)
        assert all(each in done.err for each in codes if each not in ("no-such-code",)), done
    job.terminal.file("taken", "x")
    done = job.run(
        "collect", fine.code, foreign.code, "--to", "file:taken{request}?mode=create#User name"
    )
    assert done.code == 13
    job.terminal.file(f"taken-{make_plain_name(fine.code)}", "x")
    done = job.run("collect", fine.code, foreign.code, "--to", "file:taken-{request}#User name")
    assert done.code == 14
    assert f"taken-{make_plain_name(fine.code)}" in done.err
    assert f"submissions to {foreign.code} are encrypted to a key that is not available" in done.err


ERRORS: dict[int, SealpipeError] = {
    11: DeliveryError("x"),
    14: PluginError("x"),
    13: UnreadableSubmissionError("x"),
    2: StateError("x"),
    6: NotFoundError("x"),
    12: PublicKeyMismatchError("x"),
    17: TooManySubmissionsError("x"),
    16: NoSubmissionError("x"),
    15: PendingError("x"),
}


@given(st.lists(st.sampled_from(sorted(ERRORS)), min_size=1))
def test_of_several_exit_codes_11_wins_then_14_13_and_15_last(codes: list[int]) -> None:
    found = choose_worst_error([None, *(ERRORS[code] for code in codes)])
    assert found is not None
    first = [code for code in (11, 14, 13) if code in codes]
    if first:
        assert found.exit_code == first[0]
    else:
        assert found.exit_code in codes
        assert found.exit_code != 15 or set(codes) == {15}
        assert found.exit_code != 16 or set(codes) <= {15, 16}


def test_every_failed_sink_is_reported(job: Job) -> None:
    asked = ask(job)
    asked.answer()
    for name in ("a", "b"):
        job.terminal.file(name, "x")
    done = job.run(
        "collect", asked.file(), "--to", "file:a#user", "--to", "file:b#user", "--to", "file:c#user"
    )
    assert (done.code, done.out.count("\n")) == (14, 1)
    assert all(f"not stored in file:{name}" in done.err for name in "ab")
    assert "file:b: the target already has other content" in done.err
    assert "reference: file:a" in done.err
    assert len(kept(job.state / "requests")) == 1


# -- stdout, and ending -------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["text", "json"])
def test_what_goes_to_stdout_is_ended_once_stdout_took_it(job: Job, form: str) -> None:
    asked = ask(job)
    asked.answer()
    words = ["collect", asked.code, "--after", "expire", "--output", form]
    for stdout in ("closed", "full"):
        command = [*SEALPIPE, *words]
        redirect = ">&-" if stdout == "closed" else ">/dev/full"
        done = job.terminal.run(["sh", "-c", f'"$@" {redirect}', "sh", *command])
        assert (done.code, asked.active()) == (11, True), done
    assert not any(
        seen.method == "DELETE" and asked.code in seen.target for seen in job.service.seen()
    )
    done = job.run(*words)
    assert (done.code, asked.active(), "hunter2" in done.out) == (0, False, True)
    assert f"{asked.code}: expired" in done.err


def test_a_failing_place_keeps_every_delete_away(job: Job, proxied: Proxied) -> None:
    asked, server = ask(job), proxied()
    asked.answer()
    job.terminal.environ["SEALPIPE_BASE_URL"] = server.base_url
    job.terminal.file("taken", "x")
    words = [
        "collect",
        asked.file(),
        "--to",
        "file:taken#user",
        "--dir",
        "out",
        "--after",
        "expire",
    ]
    assert [job.run(*words).code for _ in range(2)] == [14, 14]
    assert deletes(server) == 0
    (job.terminal.here / "taken").unlink()
    done = job.run(*words)
    assert (done.code, deletes(server)) == (0, 1)


def test_two_commands_at_once_store_once(job: Job) -> None:
    asked = ask(job)
    asked.answer()
    words = ["collect", asked.file(), "--to", "file:pw#staging_password", "--after", "expire"]
    found = [ended(each) for each in [job.start(*words) for _ in range(3)]]
    assert [each.code for each in found] == [0, 0, 0], found
    assert sorted(each.out.rpartition("\t")[2] for each in found) == [
        "already there\n",
        "already there\n",
        "stored\n",
    ]


# -- CI -----------------------------------------------------------------------------------------

ACTIONS = {"GITHUB_ACTIONS": "true", "CI": "true", "GITHUB_REPOSITORY": "a/b", "GITHUB_RUN_ID": "1"}


@pytest.mark.parametrize("form", ["text", "json"])
def test_on_github_every_value_is_masked_before_it_stands_on_stdout(job: Job, form: str) -> None:
    asked = ask(job, "Staging password", "Key:multiline")
    typed = 'pass"wörd\\x', "line one\nline two"
    asked.send_fields(("Staging password", typed[0]), ("Key", typed[1]))
    process = subprocess.run(
        [*SEALPIPE, "collect", asked.code, "--output", form, "--print"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=job.terminal.with_environ(ACTIONS),
        cwd=job.terminal.here,
        timeout=PATIENCE,
        check=False,
    )
    lines = process.stdout.decode().splitlines()
    masks = [line.removeprefix("::add-mask::") for line in lines if line.startswith("::add-mask::")]
    masks = [mask.replace("%0A", "\n").replace("%0D", "\r").replace("%25", "%") for mask in masks]
    (at,) = [
        number
        for number, line in enumerate(lines)
        if "Staging password" in line and "mask" not in line
    ]
    assert not any("add-mask" in line for line in lines[at:])
    assert {*typed, "line one", "line two"} <= set(masks)
    told = "\n".join(lines[at : at + 2])
    for mask in sorted(masks, key=len, reverse=True):
        told = told.replace(mask, "***")
    assert not any(part in told for part in ('pass"', "rd\\x", "line one", "two")), (
        "what the runner would show"
    )


def test_where_stderr_is_a_file_neither_masks_nor_values_are_written(job: Job) -> None:
    asked = ask(job)
    asked.answer()
    with (job.terminal.here / "err").open("wb") as err:
        done = subprocess.run(
            [*SEALPIPE, "collect", asked.code, "--print"],
            stdout=subprocess.PIPE,
            stderr=err,
            env=job.terminal.with_environ(ACTIONS),
            cwd=job.terminal.here,
            timeout=PATIENCE,
            check=False,
        )
    assert (done.returncode, done.stdout) == (2, b"")
    assert "hunter2" not in (job.terminal.here / "err").read_text()


# -- what a stranger typed, on a terminal and in a log ------------------------------------------


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize(
    "words", [[], ["--dir", "out"], ["--to", "file:x#staging_password"], ["--dry-run"]], ids=str
)
def test_nothing_that_was_typed_controls_a_terminal_or_a_runner(
    job: Job, words: list[str], form: str
) -> None:
    asked = ask(job)
    asked.send_fields(
        ("Staging password", HOSTILE), (HOSTILE, HOSTILE), (f"::set-output name=a::{HOSTILE}", "x")
    )
    asked.send(asked.sealed(HOSTILE.encode()))
    done = job.run("collect", asked.file(), "--output", form, *words)
    assert done.code == 13
    for text in (done.out, done.err):
        assert not CONTROL.search(text), repr(text)
        assert not commands(text), repr(text)


def test_nor_does_a_code_that_the_service_made_up(job: Job, proxied: Proxied) -> None:
    asked = ask(job)
    asked.answer()

    def made_up(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{**rows[0], "short_code": f"{number}{HOSTILE}"} for number in range(2)]

    job.terminal.environ["SEALPIPE_BASE_URL"] = proxied(then=hands_out(made_up)).base_url
    for words in (
        ["--pick", "each", "--dir", "out"],
        [],
        ["--output", "json"],
        ["--pick", "each", "--output", "json"],
    ):
        done = job.run("collect", asked.code, *words)
        assert done.code == (0 if "each" in words else 17)
        for text in (done.out, done.err):
            assert not CONTROL.search(text), repr(text)
            assert not commands(text), repr(text)
    assert sorted(path.name[:2] for path in (job.terminal.here / "out").iterdir()) == ["x.", "x."]


# -- waiting ------------------------------------------------------------------------------------


def test_interrupted_while_it_waits_it_ends_with_130(job: Job) -> None:
    asked = ask(job)
    process = job.start("collect", asked.code, "--wait", "1h")
    assert process.stderr is not None
    assert re.fullmatch(
        rb"waiting for 1 request, (1:00:00|59:\d\d) left\n", process.stderr.readline()
    )
    process.send_signal(signal.SIGINT)
    done = ended(process)
    assert (done.code, done.out) == (130, "")
    asked.answer()
    assert job.run("collect", asked.code).code == 0


def test_on_a_terminal_it_counts_down_in_one_line(job: Job) -> None:
    asked = ask(job)
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*SEALPIPE, "collect", asked.code, "--wait", "1h"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=theirs,
        env=job.terminal.with_environ({}),
        cwd=job.terminal.here,
    )
    os.close(theirs)
    shown = b""
    while shown.count(b"next check in") < 3:
        shown += os.read(ours, 4096)
    process.send_signal(signal.SIGINT)
    try:
        while more := os.read(ours, 4096):
            shown += more
    except OSError:
        pass  # the other side has closed: that is how a terminal ends
    os.close(ours)
    out, _ = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (130, b"")
    lines = shown.decode().split("\r")
    form = re.compile(
        r"waiting for 1 request, (1:00:00|59:(\d\d)) left, next check in 0:(\d\d)\x1b\[K"
    )
    moments = [
        (int(found[2] or 60), int(found[3])) for found in map(form.fullmatch, lines[1:4]) if found
    ]
    (left, look), *_ = moments
    assert moments == [(left - passed, look - passed) for passed in range(3)]
    assert left >= 50 and look >= 10, "a loaded machine may begin late"  # noqa: PT018
    assert shown.endswith(b"\r\x1b[Ksealpipe: interrupted\r\n")


def test_an_answer_that_comes_while_it_waits_is_collected(job: Job) -> None:
    asked = ask(job)
    process = job.start("collect", asked.code, "--wait", "2s")
    assert process.stderr is not None
    assert process.stderr.readline().startswith(b"waiting for 1")
    asked.answer()
    done = ended(process)
    assert (done.code, done.out.splitlines()[0]) == (0, "Staging password: hunter2")


# -- who is told --------------------------------------------------------------------------------


def test_the_audit_records_the_collection_without_values(job: Job) -> None:
    asked, silent = ask(job), ask(job)
    asked.answer("c4nary-value", "c4nary-user")
    file = job.terminal.here / "audit.jsonl"
    config = job.terminal.file("config.toml", f'[audit]\nfile = "{file}"\n')
    words = [
        "collect",
        asked.file(),
        silent.code,
        "--to",
        "file:{request}#user=User name",
        "--after",
        "expire",
    ]
    assert job.run(*words, "--dry-run", SEALPIPE_CONFIG=str(config)).code == 15
    assert not file.exists() or file.read_text() == ""
    assert job.run(*words, SEALPIPE_CONFIG=str(config)).code == 15
    begun, ending, over, first, second = [
        json.loads(line) for line in file.read_text().splitlines()
    ]
    assert (begun["outcome"], begun["short_codes"], begun["sinks"]) == (
        "begun",
        [asked.code, silent.code],
        ["file/file"],
    )
    assert (ending["event"], ending["outcome"], ending["short_codes"]) == (
        "expire",
        "begun",
        [asked.code],
    )
    assert (over["event"], over["outcome"], over["short_codes"]) == (
        "expire",
        "expired",
        [asked.code],
    )
    assert (first["event"], first["short_code"], first["outcome"]) == (
        "collect",
        asked.code,
        "collected",
    )
    assert (first["count"], first["unreadable"], first["ended"]) == (1, 0, True)
    assert len(first["stored"]) == 1
    assert (second["short_code"], second["outcome"]) == (silent.code, "PendingError")
    assert "c4nary" not in file.read_text()


def test_help_names_every_option(job: Job) -> None:
    done = job.run("collect", "--help")
    assert done.code == 0
    for option in ("--key", "--wait", "--pick", "--to", "--mode", "--dir", "--after", "--dry-run"):
        assert option in done.out + done.err
