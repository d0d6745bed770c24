"""The commands of "A machine with the key was stolen", word for word and in their order, on a
default rehearsal.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from sealpipe.secret import Secret
from sealpipe_rehearsal.people import LinkRefusedError
from support.ci_jobs import forked_sealpipe
from support.job import Job, ended
from support.parts import ROOT
from support.terminal import addresses

PAGE = ROOT / "docs/how-to/a-stolen-key.md"
ROTATION = ROOT / "docs/how-to/rotate-a-key.md"
CANARY = "canary-of-the-vendor"
BATCH = {
    "vendors.toml": """\
name = "vendors"
kind = "request"
rows = "vendors.csv"
key = "vendor"

[request]
ask = ["password=Password"]
send = ["file:{vendor}.txt"]

[collect]
to = ["file:{vendor}.password#password=Password"]
""",
    "vendors.csv": "vendor\nacme\n",
}


def commands_of(page: Path) -> dict[int, list[str]]:
    """The blocks of commands of each step."""
    sections = re.findall(
        r"^## (\d+)\. .*\n((?:(?!## ).*\n)*)", page.read_text(encoding="utf-8"), re.MULTILINE
    )
    return {
        int(step): re.findall(r"^```sh\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
        for step, text in sections
    }


class Owner:
    """Who follows the page, on a machine that has the two keys and the batch's file."""

    def __init__(self, here: Path, job: Job, new: Secret) -> None:
        here.mkdir()
        for name, text in {
            **BATCH,
            "old.key": f"{job.api_key}\n",
            "new.key": f"{new.reveal()}\n",
        }.items():
            (here / name).write_text(text)
            (here / name).chmod(0o600)
        self.here = here
        sealpipe = forked_sealpipe(here.parent)
        path = f"{sealpipe.parent}{os.pathsep}{os.defpath}"
        self._environ = {
            "PATH": path,
            "HOME": str(here),
            "LANG": "C.UTF-8",
            **addresses(job.service),
        }
        self._before = ""

    def follow(self, block: str) -> tuple[int, str]:
        """Type a block of the page; return the exit code and stdout.

        What was exported before is set.
        """
        done = subprocess.run(
            ["bash", "-c", f"{self._before}\n{block}"],
            env=self._environ, cwd=self.here, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            text=True,
            check=False, timeout=100,
        )  # fmt: skip
        self._before += "".join(re.findall(r"^(?:export|unset) .*\n", block, re.MULTILINE))
        return done.returncode, done.stdout


@pytest.fixture
def stolen(job: Job) -> dict[str, str]:
    """A machine with a share, a sealed one, requests, a batch and an unfinished entry; return what
    leads to them.
    """
    here = job.terminal.here
    for name, text in BATCH.items():
        (here / name).write_text(text)

    def run(*words: str) -> str:
        done = job.run(*words)
        assert done.code == 0, done
        return done.out.strip()

    made = {
        "share": run("share", "-f", "text:canary"),
        "sealed": run("share", "-f", "text:canary", "--seal-link"),
        "answered": run("request", "-a", "Password"),
        "silent": run("request", "-a", "Password"),
        "own": run("request", "-a", "Password", "--key", "new", "--seed-to", "file:seed"),
    }
    with Path("/dev/full").open("wb") as full:
        assert ended(job.start("share", "-f", "text:canary", stdout=full)).code == 11
    run("batch", "run", "vendors.toml")
    made["batch"] = run("batch", "link", "vendors", "acme")
    for name in ("answered", "own", "batch"):
        job.service.submitter().submit(made[name], {"Password": CANARY})
    return made


@pytest.fixture
def owner(job: Job, stolen: dict[str, str], tmp_path: Path) -> Owner:
    """The owner after steps 1 and 2, in the web app."""
    del stolen
    new = job.service.create_key(account=job.account)
    job.service.revoke_key(Secret(job.api_key))
    return Owner(tmp_path / "owner", job, new)


def test_at_the_end_nothing_is_out_and_nothing_is_lost(
    job: Job, owner: Owner, stolen: dict[str, str]
) -> None:
    steps = commands_of(PAGE)
    (set_both,), (show, adopt), (shares, _), (requests,), (collect,) = (
        steps[number] for number in range(3, 8)
    )
    assert owner.follow(set_both)[0] == 0
    assert owner.follow(show) == (0, "")
    listed = (owner.here / "requests.txt").read_text()
    assert [
        len((owner.here / "shares.txt").read_text().splitlines()),
        len(listed.splitlines()),
    ] == [3, 4]
    assert sorted(re.findall("previous|other", listed)) == [
        "other",
        "other",
        "previous",
        "previous",
    ]
    assert "acme" in owner.follow(adopt)[1]
    # Revoked, and yet the thief opens what they found in an artifact.
    thief = job.run("unseal", stolen["sealed"])
    assert thief.out.strip().partition("#")[2]
    assert owner.follow(shares)[0] == owner.follow(requests)[0] == 0
    for link in (stolen["share"], thief.out.strip()):
        with pytest.raises(LinkRefusedError):
            job.service.recipient().open_link(link)

    code, _ = owner.follow(collect)
    assert code == 16  # nobody had answered one of them
    assert [
        each.read_text()
        for each in (owner.here / "collected").glob("*/*")
        if each.suffix != ".json"
    ] == [CANARY]

    (take_over, rekey), (look,), (check, destroy) = steps[8], steps[9], steps[10]
    assert owner.follow(take_over)[1].startswith("vendors\t")
    assert owner.follow(rekey) == (0, "")
    (owner.here / "backup").symlink_to(job.state)
    assert owner.follow(look)[1].count("share") == 1
    assert owner.follow(check) == (0, "")
    assert owner.follow(destroy)[0] == 0
    assert not (owner.here / "old.key").exists()


def test_the_shares_of_other_machines_can_be_spared(
    job: Job, owner: Owner, stolen: dict[str, str]
) -> None:
    """Their lines are deleted from the list that the page made."""
    steps = commands_of(PAGE)
    assert [owner.follow(block)[0] for block in (steps[3][0], steps[4][0])] == [0, 0]
    listed = owner.here / "shares.txt"
    code = stolen["share"].rpartition("/")[2].partition("#")[0]
    lines = listed.read_text().splitlines(keepends=True)
    listed.write_text("".join(line for line in lines if not line.startswith(f"{code}\t")))
    assert owner.follow(steps[5][1])[0] == 0
    assert job.service.recipient().open_link(stolen["share"])
    with pytest.raises(LinkRefusedError):
        job.service.recipient().open_link(job.run("unseal", stolen["sealed"]).out.strip())


def test_a_rotation_has_an_end_where_ended_requests_are_not_listed(owner: Owner) -> None:
    page = ROTATION.read_text(encoding="utf-8")
    assert owner.follow(commands_of(PAGE)[3][0])[0] == 0
    listing = commands_of(ROTATION)[3][0].splitlines()
    assert [owner.follow(line)[0] for line in listing] == [15, 2]
    assert "does not list ended requests (exit code 2)" in " ".join(page.split())
    for block in commands_of(PAGE)[6]:
        owner.follow(block)
    assert owner.follow(listing[0]) == (0, "")
