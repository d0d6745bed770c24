"""The lock files that setup.sh installs from are in step with pyproject.toml, hash-pinned, and name
no index.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from e2e.actions.setup.setting_up import SetUp
from environment import MACHINE
from support.parts import ROOT, load_module, missing, program

HERE = ROOT / "actions" / "_setup"
LOCKS = sorted((HERE / "locks").glob("*.txt"))


LOCK = load_module("lock", HERE / "lock.py")
PROJECT = LOCK.project()
WANTED = {
    "base": PROJECT["project"]["dependencies"],
    "build": PROJECT["build-system"]["requires"],
    **{name: PROJECT["project"]["optional-dependencies"][name] for name in LOCK.extras()},
}


def rows(name: str) -> dict[str, str]:
    found: dict[str, str] = LOCK.rows((HERE / "locks" / f"{name}.txt").read_text())
    return found


def pinned(name: str) -> list[Requirement]:
    return [Requirement(row.partition("\\")[0]) for row in rows(name).values()]


def test_there_is_a_lock_for_every_extra_and_no_other() -> None:
    assert {file.stem for file in LOCKS} == {"all", *WANTED}


@pytest.mark.parametrize("name", WANTED)
def test_what_pyproject_asks_for_is_locked(name: str) -> None:
    own = pinned(name) if name in ("base", "build") else [*pinned("base"), *pinned(name)]
    for wanted in map(Requirement, WANTED[name]):
        _assert_met(wanted, own, name)


@pytest.mark.parametrize("file", LOCKS, ids=lambda file: file.stem)
def test_every_row_has_one_version_and_hashes_and_no_address(file: Path) -> None:
    text = file.read_text()
    assert "://" not in text
    assert re.search(r"^\s*(-|\[)(?!-hash)", text, re.MULTILINE) is None, (
        "no option: no index, no other file"
    )
    found = LOCK.rows(text)
    assert sum(map(len, found.values())) + len(found) + len(text.splitlines()[0]) + 1 == len(
        text
    ), "and nothing else"
    for row in found.values():
        first, *hashes = [line.strip().removesuffix("\\").strip() for line in row.splitlines()]
        (specifier,) = Requirement(first).specifier
        assert specifier.operator == "=="
        assert hashes
        assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", each) for each in hashes)


@pytest.mark.parametrize("name", sorted({*WANTED} - {"build"}))
def test_what_two_locks_have_in_common_is_the_same_in_both(name: str) -> None:
    whole = rows("all")
    assert rows(name).items() <= whole.items()


def test_all_together_are_all() -> None:
    together = {key for name in WANTED if name != "build" for key in rows(name)}
    assert together == rows("all").keys()


def test_a_lock_that_has_fallen_behind_is_seen() -> None:
    with pytest.raises(AssertionError, match="click"):
        _assert_met(Requirement("click>=9999"), pinned("base"), "base")
    with pytest.raises(AssertionError, match="not-there"):
        _assert_met(Requirement("not-there"), pinned("base"), "base")


def test_what_is_installed_with_every_extra_has_all_that_it_needs(
    set_up: Callable[..., SetUp], checkout: Path
) -> None:
    job = set_up("quick:uv", "python3", checkout=checkout)
    done = job(",".join(LOCK.extras()), "uv")
    command = [program("uv"), "pip", "check", "--python", done.executable.with_name("python")]
    checked = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert checked.returncode == 0, checked.stderr


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14", "3.15"])
@pytest.mark.parametrize(
    "platform", ["x86_64-manylinux_2_35", "aarch64-manylinux_2_35", "aarch64-apple-darwin"]
)
def test_there_are_wheels_for_every_runner(tmp_path: Path, version: str, platform: str) -> None:
    runner = ["--python-platform", platform, "--python-version", version, "--target", tmp_path]
    words = [
        "--dry-run",
        "--require-hashes",
        "--only-binary",
        ":all:",
        "--no-deps",
        "--no-config",
        *runner,
    ]
    # PyYAML has no wheel for 3.15.
    parts = {*WANTED} - {"yaml"} if version == "3.15" else {"all", "build"}
    locks = [word for name in sorted(parts) for word in ("-r", HERE / "locks" / f"{name}.txt")]
    command = [program("uv"), "pip", "install", *words, *locks]
    done = subprocess.run(
        command, env=MACHINE, capture_output=True, text=True, timeout=120, check=False
    )
    if done.returncode != 0 and re.search("Failed to fetch|error sending request", done.stderr):
        missing(f"the package index cannot be reached: {done.stderr[-300:]}")
    assert done.returncode == 0, done.stderr


def test_shellcheck_finds_nothing() -> None:
    done = subprocess.run(
        [program("shellcheck"), *HERE.glob("*.sh")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_the_script_is_for_the_bash_of_macos() -> None:
    text = "".join(file.read_text() for file in HERE.glob("*.sh"))
    newer = (
        r"\bmapfile\b|\breadarray\b|declare -[An]|local "
        r"-[An]|\$\{\w+(\^|,|@)|&>>|\|&|\bcoproc\b|wait -[np]|EPOCH"
    )
    assert re.findall(newer, text) == []
    assert "set -x" not in text


def _assert_met(wanted: Requirement, locked: list[Requirement], lock: str) -> None:
    found = [
        each for each in locked if canonicalize_name(each.name) == canonicalize_name(wanted.name)
    ]
    assert found, f"{wanted.name} is not in {lock}.txt: python -I actions/_setup/lock.py"
    for each in found:
        (specifier,) = each.specifier
        assert wanted.specifier.contains(specifier.version), (
            f"{each} in {lock}.txt is not {wanted}: python -I actions/_setup/lock.py"
        )
