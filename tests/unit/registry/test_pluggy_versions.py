"""Third-party plugins on every pluggy that sealpipe asks for but the newest, on which all other
tests are: each version installed apart, and put before ours.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from environment import MACHINE
from support.parts import ROOT, missing

FILES = ("test_third_party.py", "test_allowing.py")
COMMANDS = (
    "test_they_are_listed_with_the_plugins",
    "test_a_broken_plugin_is_reported_and_affects_no_other",
    "test_names_that_are_taken_stay_with_their_owners",
)
"""How the hook of commands is called: of all, of broken ones, of two at once.

The other tests call it the same way.
"""
TESTS = [
    f"tests/unit/registry/{name}"
    for name in (*FILES, *(f"test_commands.py::{test}" for test in COMMANDS))
]


@pytest.mark.parametrize("version", ["1.5", "1.6"])
def test_plugins_work_on_each_pluggy(version: str, tmp_path: Path) -> None:
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
    ]
    got = subprocess.run(
        [*pip, "--target", tmp_path, f"pluggy=={version}.*"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=MACHINE,
    )
    if got.returncode != 0:
        missing(f"pluggy {version} cannot be had: {got.stderr.strip().splitlines()[-1:]}")
    environ = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    code = "import sys, pluggy; print(pluggy.__version__, pluggy.__file__)"
    used = subprocess.run(
        [sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True
    )
    assert used.stdout.startswith(f"{version}.")
    assert str(tmp_path) in used.stdout
    plugins = ["-p", "no:cacheprovider", "-p", "pytest_timeout"]
    options = ["-o", "addopts=--import-mode=importlib", "-q", "-x", *plugins]
    command = [sys.executable, "-m", "pytest", *options, *TESTS]
    done = subprocess.run(
        command, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout
    assert " skipped" not in done.stdout
