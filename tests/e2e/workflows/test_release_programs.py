"""What a release runs, run here: the build, its hashes, the SBOM, and what holds a release back."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tarfile
import time
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

from e2e.workflows.clones import clone, git
from support.parts import ROOT, library, load_module

RELEASE = ROOT / ".github/release"
SBOM = load_module("sbom", RELEASE / "sbom.py")
LOCKS = ROOT / "actions/_setup/locks"
EPOCH = 1795000000


def build(tree: Path, out: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-I", RELEASE / "build.py", out, "--tree", tree]
    given = {"PATH": "/usr/bin:/bin", "SOURCE_DATE_EPOCH": str(EPOCH), **environ}
    return subprocess.run(command, env=given, capture_output=True, text=True, check=False)


def test_two_builds_in_other_folders_and_times_give_the_same_bytes(tmp_path: Path) -> None:
    first, second = clone(tmp_path / "a"), clone(tmp_path / "another/folder")
    for file in second.rglob("*.py"):
        file.touch()
    assert build(first, tmp_path / "1", TZ="Asia/Tokyo").returncode == 0
    done = build(second, tmp_path / "2", TZ="America/Lima", LC_ALL="C")
    assert done.returncode == 0, done.stderr
    sums = (tmp_path / "1/SHA256SUMS").read_text()
    assert sums == (tmp_path / "2/SHA256SUMS").read_text()
    assert re.fullmatch(
        r"[0-9a-f]{64}  sealpipe-\S+\.whl\n[0-9a-f]{64}  sealpipe-\S+\.tar\.gz\n", sums
    )
    subprocess.run(
        ["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=tmp_path / "1", check=True
    )
    (wheel,), (sdist,) = (tmp_path / "1").glob("*.whl"), (tmp_path / "1").glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as zipped, tarfile.open(sdist) as tar:
        assert {each.date_time for each in zipped.infolist()} == {time.gmtime(EPOCH)[:6]}
        assert {each.mtime for each in tar} == {EPOCH}


def test_a_sdist_that_lacks_a_part_is_noticed(tmp_path: Path) -> None:
    tree = clone(tmp_path / "tree")
    file = tree / "pyproject.toml"
    text = file.read_text()
    assert '"/plugins", ' in text
    file.write_text(text.replace('include = ["/core", "/plugins", ', 'include = ["/core", '))
    done = build(tree, tmp_path / "out")
    assert done.returncode == 1
    assert "is not the one from the tree" in done.stderr


def make_sbom(epoch: int = EPOCH) -> dict[str, Any]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    texts = [(LOCKS / f"{name}.txt").read_text(encoding="utf-8") for name in ("all", "base")]
    sbom: dict[str, Any] = SBOM.make_sbom(project, *texts, str(epoch))
    return sbom


def validate(sbom: dict[str, Any]) -> object:
    """What is wrong with it by the schema of CycloneDX; None for nothing."""
    json_validator = library("cyclonedx.validation.json", "cyclonedx-python-lib")
    schema = library("cyclonedx.schema", "cyclonedx-python-lib")
    return json_validator.JsonStrictValidator(schema.SchemaVersion.V1_6).validate_str(
        json.dumps(sbom)
    )


def test_the_sbom_is_of_the_schema_and_what_is_not_is_noticed() -> None:
    assert validate(make_sbom()) is None
    for change in ({"bomFormat": "other"}, {"invented": 1}, {"serialNumber": "x"}):
        assert validate(make_sbom() | change) is not None


def test_the_sbom_has_every_locked_package_with_purl_and_hashes() -> None:
    sbom = make_sbom()
    components = {each["purl"]: each for each in sbom["components"]}
    whole = (LOCKS / "all.txt").read_text()
    locked = re.findall(r"^([a-z0-9.-]+)==([^ ;\\\n]+)", whole, re.MULTILINE)
    assert len(locked) > 60
    assert set(components) == {f"pkg:pypi/{name}@{version}" for name, version in locked}
    hashes = [
        each["content"]
        for purl in components
        for each in components[purl]["externalReferences"][0]["hashes"]
    ]
    assert set(hashes) == set(re.findall(r"sha256:([0-9a-f]{64})", whole))
    assert all(each["externalReferences"][0]["hashes"] for each in components.values())
    base = re.findall(
        r"^([a-z0-9.-]+)==([^ ;\\\n]+)", (LOCKS / "base.txt").read_text(), re.MULTILINE
    )
    required = {purl for purl, each in components.items() if each["scope"] == "required"}
    assert required == {f"pkg:pypi/{name}@{version}" for name, version in base}
    assert sbom["dependencies"][0]["dependsOn"] == sorted(components)
    assert make_sbom() == sbom
    assert make_sbom(1)["serialNumber"] != sbom["serialNumber"]


GH = """#!/bin/sh
echo "$*" >> "$HERE/asked"
cat "$HERE/runs"
"""
GREEN = [{"run_number": 2, "status": "completed", "conclusion": "success"}]
REPOSITORY = "OWNER/sealpipe"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout of the tag's commit, which is on main, and GitHub's client, to which the tests
    have succeeded.
    """
    tree = clone(tmp_path / "tree")
    git(tree, "update-ref", "refs/remotes/origin/main", "HEAD")
    (tmp_path / "gh").write_text(GH)
    (tmp_path / "gh").chmod(0o755)
    (tmp_path / "runs").write_text(json.dumps({"workflow_runs": GREEN}))
    return tree


