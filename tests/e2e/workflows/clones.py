"""A clone of the project, as somebody has it who releases it or makes it their own."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from support.parts import ROOT


def git(folder: Path, *words: str) -> str:
    """What git prints."""
    return subprocess.run(
        ["git", *words], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


def clone(place: Path) -> Path:
    """The project as somebody cloned it, with the programs of this tree."""
    if not (ROOT / ".git").exists():
        pytest.skip("this is no git checkout")
    subprocess.run(["git", "clone", "-q", "--shared", ROOT, place], check=True)
    for name in ("pyproject.toml", "core/sealpipe/version.py"):
        shutil.copy(ROOT / name, place / name)
    for name in (".github/release", "docs", "containers"):
        shutil.rmtree(place / name)
        shutil.copytree(ROOT / name, place / name, ignore=shutil.ignore_patterns("__pycache__"))
    return place
