"""The release's own steps: the tag is the version, and the major tag follows it."""

from __future__ import annotations

import subprocess
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
"""In the place of GitHub's client: a reference that is not there cannot be changed (422)."""


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
    assert run("major", "Move it, or make it", tmp_path, **environ) == 0
    refs = "repos/acme/sealpipe/git/refs"
    moved = f"api --silent --method PATCH {refs}/tags/v1 -f sha={'a' * 40} -F force=true"
    made = f"api --silent --method POST {refs} -f ref=refs/tags/v1 -f sha={'a' * 40}"
    assert (tmp_path / "calls").read_text().splitlines() == ([moved] if there else [moved, made])


@pytest.mark.parametrize(("tag", "code"), [("v1.2.3", 0), ("v1.2.30", 1), ("v1x2.3", 1), ("v1.2", 1)])
def test_a_tag_that_is_not_the_version_releases_nothing(tmp_path: Path, tag: str, code: int) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.2.3"\n')
    assert run("build", "The tag is the version", tmp_path, GITHUB_REF_NAME=tag) == code


def test_nothing_is_published_or_moved_before_it_is_attested() -> None:
    assert JOBS["publish"]["needs"] == ["build", "attest"]
    assert JOBS["major"]["needs"] == "publish"
    assert [name for name, job in JOBS.items() if "contents" in job["permissions"]] == ["build", "major"]
