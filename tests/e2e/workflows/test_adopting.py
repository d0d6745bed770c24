"""The commands of "Adopt it in your organisation": a version, a package and pinned workflows of
one's own.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from e2e.workflows.clones import clone, git
from support.parts import ROOT, check_schema, path_to

PAGE = (ROOT / "docs/how-to/adopt.md").read_text(encoding="utf-8")


def blocks(step: int) -> list[str]:
    """The blocks of a step."""
    section = re.split(r"^## (?=\d+\. )", PAGE, flags=re.MULTILINE)[step]
    assert section.startswith(f"{step}. ")
    return re.findall(r"^```sh\n(.*?)^```", section, re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def fork(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone after step 1, with the build tools of step 2: those that these tests run with."""
    place = tmp_path_factory.mktemp("adopting")
    tree = clone(place / "sealpipe")
    git(tree, "add", "--all")
    git(
        tree,
        "-c",
        "user.name=t",
        "-c",
        "user.email=t@example.invalid",
        "commit",
        "-q",
        "--allow-empty",
        "-m",
        "now",
    )
    (tree / "build").mkdir()
    (tree / "build/tools").symlink_to(Path(sys.executable).parents[1])
    run(tree, *blocks(1))
    return tree


def run(tree: Path, *commands: str) -> None:
    path = os.pathsep.join([str(Path(sys.executable).parent), path_to("git", "perl")])
    author = {
        f"GIT_{who}_{what}": f"t@{who}".lower()
        for who in ("AUTHOR", "COMMITTER")
        for what in ("NAME", "EMAIL")
    }
    environ = {"PATH": path, "HOME": str(tree.parent), "GIT_CONFIG_NOSYSTEM": "1", **author}
    words = ["bash", "-euo", "pipefail", "-c", "\n".join(commands)]
    done = subprocess.run(
        words, cwd=tree, env=environ, capture_output=True, text=True, check=False, timeout=100
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_fork_has_a_version_and_a_tag_of_its_own_and_names_nobody_else(fork: Path) -> None:
    tag = git(fork, "tag", "--points-at", "HEAD")
    assert re.fullmatch(r"v0\.2\.20\d{6}", tag)
    program = [sys.executable, "-I", str(fork / ".github/release/version.py")]
    assert (
        subprocess.run(program, capture_output=True, text=True, check=True).stdout.strip()
        == tag[1:]
    )
    left = subprocess.run(
        ["git", "grep", "-l", "OWNER/sealpipe"],
        cwd=fork,
        capture_output=True,
        text=True,
        check=False,
    )
    assert left.stdout == ""


def test_the_package_is_built_with_that_version(fork: Path) -> None:
    run(fork, blocks(2)[1])
    version = git(fork, "tag", "--points-at", "HEAD")[1:]
    assert {each.name for each in (fork / "dist").iterdir()} == {
        f"sealpipe-{version}-py3-none-any.whl",
        f"sealpipe-{version}.tar.gz",
        "SHA256SUMS",
    }


def test_the_workflows_are_pinned_to_the_forks_commit(fork: Path) -> None:
    run(fork, *blocks(4))
    commit = git(fork, "rev-parse", "HEAD")
    workflows = sorted((fork / "offered").glob("*.yml"))
    assert [each.name for each in workflows] == sorted(
        each.name for each in (ROOT / "docs/how-to/ci/workflows").glob("*.yml")
    )
    texts = "".join(each.read_text() for each in workflows)
    assert "0" * 40 not in texts
    assert set(re.findall(r"uses: acme/sealpipe/\S+@(\S+)", texts)) == {commit}
    check_schema("vendor.github-workflows", *workflows)


def test_an_update_begins_at_the_newest_commit(fork: Path) -> None:
    run(fork, *blocks(8))
    assert git(fork, "rev-parse", "HEAD") == git(fork, "rev-parse", "origin/main")
    git(fork, "switch", "-q", "acme")
