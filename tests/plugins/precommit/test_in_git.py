"""The hooks in a real repository: pre-commit installs them from ours, and real commits are stopped,
or pass.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

import pytest

from environment import MACHINE
from plugins.precommit.conftest import found_by
from sealpipe_plugins.precommit.rules import HOOKS, RULES
from support.parts import ROOT, missing, program

Git = Callable[..., "subprocess.CompletedProcess[str]"]
PAGE = ROOT / "docs/how-to/scan-commits.md"
CONFIG = PAGE.read_text(encoding="utf-8").partition("```yaml\n")[2].partition("```")[0]
"""The configuration that the page shows, with a fork and a commit that a reader writes into it."""


def git(
    *words: str, cwd: Path, env: Mapping[str, str] = MappingProxyType({})
) -> subprocess.CompletedProcess[str]:
    own = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    who = ["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false"]
    environ = {**os.environ, **own, **env}
    return subprocess.run(
        [program("git"), *who, *words],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        env=environ,
    )


@pytest.fixture(scope="session")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This checkout as it stands, as a repository that pre-commit can clone."""
    place = tmp_path_factory.mktemp("ours")
    listed = git(
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
        "--",
        "core",
        "plugins",
        cwd=ROOT,
    )
    names = [name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]
    for name in [*names, "pyproject.toml", "LICENSE", ".pre-commit-hooks.yaml"]:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, place / name)
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "as it stands"]):
        assert git(*words, cwd=place).returncode == 0
    return place


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Where pre-commit keeps the environments that it installs: one for all tests."""
    return {
        "PRE_COMMIT_HOME": str(tmp_path_factory.mktemp("pre-commit")),
        "PRE_COMMIT_COLOR": "never",
    }


@pytest.fixture(scope="session")
def installed(ours: Path, cache: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with the hooks installed, as a user does it."""
    place = tmp_path_factory.mktemp("theirs")
    rev = git("rev-parse", "HEAD", cwd=ours).stdout.strip()
    (place / ".pre-commit-config.yaml").write_text(
        re.sub(r"(?<=repo: )\S+", str(ours), CONFIG).replace("0" * 40, rev)
    )
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "the config"]):
        assert git(*words, cwd=place).returncode == 0
    done = subprocess.run(
        [program("pre-commit"), "install", "--install-hooks"],
        cwd=place,
        # To compile all of it takes longer than the rest; a hook compiles what it needs.
        env={**MACHINE, **cache, "PIP_NO_COMPILE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        said = done.stdout + done.stderr
        if (
            "Could not find a version" in said
            or "NewConnectionError" in said
            or "ConnectionError" in said
        ):
            missing("no package index can be reached, and pre-commit installs hooks from one")
        raise AssertionError(said)
    return place


@pytest.fixture
def repository(
    installed: Path, cache: dict[str, str]
) -> Iterator[Callable[[str, str], subprocess.CompletedProcess[str]]]:
    """Commit one file under a message; afterwards it is as before."""

    def commit(content: str, message: str) -> subprocess.CompletedProcess[str]:
        (installed / "file.txt").write_text(content)
        git("add", "-A", cwd=installed)
        return git("commit", "-m", message, cwd=installed, env=cache)

    yield commit
    git("reset", "-q", "--hard", cwd=installed)
    git("clean", "-qfd", cwd=installed)


def test_a_commit_is_stopped_by_its_content_and_by_its_message(repository: Git) -> None:
    texts = {rule.name: found_by()[rule.name][0] for rule in RULES}
    lines = "".join(f"x {text}\n" for text in texts.values())
    for content, message in ((lines, "a message"), ("nothing here\n", f"about\n\n{lines}")):
        done = repository(content, message)
        said = done.stdout + done.stderr
        assert done.returncode != 0
        assert [rule for rule in texts if f" {rule}\n" not in said] == []
        assert [text for text in texts.values() if text.rpartition("#1")[2] in said] == []


def test_scissors_in_a_message_from_a_file_hide_nothing(
    installed: Path, cache: dict[str, str], repository: Git
) -> None:
    """pre-commit hands on what git tells its hooks: no editor, so git cuts nothing off."""
    repository("clean\n", "clean")
    text = found_by()["link-with-key"][0]
    (installed / "file.txt").write_text("other\n")
    (installed / ".git/message").write_text(
        "x\n\n# ------------------------ >8 ------------------------\ndiff --git a/x b/x\n"
        f"-{text}\n"
    )
    git("add", "-A", cwd=installed)
    done = git("commit", "-F", ".git/message", cwd=installed, env=cache)
    assert done.returncode != 0
    assert " link-with-key\n" in done.stdout + done.stderr


def test_a_symbolic_link_is_read_as_git_keeps_it(repository: Git, installed: Path) -> None:
    text = found_by()["link-with-key"][0]
    (installed / "link").symlink_to(text)
    done = repository("nothing here\n", "a message")
    assert done.returncode != 0
    assert "link:1 link-with-key\n" in done.stdout + done.stderr
    assert text.rpartition("#1")[2] not in done.stdout + done.stderr


@pytest.mark.parametrize(
    "name", ["--tag=zz", "--", "-h", "-", "@list", "new\nline", "ü"], ids=ascii
)
def test_no_name_of_a_file_switches_a_hook_off(repository: Git, installed: Path, name: str) -> None:
    for each in (name, "zz"):
        (installed / each).write_text("nothing here\n")
    done = repository(f"x {found_by()['credential'][0]}\n", "a message")
    said = done.stdout + done.stderr
    assert done.returncode != 0
    assert "file.txt:1 credential\n" in said
    assert "usage:" not in said


def test_a_clean_commit_passes(repository: Git, installed: Path) -> None:
    done = repository(
        f"clean {os.urandom(4).hex()}\n", "nothing to hide: see https://links.example/AbC"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing to hide" in git("log", "-1", "--format=%s", cwd=installed).stdout


def test_every_hook_passes_a_clean_tree(
    installed: Path, ours: Path, cache: dict[str, str], repository: Git
) -> None:
    hooks = re.findall(r"^- id: (.+)$", (ours / ".pre-commit-hooks.yaml").read_text(), re.MULTILINE)
    assert re.findall(r"^ +- id: (.+)$", CONFIG, re.MULTILINE) == hooks, "all of them are installed"
    repository("clean\n", "clean")
    done = subprocess.run(
        [program("pre-commit"), "run", "--all-files"],
        cwd=installed,
        env={**MACHINE, **cache},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("Passed") == len(HOOKS)


def test_the_manifest_is_one(ours: Path) -> None:
    done = subprocess.run(
        [program("pre-commit"), "validate-manifest", str(ours / ".pre-commit-hooks.yaml")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
