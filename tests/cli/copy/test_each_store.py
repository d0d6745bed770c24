"""A copy into each store, and from it; and a new value that a second store does not take at first:
another machine of the same CI run goes on with it where the store keeps a marker.

What each of them writes at once is in docs/how-to/copy.md.
"""

from __future__ import annotations

import pytest

from support.job import Job
from support.storing import NAMES, Into, another_machine

KEEPS_MARKER = ("vault", "aws-sm", "aws-ssm", "k8s")
READABLE = (*KEEPS_MARKER, "keyring", "file", "dotenv")
"""Those that a source of the same name reads."""
GITHUB = {
    "GITHUB_ACTIONS": "true",
    "GITHUB_REPOSITORY": "acme/app",
    "GITHUB_RUN_ID": "7",
    "GITHUB_JOB": "rotate",
}


def targets(*targets: str) -> list[str]:
    return [word for target in targets for word in ("--to", target)]


@pytest.mark.parametrize("name", NAMES)
def test_what_is_copied_into_a_store_is_there(name: str, job: Job, into: Into, group: str) -> None:
    place = into(name)
    words = (
        "copy",
        "staging_password=text:p.w.1-a-b",
        "user=text:bob.the-builder",
        *targets(*place.single(group)),
    )
    done = job.run(*words)
    assert done.code == 0, done
    assert place.there(group) == {"password": b"p.w.1-a-b", "user": b"bob.the-builder"}
    before = place.writes(group)
    again = job.run(*words, "--mode", "replace")
    assert again.code == 0, again
    # Nobody reads a secret of GitHub; no source reads a variable of GitLab, which gets a marker.
    if name not in ("github-secret", "gitlab-variable"):
        assert place.writes(group) == before


@pytest.mark.parametrize("name", READABLE)
def test_a_rerun_takes_a_new_value_from_the_store_that_has_it(
    name: str, job: Job, into: Into, group: str
) -> None:
    place = into(name)
    words = (
        "copy", "staging_password=gen:password?symbols=0", "user=gen:hex", "--mode", "replace",
        *targets(*place.single(group)), *targets("dotenv:later/x.env#P=staging_password,U=user"),
    )  # fmt: skip
    failed = job.run(*words)
    assert failed.code == 14, failed
    assert "not written: dotenv:later/x.env#P,U" in failed.err
    first = place.there(group)
    assert set(first) == {"password", "user"}
    (job.terminal.here / "later").mkdir()
    done = job.run(*words)
    assert done.code == 0, done
    assert place.there(group) == first
    text = (job.terminal.here / "later/x.env").read_text()
    assert text == "P={password}\nU={user}\n".format(
        **{key: value.decode() for key, value in first.items()}
    )


@pytest.mark.parametrize("name", READABLE)
def test_another_machine_of_the_run_goes_on_where_the_store_keeps_a_marker(
    name: str, job: Job, into: Into, group: str
) -> None:
    place = into(name)
    words = (
        "copy", "staging_password=gen:password?symbols=0", "user=gen:hex", "--mode", "replace",
        *targets(*place.single(group)), *targets("dotenv:later/x.env#P=staging_password,U=user"),
    )  # fmt: skip
    assert job.run(*words, **GITHUB, GITHUB_RUN_ATTEMPT="1").code == 14
    first = place.there(group)
    (job.terminal.here / "later").mkdir()
    done = job.run(*words, **GITHUB, **another_machine(job), GITHUB_RUN_ATTEMPT="2")
    assert done.code == 0, done
    assert (place.there(group) == first) is (name in KEEPS_MARKER)
    assert ("no new value was made" in done.err) is (name in KEEPS_MARKER)
    now = {key: value.decode() for key, value in place.there(group).items()}
    text = (job.terminal.here / "later/x.env").read_text()
    assert text == "P={password}\nU={user}\n".format(**now)
