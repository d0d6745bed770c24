"""`share --also-to`: what is shared is in its store first, or nothing is shared at all."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from sealpipe_rehearsal.running_service import RunningService
from support.faults import reset_after, says, unauthorized
from support.faulty import Faulty
from support.job import Job
from support.terminal import Done, created, opened

GENERATED = ("-f", "Password=gen:password?symbols=0")


def share(job: Job, *words: str, **environ: str) -> Done:
    return job.run("share", *words, **environ)


def here(job: Job) -> dict[str, str]:
    """The files of the working directory."""
    return {path.name: path.read_text() for path in job.terminal.here.iterdir()}


def dotenv(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines())


def test_a_new_password_reaches_the_store_and_the_person(job: Job, service: RunningService) -> None:
    job.terminal.file("x", "OTHER=kept\n")
    done = share(job, *GENERATED, "--also-to", "dotenv:x?mode=merge#PW=Password")
    assert done.code == 0, done
    stored = dotenv(here(job)["x"])
    assert stored == {"OTHER": "kept", "PW": opened(service, done.out)["Password"]}
    assert len(stored["PW"]) > 15
    assert "stored in dotenv:x\n" in done.err
    assert stored["PW"] not in done.err
    assert job.left() == []


def test_any_field_may_be_stored_and_several_places_each_take_theirs(
    job: Job, service: RunningService
) -> None:
    job.terminal.file("key.pem", "-----BEGIN-----\nx\n")
    done = share(
        job,
        *(*GENERATED, "-f", "User=text:bob", "-f", "Key=file:key.pem"),
        *(
            "--also-to",
            "dotenv:x#PW=Password,WHO=User",
            "--also-to",
            "file:copy.pem#Key",
            "--also-to",
            "dir:all#*",
        ),
    )
    assert done.code == 0, done
    fields = opened(service, done.out)
    assert dotenv((job.terminal.here / "x").read_text()) == {"PW": fields["Password"], "WHO": "bob"}
    assert (job.terminal.here / "copy.pem").read_text() == fields["Key"] == "-----BEGIN-----\nx\n"
    assert {path.name: path.read_text() for path in (job.terminal.here / "all").iterdir()} == fields


def test_one_field_needs_no_selector(job: Job, service: RunningService) -> None:
    done = share(job, *GENERATED, "--also-to", "file:pw")
    assert (done.code, here(job)) == (0, {"pw": opened(service, done.out)["Password"]})
    assert (job.terminal.here / "pw").stat().st_mode & 0o777 == 0o600


def test_two_targets_in_one_place_are_one_write(job: Job, service: RunningService) -> None:
    """Two writes could not both be `create`."""
    both = ("--also-to", "dotenv:x#PW=Password", "--also-to", "dotenv:x#U=User")
    done = share(job, *GENERATED, "-f", "User=text:bob", *both)
    assert done.code == 0, done
    assert dotenv(here(job)["x"]) == {"PW": opened(service, done.out)["Password"], "U": "bob"}
    assert done.err.count("stored in dotenv:x\n") == 1


def test_the_environment_names_targets_one_a_line(job: Job) -> None:
    done = share(job, *GENERATED, SEALPIPE_SHARE_ALSO_TO="file:a\ndotenv:b#PW=Password")
    assert (done.code, set(here(job))) == (0, {"a", "b"})


def test_as_json_stdout_is_the_share_and_stderr_tells_of_the_store(
    job: Job, service: RunningService
) -> None:
    done = share(job, *GENERATED, "--also-to", "file:pw", "--output", "json")
    assert opened(service, done.json["link"]) == {"Password": here(job)["pw"]}
    assert "stored in file:pw" in done.err


# -- nothing is posted where it cannot be stored ---------------------------------------------------


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["--also-to", "file:there"], 14, "the target already has other content"),
        (["--also-to", "file:nowhere/x"], 14, "nowhere"),
        (["--also-to", "vault:secret/x#pw=Password"], 2, "the store vault lacks the setting addr"),
        (["--also-to", "nosuch:x"], 2, "nosuch"),
        (["--also-to", "file:x#Nobody"], 2, "the share has no field 'Nobody'"),
        (["--also-to", "dotenv:x#a-b=Password"], 2, "a key is not a valid variable name"),
        (["--also-to", "file:x?mode=overwrite"], 2, "the mode is not one of"),
        (["--also-to", "file:x?strange=1"], 2, "parameter strange is unknown"),
        (["--also-to", "file:x#/Password"], 2, "a JSON pointer names no"),
        (["--also-to", "file:{submission}"], 2, "unknown placeholder {submission}"),
        (
            [
                "--also-to",
                "dotenv:x#A=Password",
                "--also-to",
                "dotenv:x#A=User",
                "-f",
                "User=text:bob",
            ],
            2,
            "contradict",
        ),
        (
            ["--also-to", "file:x", "-f", "User=text:bob"],
            2,
            "accepts one value, but the share has 2",
        ),
    ],
    ids=lambda value: value[1] if isinstance(value, list) else None,
)
def test_nothing_is_shared_where_it_cannot_be_stored(
    job: Job, words: list[str], code: int, says: str
) -> None:
    job.terminal.file("there", "somebody else's")
    done = share(job, *GENERATED, *words)
    assert (done.code, done.out) == (code, ""), done
    assert says in done.err
    assert job.shares() == []
    assert job.left() == []
    assert here(job) == {"there": "somebody else's"}


def test_a_sink_failure_names_what_was_stored_before_it(job: Job) -> None:
    job.terminal.file("there", "somebody else's")
    words = (*GENERATED, "--also-to", "dotenv:x#PW=Password", "--also-to", "file:there")
    done = share(job, *words)
    assert (done.code, job.shares(), job.left()) == (14, [], [])
    assert "nothing was shared; stored in dotenv:x\n" in done.err
    job.terminal.here.joinpath("x").unlink()
    told = share(job, *words, "--output", "json").error
    assert told["notes"] == ["nothing was shared; stored in dotenv:x"]
    assert told["reference"] == "file:there"


def test_a_wrong_target_is_found_before_anything_is_read(job: Job) -> None:
    """What reads a source may be counted, or spent by being read."""
    done = share(job, "-f", "env:NOT_SET", "--also-to", "vault:secret/x#k=NOT_SET")
    assert "the store vault lacks the setting addr" in done.err
    vault = {"VAULT_ADDR": "http://127.0.0.1:9", "VAULT_TOKEN": "x"}
    done = share(job, "-f", "env:NOT_SET", "--also-to", "vault:no-path#k=NOT_SET", **vault)
    assert done.code == 2
    assert "no-path" in done.err
    assert "NOT_SET" not in done.err


# -- the post that follows -------------------------------------------------------------------------


@pytest.fixture
def far(
    proxied: Callable[..., Faulty], service: RunningService, tmp_path: Path
) -> Callable[..., tuple[Job, Faulty]]:
    def make(*faults: object, **options: object) -> tuple[Job, Faulty]:
        server = proxied(*faults, **options)
        return Job(tmp_path, service, server.base_url), server

    return make


def test_a_post_that_is_refused_says_what_was_stored(
    far: Callable[..., tuple[Job, Faulty]],
) -> None:
    job, _ = far(then=says(400, '{"error_code": 19, "message": "no", "additional_data": {}}'))
    done = share(job, *GENERATED, "--also-to", "file:pw")
    assert (done.code, job.left(), set(here(job))) == (5, [], {"pw"})
    assert "before that, it was stored in file:pw\n" in done.err


def test_a_post_whose_outcome_is_unknown_says_it_too_and_resume_finishes_that_very_share(
    far: Callable[..., tuple[Job, Faulty]], service: RunningService
) -> None:
    job, server = far(reset_after, then=unauthorized)
    done = share(job, *GENERATED, "--also-to", "file:pw")
    assert done.code == 9, done
    (entry,) = job.entries()
    assert f"sealpipe resume {entry}" in done.err
    assert "before that, it was stored in file:pw\n" in done.err
    server.mend()
    (job.terminal.here / "pw").write_text("rotated since")
    done = job.resume()
    assert (done.code, here(job)) == (0, {"pw": "rotated since"}), (
        "what was noted as stored is not stored again"
    )
    assert len(opened(service, done.out)["Password"]) > 15


# -- a dry run -------------------------------------------------------------------------------------


def test_a_dry_run_tells_what_would_be_stored_where_and_stores_nothing(job: Job) -> None:
    targets = ("--also-to", "dotenv:x?mode=merge#PW=Password", "--also-to", "file:u#User")
    words = (*GENERATED, "-f", "User=text:bob", *targets)
    done = share(job, *words, "--dry-run")
    assert done.code == 0, done
    assert "  also set keys of the dotenv file x, keeping its other lines (PW)\n" in done.out
    assert "  also write the new file u (User)\n" in done.out
    assert (here(job), job.shares(), job.left()) == ({}, [], [])
    assert share(job, *words, "--dry-run", "--output", "json").json["also_to"] == [
        "set keys of the dotenv file x, keeping its other lines (PW)",
        "write the new file u (User)",
    ]


def test_a_dry_run_finds_the_label_that_is_not_there(job: Job) -> None:
    done = share(job, *GENERATED, "--also-to", "file:x#Pasword", "--dry-run")
    assert (done.code, done.out) == (2, "")
    assert "its fields are Password" in done.err


# -- labels from elsewhere -------------------------------------------------------------------------

ISSUED = [("work", "in.json"), ("work", "x"), ("work", "f")]
HOSTILE = [
    "\x1b[31m",
    "../../x",
    "a\n::add-mask::b",
    "LD_PRELOAD",
    "=cmd|",
    "x" * 300,
    "/etc/x",
    "..",
    "",
]


@pytest.mark.parametrize("label", HOSTILE)
@pytest.mark.parametrize("target", ["dir:all#*", "dotenv:x#*", "file:f#*"])
def test_a_label_with_hostile_text_names_no_path_and_reaches_no_terminal(
    job: Job, label: str, target: str
) -> None:
    job.terminal.file("in.json", json.dumps({label: "value-of-it"}))
    done = share(job, "-f", "file:in.json?format=json#*", "--also-to", target)
    assert done.code in (0, 2, 14), done
    assert all(line.isprintable() and not line.startswith("::") for line in done.err.splitlines())
    assert "value-of-it" not in done.err
    outside = [
        path
        for path in job.terminal.home.parent.rglob("*")
        if path.is_file() and not _expected(job, path)
    ]
    assert outside == []
    assert (job.shares() == []) == (done.code != 0)


def _expected(job: Job, path: Path) -> bool:
    below = path.relative_to(job.terminal.home.parent).parts
    return below in ISSUED or (below[:2] == ("work", "all") and len(below) == 3)


# -- who looks on ----------------------------------------------------------------------------------


def test_a_policy_and_the_audit_see_the_share_as_without_it(job: Job) -> None:
    audit, policy = (
        job.terminal.here.parent / "audit",
        job.terminal.file("policy.toml", "most_views = 1\n"),
    )
    config = job.terminal.file(
        "config.toml", f'[audit]\nfile = "{audit}"\n[policy]\nfile = "{policy}"\n'
    )
    seen = []
    for words in ((), ("--also-to", "file:pw")):
        done = share(job, *GENERATED, "--title", "t", *words, SEALPIPE_CONFIG=str(config))
        assert done.code == 0, done
        seen.append([json.loads(line) for line in audit.read_text().splitlines()])
        audit.unlink()
    assert [line.pop("sinks", None) for line in seen[1]] == [["file/file"], ["file/file"]]
    changing = ("time", "short_code", "expires_at", "stream", "prev", "mac")
    plain, also = (
        [{k: v for k, v in line.items() if k not in changing} for line in lines] for lines in seen
    )
    assert plain == also
    assert [line["outcome"] for line in also] == ["sending", "created"]


def test_what_a_policy_refuses_is_not_stored_either(job: Job) -> None:
    policy = job.terminal.file("policy.toml", "most_views = 1\n")
    config = job.terminal.file("config.toml", f'[policy]\nfile = "{policy}"\n')
    done = share(
        job, *GENERATED, "--views", "2", "--also-to", "file:pw", SEALPIPE_CONFIG=str(config)
    )
    assert (done.code, "pw" in here(job), job.shares()) == (2, False, [])


def test_the_audit_names_the_error_of_a_sink(job: Job) -> None:
    audit = job.terminal.here.parent / "audit"
    config = job.terminal.file("config.toml", f'[audit]\nfile = "{audit}"\n')
    assert share(job, *GENERATED, "--also-to", "file:no/x", SEALPIPE_CONFIG=str(config)).code == 14
    assert [json.loads(line)["outcome"] for line in audit.read_text().splitlines()] == [
        "sending",
        "SecretNotFoundError",
    ]


def test_the_service_learns_nothing_of_it(job: Job, service: RunningService) -> None:
    before = len(created(service))
    for words in ((), ("--also-to", "file:a-place-of-ours")):
        assert share(job, *GENERATED, *words).code == 0
    plain, also = created(service)[before:]
    assert plain.keys() == also.keys()
    assert "place-of-ours" not in json.dumps(also)
