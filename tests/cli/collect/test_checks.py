"""`collect --check`: what the command gets, and that nothing is stored of what does not pass it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from cli.collect.submitter import ask, hands_out, kept, values
from sealpipe import CheckError, UsageError
from support.job import Caller, Job, Proxied, deletes, ended

GOOD = "import json, sys; sys.exit('good' not in json.load(sys.stdin)['fields'][0]['value'])"


def checks(job: Job, **programs: str) -> None:
    """A config file with a check for each program in Python."""
    tables = [
        f"[checks.{name}]\nargv = {json.dumps([sys.executable, '-c', code])}\n"
        for name, code in programs.items()
    ]
    job.terminal.environ["SEALPIPE_CONFIG"] = str(job.terminal.file("checks.toml", "".join(tables)))


def is_over(process: int) -> bool:
    """Whether a process has ended, or is being killed: nobody may have waited for it yet."""
    state = Path(f"/proc/{process}/stat")
    return not state.exists() or state.read_text().rpartition(")")[2].split()[0] in "ZX"


def test_the_command_gets_the_fields_on_its_standard_input(job: Job) -> None:
    asked = ask(job)
    asked.answer('hunter2 é"\n\x1b', "bob")
    checks(job, keep="import sys; open('got.json', 'wb').write(sys.stdin.buffer.read())")
    assert (
        job.run("collect", asked.file(), "--check", "keep", "--to", "file:pw#staging_password").code
        == 0
    )
    got = json.loads((job.terminal.here / "got.json").read_bytes())
    assert (got["schema"], got["request"]) == (1, asked.code)
    assert got["submission"].partition(".")[0]
    assert got["created_at"].endswith("Z")
    assert [(each["id"], each["key"], each["type"], each["value"]) for each in got["fields"]] == [
        ("staging_password", "Staging password", "password", 'hunter2 é"\n\x1b'),
        ("user", "User name", "text", "bob"),
    ]


def test_a_submitter_cannot_choose_what_only_we_say(job: Job) -> None:
    asked = ask(job)
    rows = [
        {
            "key": "Staging password",
            "value": "x",
            "type": "password",
            "id": "user",
            "request": "other",
        }
    ]
    asked.send(asked.sealed(json.dumps(rows).encode()))
    checks(job, keep="import sys; open('got.json', 'wb').write(sys.stdin.buffer.read())")
    assert job.run("collect", asked.file(), "--check", "keep").code == 0
    got = json.loads((job.terminal.here / "got.json").read_bytes())
    assert (got["request"], got["fields"][0]["id"]) == (asked.code, "staging_password")


def test_a_submitter_writes_no_number_that_is_no_json(job: Job) -> None:
    asked = ask(job)
    rows = json.dumps(
        [{"key": "Staging password", "value": "v", "type": "password", "x": [{"y": 1}], "z": 2}]
    )
    rows = rows.replace("1}", "-1e999}").replace('"z": 2', '"z": ' + "9" * 5000)
    asked.send(asked.sealed(rows.encode()))
    checks(
        job, keeps="import shutil, sys; shutil.copyfileobj(sys.stdin.buffer, open('input', 'wb'))"
    )
    done = job.run("collect", asked.code, "--check", "keeps", "--print", "--output", "json")
    assert done.code == 0, done.err
    for text in ((job.terminal.here / "input").read_text(), done.out):
        assert "Infinity" not in text
        assert ('[{"y": "-1e999"}]' in text, '"z": "999' in text) == (True, True)


def test_the_command_gets_nothing_of_ours_in_its_environment(job: Job) -> None:
    asked = ask(job)
    asked.answer()
    checks(
        job,
        names=(
            "import os, sys; open('names', 'w').write(' '.join(os.environ)); "
            "sys.exit(sys.stdin.isatty())"
        ),
    )
    assert (
        job.run(
            "collect", asked.code, "--check", "names", "--to", "file:pw#pw=Staging password"
        ).code
        == 0
    )
    names = (job.terminal.here / "names").read_text().split()
    assert "PATH" in names
    assert [name for name in names if name.startswith("SEALPIPE_")] == []


@pytest.mark.parametrize(
    "code",
    [
        "pass",
        "import os; os.close(0)",
        "import os, sys; os.close(1); os.close(2); sys.stdin.read()",
        "import os; os.write(1, b'x' * 1_000_000); os.write(2, b'y' * 1_000_000)",
    ],
    ids=["reads nothing", "closes its input", "closes its output first", "writes much"],
)
def test_a_command_may_read_and_write_as_it_likes(job: Job, code: str) -> None:
    asked = ask(job)
    asked.answer("x" * 500_000)
    checks(job, any=code)
    done = job.run("collect", asked.file(), "--check", "any", "--to", "file:pw#staging_password")
    assert (done.code, len((job.terminal.here / "pw").read_text())) == (0, 500_000), done.err


def test_what_it_prints_is_shown_nowhere(job: Job) -> None:
    asked = ask(job)
    asked.answer("c4nary-password")
    checks(
        job,
        tells=(
            "import sys; text = sys.stdin.read(); print(text); print(text, file=sys.stderr); "
            "sys.exit(1)"
        ),
    )
    for words in ([], ["--output", "json"], ["--to", "file:pw#staging_password"], ["--dry-run"]):
        done = job.run("collect", asked.file(), "--check", "tells", *words)
        assert done.code == 14
        assert "c4nary" not in done.out + done.err
    assert not (job.terminal.here / "pw").exists()


def test_each_submission_is_checked_by_itself(job: Job) -> None:
    asked = ask(job)
    bad = asked.answer("bad")
    asked.answer("good-1")
    asked.answer("good-2")
    checks(job, good=GOOD)
    words = ["collect", asked.file(), "--pick", "each", "--check", "good", "--after", "expire"]
    done = job.run(*words, "--to", "file:{submission}#staging_password")
    assert (done.code, done.out.count("stored")) == (14, 2)
    stored = [
        path.read_text()
        for path in job.terminal.here.iterdir()
        if path.name not in ("r.json", "checks.toml")
    ]
    assert sorted(stored) == ["good-1", "good-2"]
    assert asked.active()
    assert [each["short_code"] for each in kept(job.state / "requests")] == [bad]


def test_what_did_not_pass_can_be_collected_later(job: Job) -> None:
    asked = ask(job)
    asked.answer()
    checks(job, later="import os, sys; sys.exit(not os.path.exists('ready'))")
    words = [
        "collect",
        asked.file(),
        "--check",
        "later",
        "--to",
        "file:pw#staging_password",
        "--after",
        "expire",
    ]
    assert (job.run(*words).code, asked.active()) == (14, True)
    job.terminal.file("ready", "")
    assert (job.run(*words).code, asked.active()) == (0, False)
    assert (job.terminal.here / "pw").read_text() == "hunter2"


def test_printed_values_pass_the_check_too_and_nothing_is_expired(
    job: Job, proxied: Proxied
) -> None:
    asked, server = ask(job), proxied()
    asked.answer("bad")
    asked.answer("good")
    job.terminal.environ["SEALPIPE_BASE_URL"] = server.base_url
    checks(job, good=GOOD)
    done = job.run("collect", asked.code, "--pick", "each", "--check", "good", "--after", "expire")
    assert (done.code, done.out.splitlines()) == (14, ["Staging password: good", "User name: bob"])
    assert deletes(server) == 0


def test_a_late_submission_is_checked_too(job: Job, proxied: Proxied) -> None:
    asked = ask(job)
    asked.answer("good")
    asked.answer("late")
    reads: list[int] = []

    def only_first(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        reads.append(len(rows))
        return rows if len(reads) > 1 else rows[:1]

    server = proxied(then=hands_out(only_first))
    job.terminal.environ["SEALPIPE_BASE_URL"] = server.base_url
    checks(job, good=GOOD)
    words = ["collect", asked.file(), "--pick", "each", "--check", "good", "--after", "expire"]
    done = job.run(*words, "--to", "file:{submission}#staging_password")
    assert (done.code, done.out.count("stored"), deletes(server)) == (14, 1, 1)
    assert "1 submission arrived while the request expired" in done.err
    assert len(kept(job.state / "requests")) >= 1


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ("[checks]\na = 5\n", "checks.a has no list of words as argv"),
        ("[checks.a]\nargv = 'rm -rf /'\n", "checks.a has no list of words as argv"),
        ("[checks.a]\nargv = []\n", "checks.a has no list of words as argv"),
        (
            '[checks.a]\nargv = ["true"]\ntimeout = 0\n',
            "checks.a.timeout is not a number of seconds",
        ),
        (
            '[checks.a]\nargv = ["true"]\ntimeout = true\n',
            "checks.a.timeout is not a number of seconds",
        ),
        (
            '[checks.a]\nargv = ["true"]\nshell = true\n',
            "checks.a sets 'shell', which is not a setting",
        ),
        ("checks = 5\n", "the config's checks is not a table"),
    ],
)
def test_a_check_that_is_written_wrong_is_refused_first(job: Job, table: str, says: str) -> None:
    config = str(job.terminal.file("config.toml", table))
    sent = len(job.service.seen())
    done = job.run("collect", "x", "--check", "a", SEALPIPE_CONFIG=config)
    assert (done.code, len(job.service.seen())) == (2, sent)
    assert says in done.err


def test_the_working_directory_chooses_no_command(job: Job) -> None:
    job.terminal.file("config.toml", '[checks.a]\nargv = ["true"]\n')
    job.terminal.file("tool", "#!/bin/sh\n", 0o700)
    done = job.run("collect", "x", "--check", "a")
    assert (done.code, "the config file has no check of that name" in done.err) == (2, True)
    for program in ("./tool", "tool"):
        config = str(job.terminal.file("own.toml", f'[checks.a]\nargv = ["{program}"]\n'))
        done = job.run(
            "collect", "x", "--check", "a", SEALPIPE_CONFIG=config, PATH=".:/usr/bin:/bin"
        )
        assert (done.code, f"the program {program} is not on PATH" in done.err) == (14, True)


def test_a_name_that_is_not_known_is_not_repeated(job: Job) -> None:
    checks(job, login="pass")
    done = job.run("collect", "x", "--check", "c4nary")
    assert (done.code, "c4nary" in done.err, "choose from login" in done.err) == (2, False, True)


def test_a_command_that_hangs_is_killed_with_all_that_it_started(job: Job) -> None:
    asked = ask(job)
    asked.answer()
    argv = ["sh", "-c", "sleep 600 & echo $! > child; wait"]
    text = f"[checks.slow]\nargv = {json.dumps(argv)}\ntimeout = 2\n"
    config = str(job.terminal.file("config.toml", text))
    done = job.run("collect", asked.code, "--check", "slow", SEALPIPE_CONFIG=config)
    assert (done.code, "did not finish within 2 s" in done.err) == (14, True)
    assert is_over(int((job.terminal.here / "child").read_text()))


def test_policies_and_the_audit_see_the_name_of_the_check(job: Job) -> None:
    asked = ask(job)
    asked.answer("c4nary")
    log = job.terminal.here / "audit.jsonl"
    argv = json.dumps([sys.executable, "-c", "import sys; sys.exit(1)"])
    config = f'[audit]\nfile = "{log}"\n[checks.login]\nargv = {argv}\n'
    done = job.run(
        "collect",
        asked.code,
        "--check",
        "login",
        SEALPIPE_CONFIG=str(job.terminal.file("c.toml", config)),
    )
    begun, ended = [json.loads(line) for line in log.read_text().splitlines()]
    assert (done.code, begun["check"], ended["outcome"]) == (14, "login", "CheckError")
    assert "c4nary" not in log.read_text()


def test_a_program_names_a_check_too(
    call: Caller, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ask(job)
    asked.answer("bad")
    asked.answer("good")
    checks(job, good=GOOD)
    monkeypatch.setenv("SEALPIPE_CONFIG", job.terminal.environ["SEALPIPE_CONFIG"])
    with pytest.raises(CheckError, match="the check good ended with status 1") as caught:
        call("collect", asked.receipt, pick="each", check="good")
    assert (caught.value.short_code, values(caught.value.collected)) == (
        asked.code,
        [["good", "bob"]],
    )
    with pytest.raises(UsageError, match="no check of that name"):
        call("collect", asked.receipt, check="other")
    with pytest.raises(UsageError, match="check is empty"):
        call("collect", asked.receipt, check="")


def test_an_interrupted_check_leaves_nothing_running(job: Job) -> None:
    asked = ask(job)
    asked.answer()
    begun = job.terminal.here / "begun"
    os.mkfifo(begun)
    argv = json.dumps(["sh", "-c", "echo $$ > begun; exec sleep 600"])
    config = str(job.terminal.file("config.toml", f"[checks.slow]\nargv = {argv}\ntimeout = 300\n"))
    process = job.start(
        "collect", asked.code, "--check", "slow", environ={"SEALPIPE_CONFIG": config}
    )
    child = int(begun.read_text())
    process.terminate()
    assert ended(process).code == 143
    assert is_over(child)
