"""The release's own steps: the tag is the version, and the major tag follows it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.parts import ROOT

JOBS: dict[str, Any] = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8"))["jobs"]

GH = """#!/bin/sh
echo "$*" >> calls
case "$*" in *PATCH*) test -e there ;; esac
"""
"""In the place of GitHub's client: a reference that does not exist cannot be changed (422)."""


def run(job: str, name: str, here: Path, **environ: str) -> int:
    """A step of a job, in a folder of its own. Its exit code."""
    (script,) = [step["run"] for step in JOBS[job]["steps"] if step.get("name") == name]
    given = {"PATH": f"{here}:/usr/bin:/bin", **environ}
    return subprocess.run(["bash", "-e", "-c", script], cwd=here, env=given, check=False).returncode


@pytest.mark.parametrize("there", [True, False])
def test_the_major_tag_is_moved_or_made(tmp_path: Path, *, there: bool) -> None:
    (tmp_path / "gh").write_text(GH)
    (tmp_path / "gh").chmod(0o755)
    if there:
        (tmp_path / "there").touch()
    environ = {"GITHUB_REPOSITORY": "acme/sealpipe", "GITHUB_REF_NAME": "v1.12.3", "GITHUB_SHA": "a" * 40}
    assert run("major", "Move or create the tag", tmp_path, **environ) == 0
    refs = "repos/acme/sealpipe/git/refs"
    moved = f"api --silent --method PATCH {refs}/tags/v1 -f sha={'a' * 40} -F force=true"
    made = f"api --silent --method POST {refs} -f ref=refs/tags/v1 -f sha={'a' * 40}"
    assert (tmp_path / "calls").read_text().splitlines() == ([moved] if there else [moved, made])


@pytest.mark.parametrize(("tag", "code"), [("v1.2.3", 0), ("v1.2.30", 1), ("v1x2.3", 1), ("v1.2", 1)])
def test_a_tag_that_is_not_the_version_releases_nothing(tmp_path: Path, tag: str, code: int) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.2.3"\n')
    assert run("build", "Check that the tag is the version", tmp_path, GITHUB_REF_NAME=tag) == code


def test_nothing_is_published_or_moved_before_it_is_audited_and_attested() -> None:
    assert JOBS["publish"]["needs"] == ["build", "audit", "attest"]
    assert JOBS["major"]["needs"] == "publish"
    assert {name: job["permissions"]["contents"] for name, job in JOBS.items() if "contents" in job["permissions"]} == {
        "build": "read", "audit": "read", "major": "write",
    }  # fmt: skip


AUDITOR = """#!/bin/bash
while (($#)); do [[ $1 != -r ]] || cat "$2" >> "$LOG"; shift; done
[[ ! -e refuse ]] || ! grep -q "$(cat refuse)" "$LOG"
"""
"""In the place of pip-audit: it keeps what it is to look at, and finds something where it is told to."""


@pytest.mark.parametrize(
    ("refuse", "code"), [("", 0), ("cryptography==", 1), ("hatchling==", 1), ("starlette==1.3.1", 1)]
)
def test_locks_and_floors_are_audited_and_what_is_found_ends_the_release(
    tmp_path: Path, refuse: str, code: int
) -> None:
    for name, script in {
        "python": 'mkdir -p "$3/bin"; cp pip pip-audit "$3/bin"',
        "pip": "exit",
        "pip-audit": "",
    }.items():
        (tmp_path / name).write_text(AUDITOR if name == "pip-audit" else f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    for place in ("actions/_setup/locks/all.txt", "actions/_setup/locks/build.txt", ".github/audit.txt"):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text((ROOT / place).read_text())
    if refuse:
        (tmp_path / "refuse").write_text(refuse)
    floors = subprocess.run(
        [sys.executable, "-I", ROOT / "tests/endurance/lowest.py", "--floors"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    (tmp_path / "floors.txt").write_text(floors)
    environ = {"RUNNER_TEMP": str(tmp_path), "LOG": str(tmp_path / "log")}
    assert run("audit", "Audit locked and lowest versions", tmp_path, **environ) == code
    if not code:
        assert {"click==8.3.3", "starlette==1.3.1", "urllib3==2.7"} <= set((tmp_path / "log").read_text().splitlines())


def test_the_auditor_is_pinned_by_hash_and_names_no_index() -> None:
    text = (ROOT / ".github/audit.txt").read_text()
    assert re.search(r"^pip-audit==\S+ \\\n    --hash=sha256:[0-9a-f]{64}", text, re.M)
    assert "://" not in text
