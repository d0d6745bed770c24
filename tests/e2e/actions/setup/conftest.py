"""Fixtures: setup.sh in a checkout of its own, as a runner calls it, with an index that these tests
hold themselves.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from e2e.actions.setup.setting_up import PARTS, SetUp, own_tool
from environment import MACHINE
from support.parts import ROOT, missing


@pytest.fixture(scope="session")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What an action is checked out as: no more than it is installed from."""
    folder = tmp_path_factory.mktemp("checkout")
    for part in PARTS:
        if (ROOT / part).is_dir():
            shutil.copytree(
                ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__", ".*_cache")
            )
        else:
            shutil.copy(ROOT / part, folder / part)
    return folder


@pytest.fixture(scope="session")
def light(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with a lock of one package, which is enough for `sealpipe --version`, and takes a
    tenth of the time.
    """
    folder = shutil.copytree(checkout, tmp_path_factory.mktemp("light") / "checkout")
    lock = folder / "actions/_setup/locks/base.txt"
    (click,) = re.findall(r"^click==.*\n(?: .*\n)*", lock.read_text(), re.MULTILINE)
    lock.write_text(click)
    return folder


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Everything that is locked, as wheels: fetched once from this machine's index, their hashes
    checked.
    """
    shared = tmp_path_factory.getbasetemp().parent  # with -n0 a folder that outlives the run
    files = [ROOT / "actions/_setup/locks" / f"{name}.txt" for name in ("all", "build")]
    locked = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
    folder = shared / f"locked-wheels-{locked[:12]}"
    with (shared / "locked-wheels.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            locks = [word for file in files for word in ("-r", file)]
            words = [
                "--require-hashes",
                "--only-binary",
                ":all:",
                "--no-deps",
                "--quiet",
                "--dest",
                f"{folder}.part",
            ]
            command = [sys.executable, "-m", "pip", "download", *words, *locks]
            done = subprocess.run(
                command, env=MACHINE, capture_output=True, text=True, timeout=300, check=False
            )
            if done.returncode != 0:
                missing(f"the package index cannot be reached: {done.stderr[-300:]}")
            Path(f"{folder}.part").rename(folder)
    return folder


@pytest.fixture
def set_up(tmp_path: Path, light: Path, wheels: Path) -> Callable[..., SetUp]:
    """Make a job that calls setup.sh.

    Its PATH has what setup.sh names, and the tools that are asked for.
    """

    def make(*tools: str, checkout: Path = light, place: Path = tmp_path / "job") -> SetUp:
        environ = {
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(wheels),
            "UV_OFFLINE": "1",
            "UV_FIND_LINKS": str(wheels),
        }
        job = SetUp(place, checkout, environ)
        for tool in tools:
            own_tool(job.tools, tool)
        return job

    return make