def ask(tree: Path, **environ: str) -> tuple[int, str]:
    """Whether the release is held back, and why."""
    here = tree.parent
    version = tomllib.loads((tree / "pyproject.toml").read_text())["project"]["version"]
    tag = {"GITHUB_REF_NAME": f"v{version}", "GITHUB_SHA": git(tree, "rev-parse", "HEAD")}
    given = {
        "PATH": f"{here}:/usr/bin:/bin",
        "HERE": str(here),
        "GITHUB_REPOSITORY": REPOSITORY,
        **tag,
        **environ,
    }
    command = [sys.executable, "-I", tree / ".github/release/ready.py"]
    done = subprocess.run(command, env=given, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.strip() + done.stderr


def test_a_green_commit_on_main_with_its_changelog_is_ready(checkout: Path) -> None:
    assert ask(checkout) == (0, "ready")
    (asked,) = (checkout.parent / "asked").read_text().splitlines()
    commit = git(checkout, "rev-parse", "HEAD")
    runs = f"repos/{REPOSITORY}/actions/workflows/tests.yml/runs"
    assert asked == f"api {runs}?head_sha={commit}&event=push&branch=main"


@pytest.mark.parametrize("tag", ["v9.9.9", "0.2.0", "v0.2", "v0x2.0"])
def test_a_tag_that_is_not_the_version_is_held_back(checkout: Path, tag: str) -> None:
    code, said = ask(checkout, GITHUB_REF_NAME=tag)
    assert (code, said.startswith(f"the tag {tag} is not the version ")) == (1, True)


@pytest.mark.parametrize(
    "runs",
    [
        [],
        [{"run_number": 1, "status": "in_progress", "conclusion": None}],
        [*GREEN, {"run_number": 3, "status": "completed", "conclusion": "failure"}],
    ],
)
def test_a_commit_whose_tests_have_not_succeeded_is_held_back(
    checkout: Path, runs: list[dict[str, Any]]
) -> None:
    (checkout.parent / "runs").write_text(json.dumps({"workflow_runs": runs}))
    code, said = ask(checkout)
    assert (code, "have not succeeded: " in said) == (1, True)


def test_a_commit_that_is_not_on_main_is_held_back(checkout: Path) -> None:
    git(
        checkout,
        "-c",
        "user.name=x",
        "-c",
        "user.email=x@x",
        "commit",
        "-q",
        "--allow-empty",
        "-m",
        "beside",
    )
    code, said = ask(checkout)
    assert (code, said.endswith(" is not on main")) == (1, True)


def test_the_addresses_of_another_repository_hold_it_back(checkout: Path) -> None:
    code, said = ask(checkout, GITHUB_REPOSITORY="acme/sealpipe")
    assert (code, "and this is acme/sealpipe" in said) == (1, True)


def test_a_changelog_without_the_version_holds_it_back(checkout: Path) -> None:
    file = checkout / "docs/CHANGELOG.md"
    file.write_text(
        re.sub(r"^## \[0.*? - .*$", "## [9.9.9]", file.read_text(), count=1, flags=re.MULTILINE)
    )
    code, said = ask(checkout)
    assert (code, "notes.py: " in said) == (1, True)


def test_the_base_of_the_image_is_pinned_by_digest() -> None:
    text = (ROOT / "containers/Dockerfile").read_text()
    assert re.search(r"^ARG BASE=python:3\.\d+-slim-\w+@sha256:[0-9a-f]{64}$", text, re.MULTILINE)
