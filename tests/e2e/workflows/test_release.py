"""The release's own steps: what comes after what, the build, the audit, the image, the release and
the major tag.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.parts import ROOT

JOBS: dict[str, Any] = yaml.safe_load(
    (ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8")
)["jobs"]

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
    environ = {
        "GITHUB_REPOSITORY": "acme/sealpipe",
        "GITHUB_REF_NAME": "v1.12.3",
        "GITHUB_SHA": "a" * 40,
    }
    assert run("major", "Move or create the tag", tmp_path, **environ) == 0
    refs = "repos/acme/sealpipe/git/refs"
    moved = f"api --silent --method PATCH {refs}/tags/v1 -f sha={'a' * 40} -F force=true"
    made = f"api --silent --method POST {refs} -f ref=refs/tags/v1 -f sha={'a' * 40}"
    assert (tmp_path / "calls").read_text().splitlines() == ([moved] if there else [moved, made])


def test_nothing_is_published_or_moved_before_it_is_audited_and_attested() -> None:
    assert JOBS["publish"]["needs"] == ["build", "audit", "attest", "image-index"]
    assert (JOBS["major"]["needs"], JOBS["release"]["needs"]) == ("publish", "publish")
    assert {name: JOBS[name]["needs"] for name in ("build", "audit", "attest", "image",
        "image-index")} == {
        "build": "ready", "audit": "ready", "attest": "build", "image": ["build", "audit"],
        "image-index": "image",
    }  # fmt: skip
    approved = {name for name, job in JOBS.items() if job.get("environment") == "release"}
    assert approved == {"image", "image-index", "publish"}
    assert {name: job["permissions"]["contents"] for name,
        job in JOBS.items() if "contents" in job["permissions"]} == {
        "ready": "read", "build": "read", "audit": "read", "image": "read", "release": "write",
        "major": "write",
    }  # fmt: skip


def test_what_is_built_is_what_the_release_has(tmp_path: Path) -> None:
    """With this interpreter in the place of the build's own environment, and of pip a program that
    installs nothing.
    """
    if not (ROOT / ".git").exists():
        pytest.skip("this is no git checkout")
    here = tmp_path / "checkout"
    subprocess.run(["git", "clone", "-q", "--shared", ROOT, here], check=True)
    for name, script in {
        "python": (
            f'[ "$2" != venv ] && exec {sys.executable} "$@"; mkdir -p "$3/bin" && cp pip '
            'python "$3/bin"'
        ),
        "pip": 'echo "$*" > pip.log',
        "gh": 'printf "%s\\n" "$@" > gh.log',
    }.items():
        (here / name).write_text(f"#!/bin/sh\n{script}\n")
        (here / name).chmod(0o755)
    version = tomllib.loads((here / "pyproject.toml").read_text())["project"]["version"]
    github = {
        "GITHUB_SERVER_URL": "https://github.com",
        "GITHUB_REPOSITORY": "acme/app",
        "RUNNER_TEMP": str(tmp_path),
    }
    environ = {**github, "GITHUB_REF_NAME": f"v{version}"}
    assert run("build", "Build, with the locked build backend", here, **environ) == 0
    assert (
        "--require-hashes --only-binary :all: -r actions/_setup/locks/build.txt"
        in (here / "pip.log").read_text()
    )
    assert run("release", "Make the release", here, **environ) == 0
    said = (here / "gh.log").read_text().splitlines()
    dist = [f"dist/sealpipe-{version}-py3-none-any.whl", f"dist/sealpipe-{version}.tar.gz"]
    attached = [*dist, "release/SHA256SUMS", "release/sealpipe.cdx.json"]
    assert said == [
        "release",
        "create",
        f"v{version}",
        *attached,
        "--verify-tag",
        "--notes-file",
        "notes.md",
    ]
    subprocess.run(
        ["sha256sum", "--check", "--strict", "../release/SHA256SUMS"], cwd=here / "dist", check=True
    )
    assert json.loads((here / attached[-1]).read_text())["metadata"]["timestamp"], (
        "the time of the commit"
    )
    assert f"](https://github.com/acme/app/blob/v{version}/docs/" in (here / "notes.md").read_text()


AUDITOR = """#!/bin/bash
while (($#)); do [[ $1 != -r ]] || cat "$2" >> "$LOG"; shift; done
[[ ! -e refuse ]] || ! grep -q "$(cat refuse)" "$LOG"
"""
"""In the place of pip-audit: it keeps what it is to look at, and finds something where it is told
to.
"""


@pytest.mark.parametrize(
    ("refuse", "code"),
    [("", 0), ("cryptography==", 1), ("hatchling==", 1), ("starlette==1.3.1", 1)],
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
    for place in (
        "actions/_setup/locks/all.txt",
        "actions/_setup/locks/build.txt",
        ".github/audit.txt",
    ):
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
        assert {"click==8.3.3", "starlette==1.3.1", "urllib3==2.7"} <= set(
            (tmp_path / "log").read_text().splitlines()
        )


def test_the_auditor_is_pinned_by_hash_and_names_no_index() -> None:
    text = (ROOT / ".github/audit.txt").read_text()
    assert re.search(r"^pip-audit==\S+ \\\n    --hash=sha256:[0-9a-f]{64}", text, re.M)
    assert "://" not in text


DOCKER = """#!/bin/sh
echo "$*" >> calls
case "$*" in *inspect*) echo "sha256:$DIGEST" ;; esac
"""
"""In the place of Docker's client: every tag is of one digest."""


@pytest.mark.parametrize("moved", [False, True])
def test_an_image_is_built_on_the_newest_base_only(tmp_path: Path, *, moved: bool) -> None:
    (tmp_path / "docker").write_text(DOCKER)
    (tmp_path / "docker").chmod(0o755)
    (tmp_path / "containers").mkdir()
    text = (ROOT / "containers/Dockerfile").read_text()
    (tmp_path / "containers/Dockerfile").write_text(text)
    pinned = re.findall(r"^ARG BASE=(.+)@sha256:([0-9a-f]{64})$", text, re.MULTILINE)[0]
    environ = {"DIGEST": "0" * 64 if moved else pinned[1]}
    assert (
        run("image", "Check that the base is the newest of its tag", tmp_path, **environ) == moved
    )
    assert (tmp_path / "calls").read_text().startswith(f"buildx imagetools inspect {pinned[0]} ")


def test_the_image_of_the_server_is_built_on_that_of_the_release_and_tried(tmp_path: Path) -> None:
    (tmp_path / "docker").write_text(DOCKER)
    (tmp_path / "docker").chmod(0o755)
    assert run("image", "Build the server's on it, and try it", tmp_path) == 0
    build, trial = (tmp_path / "calls").read_text().splitlines()
    assert build == "build -f containers/server/Dockerfile -t sealpipe-server ."
    assert trial.endswith("sealpipe-server init")
    names = [step.get("name") for step in JOBS["image"]["steps"]]
    built, tried, pushed = map(
        names.index, ("Build and try it", "Build the server's on it, and try it", "Push both")
    )
    assert built < tried < pushed


@pytest.mark.parametrize("of", ["", "-server"])
def test_the_images_of_both_architectures_become_one(tmp_path: Path, of: str) -> None:
    (tmp_path / "docker").write_text(DOCKER)
    (tmp_path / "docker").chmod(0o755)
    environ = {
        "GITHUB_REPOSITORY": "Acme/sealpipe",
        "GITHUB_REF_NAME": "v1.2.3",
        "GITHUB_ACTOR": "ann",
        "REGISTRY": "images.example",
    }
    output = tmp_path / "output"
    given = {**environ, "TOKEN": "canary", "DIGEST": "1" * 64, "GITHUB_OUTPUT": str(output)}
    assert run("image", "Push both", tmp_path, **given, ARCHITECTURE="arm64") == 0
    assert run("image-index", "Join them", tmp_path, **given, OF=of) == 0
    tag = f"images.example/acme/sealpipe{of}:1.2.3"
    calls = (tmp_path / "calls").read_text()
    assert f"tag sealpipe{of} {tag}-arm64\npush {tag}-arm64\n" in calls
    assert f"imagetools create -t {tag} {tag}-amd64 {tag}-arm64\n" in calls
    image = f"image=images.example/acme/sealpipe{of}"
    assert output.read_text() == f"{image}\ndigest=sha256:{'1' * 64}\n"
    assert "canary" not in calls
    nowhere = {**given, "REGISTRY": "", "ARCHITECTURE": "arm64"}
    assert run("image", "Push both", tmp_path, **nowhere) != 0
    assert JOBS["image-index"]["strategy"]["matrix"]["of"] == ["", "-server"]
    architectures = [
        each["architecture"] for each in JOBS["image"]["strategy"]["matrix"]["include"]
    ]
    assert architectures == ["amd64", "arm64"]
