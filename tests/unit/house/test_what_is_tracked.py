"""The repository holds what is made by hand, and nothing that a run of the tests left in the
clone.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
FOLDERS = {".ci", ".github", "actions", "containers", "core", "docs", "plugins", "tests"}
FILES = {
    ".dockerignore",
    ".gitignore",
    ".pre-commit-hooks.yaml",
    "LICENSE",
    "README.md",
    "pyproject.toml",
}


def test_the_root_has_the_projects_folders_and_files_alone() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("this is no clone")
    command = ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    found = {name.partition("/")[0] for name in listed.split("\0") if name}
    assert sorted(found - FOLDERS - FILES) == []
