"""Fixtures: the actions as a workflow has them, and a job that uses them against the rehearsal
service.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from e2e.actions.fake_runner import FakeRunner
from sealpipe_rehearsal.running_service import RunningService
from support.ci_jobs import forked_sealpipe
from support.parts import ROOT
from support.terminal import addresses, one_service, service

__all__ = ["one_service", "service"]

sys.path.insert(0, str(ROOT / "actions" / "_run"))

SEALPIPE = Path(sys.executable).with_name("sealpipe")

STUB = """#!/usr/bin/env bash
set -euo pipefail
printf 'extras=%s\\n' "$SEALPIPE_SETUP_EXTRAS" >> "$GITHUB_OUTPUT"
printf 'executable=%s\\n' "${SEALPIPE_SETUP_EXECUTABLE:-SEALPIPE}" >> "$GITHUB_OUTPUT"
"""
"""In setup.sh's place: what these tests are about comes after it. It has tests of its own."""


@pytest.fixture(scope="session")
def actions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The actions' folder, as it is checked out, but with a set-up that takes a sealpipe of these
    tests.
    """
    folder = tmp_path_factory.mktemp("checkout") / "actions"
    shutil.copytree(
        ROOT / "actions", folder, ignore=shutil.ignore_patterns("__pycache__", "_setup")
    )
    shutil.copytree(
        ROOT / "core", folder.parent / "core", ignore=shutil.ignore_patterns("__pycache__")
    )
    (folder / "_setup").mkdir()
    sealpipe = forked_sealpipe(tmp_path_factory.mktemp("bin"))
    (folder / "_setup" / "setup.sh").write_text(STUB.replace(":-SEALPIPE", f":-{sealpipe}"))
    return folder


@pytest.fixture
def job(tmp_path: Path, service: RunningService) -> Callable[..., FakeRunner]:
    """Start a job: its variables point at the service, and the step's `env` is given with
    `uses`.
    """

    def start(
        name: str = "job", hidden: dict[str, str] | None = None, **environ: Any
    ) -> FakeRunner:
        debug = bool(environ.pop("debug", False))
        home = tmp_path / name / "home"
        home.mkdir(parents=True)
        base = {
            "PATH": f"{SEALPIPE.parent}:/usr/bin:/bin",
            "HOME": str(home),
            "LANG": "C.UTF-8",
            **addresses(service),
        }
        return FakeRunner(tmp_path / name, {**base, **environ}, hidden, debug=debug)

    return start


@pytest.fixture
def key(service: RunningService) -> str:
    """A credential with all scopes and custody `self`."""
    return service.create_key().reveal()
