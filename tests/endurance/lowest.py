"""The suite with the lowest versions that pyproject.toml allows: `tests/endurance/lowest.py
[FOLDER] [TEST ...]`.

It makes a virtual environment in FOLDER (a new temporary one without it), with every direct
dependency of the product at its floor and everything else, the tools of these tests too, as new as
that allows; and runs the tests there. It needs uv and a package index. Ends with pytest's exit
code, or with uv's where the floors do not go together. `--floors` prints the floors and does
nothing else.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
NOT_OF_THE_PRODUCT = ("all", "dev", "dev-all", "docs")
TWINS = {"botocore"}
"""What a test tool has to go down with (boto3 fits one botocore only); the other tools are told
nothing of floors.
"""
OLDER_TOOLS = ("pytest<9.2",)
"""Tools that are too new for a floor: the lowest anyio has a pytest plugin that warns under pytest
9.2.
"""
TESTS = (
    "cli",
    "contracts",
    "plugins",
    "service",
    "unit/core",
    "unit/references",
    "unit/registry",
    "unit/wire",
)
"""What a version of a dependency can break.

The rest is browsers, runners, images and documentation.
"""


def names(project: Mapping[str, Any]) -> set[str]:
    """The distributions that the product itself asks for, with all its extras."""
    extras = project["optional-dependencies"]
    wanted = [
        *project["dependencies"],
        *(each for name in extras if name not in NOT_OF_THE_PRODUCT for each in extras[name]),
    ]
    return {_name(requirement) for requirement in wanted}


def declared(project: Mapping[str, Any]) -> list[str]:
    """Each floor as `NAME==VERSION`, as pyproject.toml has it: for whatever audits them."""
    extras = project["optional-dependencies"]
    rows = [
        *project["dependencies"],
        *(row for name in extras if name not in NOT_OF_THE_PRODUCT for row in extras[name]),
    ]
    return sorted(
        {f"{_name(row)}=={re.findall(r'>=([0-9][0-9A-Za-z.]*)', row)[0]}" for row in rows}
    )


def floors(locked: Iterable[str], product: set[str]) -> list[str]:
    """The lines of a lock, `NAME==VERSION`, that hold the product's own dependencies where they
    are.
    """
    return [line.strip() for line in locked if "==" in line and _name(line) in product]


def _name(requirement: str) -> str:
    return (
        re.split(r"[^A-Za-z0-9._-]", requirement.strip(), maxsplit=1)[0].lower().replace("_", "-")
    )


def _uv(*words: str | Path) -> None:
    subprocess.run(
        ["uv", *words], check=True, cwd=ROOT, env={**os.environ, "UV_LINK_MODE": "hardlink"}
    )


def make(folder: Path) -> Path:
    """The environment's python."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lock, constraints, overrides = (
        folder / f"{name}.txt" for name in ("lowest", "constraints", "overrides")
    )
    _uv("pip", "compile", "--quiet", "--resolution", "lowest-direct", "--extra", "all",
        "--python-version", PYTHON,
        "--no-annotate", "--no-header", "-o", lock, "pyproject.toml")  # fmt: skip
    found = floors(lock.read_text(encoding="utf-8").splitlines(), names(project))
    print("\n".join(found), flush=True)
    held = [*OLDER_TOOLS, *(line for line in found if _name(line) in TWINS)]
    constraints.write_text("".join(f"{line}\n" for line in held), encoding="utf-8")
    overrides.write_text(
        "".join(f"{line}\n" for line in found if _name(line) not in TWINS), encoding="utf-8"
    )
    python = folder / "venv/bin/python"
    _uv("venv", "--quiet", "--clear", "--seed", "--python", sys.executable, folder / "venv")
    _uv("pip", "install", "--quiet", "--python", python, "--constraint", constraints, "--override",
        overrides,
        "-e", ".[dev-all]")  # fmt: skip
    return python


def main(words: list[str]) -> int:
    """Make it, run the tests in it."""
    if words == ["--floors"]:
        print(
            "\n".join(
                declared(
                    tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
                )
            )
        )
        return 0
    folder = (
        Path(words[0]).absolute() if words else Path(tempfile.mkdtemp(prefix="sealpipe-lowest-"))
    )
    folder.mkdir(parents=True, exist_ok=True)
    tests = words[1:] or [f"tests/{name}" for name in TESTS]
    try:
        python = make(folder)
    except subprocess.CalledProcessError as error:
        return error.returncode
    path = f"{python.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    environ = {**os.environ, "PATH": path, "VIRTUAL_ENV": str(folder / "venv")}
    return subprocess.run(
        [python, "-m", "pytest", "-q", *tests], check=False, cwd=ROOT, env=environ
    ).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
