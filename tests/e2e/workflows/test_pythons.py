"""What the development environment asks for can be had for each Python without a compiler, and the matrix has each.

The whole of it, in empty machines: `tests/endurance/pythons.py`.
"""

from __future__ import annotations

import re
import subprocess
import tomllib

import pytest
import yaml

from support.parts import ROOT, load_module, missing, program

PYTHONS = load_module("pythons", ROOT / "tests/endurance/pythons.py")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
BUILT = {"3.15": ["pyyaml"]}
"""What has no wheel there, and is built without a compiler."""
BUILT_EVERYWHERE = ["matterhook"]
"""What has no wheel at all, and is plain Python."""


@pytest.mark.parametrize("python", PYTHONS.SUITES)
def test_all_that_dev_asks_for_has_a_wheel(python: str) -> None:
    built = [word for name in (*BUILT_EVERYWHERE, *BUILT.get(python, ())) for word in ("--no-binary", name)]
    platform = ["--python-platform", "x86_64-manylinux_2_35", "--python-version", python]
    words = ["--quiet", "--extra", "dev", "--only-binary", ":all:", *built, *platform, "pyproject.toml"]
    command = [program("uv"), "pip", "compile", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0 and re.search("Failed to fetch|error sending request", done.stderr):
        missing(f"the package index cannot be reached: {done.stderr[-300:]}")
    assert done.returncode == 0, done.stderr


def test_each_python_is_in_the_matrix_and_a_classifier() -> None:
    text = (ROOT / ".github/workflows/tests.yml").read_text(encoding="utf-8")
    assert yaml.safe_load(text)["jobs"]["tests"]["strategy"]["matrix"]["python"] == list(PYTHONS.SUITES)
    said = [row.rpartition(" ")[2] for row in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", row)]
    assert said == list(PYTHONS.SUITES)
    assert f"Python {said[0]} to {said[-1]} " in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_script_reads_what_pip_and_pytest_print() -> None:
    assert PYTHONS.readme(ROOT) == [
        "pip install '.[rehearsal]' && sealpipe rehearse",
        "pip install -e '.[dev]' && pytest",
    ]
    text = """
  Downloading a-1-py3-none-any.whl (1.5 MB)
Processing ./b
Downloading c-2.tar.gz (500 kB)
SKIPPED [2] tests/support/parts.py:31: node is not installed
SKIPPED [1] tests/a.py:3: ../shared/vectors/x.json is not beside this checkout
SKIPPED [3] tests/b.py:4: node is not installed
== 1 failed, 2 passed, 6 skipped in 3.00s ==
"""
    done = PYTHONS.Outcome(1, 3.0, text)
    assert done.megabytes == pytest.approx(2.0)
    assert done.skips() == [("node is not installed", 5), ("../shared is not there", 1)]
    assert done.last == "1 failed, 2 passed, 6 skipped in 3.00s"
