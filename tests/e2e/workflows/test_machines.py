"""README's commands hold on any machine: what they ask for can be had for each Python without a
compiler, and what depends on the machine is run on this one with all of it changed at once.

The whole of it, on empty machines: `tests/endurance/machines.py`.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from environment import MACHINE
from support.parts import ROOT, load_module, missing, program, tmpfs

MACHINES = load_module("machines", ROOT / "tests/endurance/machines.py")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
BUILT = {"3.15": ["pyyaml"]}
"""What has no wheel there, and is built without a compiler."""
BUILT_EVERYWHERE = ["matterhook"]
"""What has no wheel at all, and is plain Python."""


@pytest.mark.parametrize("python", MACHINES.SUITES)
def test_all_that_the_suite_asks_for_has_a_wheel(python: str) -> None:
    built = [
        word
        for name in (*BUILT_EVERYWHERE, *BUILT.get(python, ()))
        for word in ("--no-binary", name)
    ]
    platform = ["--python-platform", "x86_64-manylinux_2_35", "--python-version", python]
    words = [
        "--quiet",
        "--extra",
        "dev-all",
        "--only-binary",
        ":all:",
        *built,
        *platform,
        "pyproject.toml",
    ]
    command = [program("uv"), "pip", "compile", *words]
    done = subprocess.run(
        command, cwd=ROOT, env=MACHINE, capture_output=True, text=True, timeout=300, check=False
    )
    if done.returncode != 0 and re.search("Failed to fetch|error sending request", done.stderr):
        missing(f"the package index cannot be reached: {done.stderr[-300:]}")
    assert done.returncode == 0, done.stderr


def test_each_python_is_in_the_matrix_and_a_classifier() -> None:
    text = (ROOT / ".github/workflows/tests.yml").read_text(encoding="utf-8")
    assert yaml.safe_load(text)["jobs"]["tests"]["strategy"]["matrix"]["python"] == list(
        MACHINES.SUITES
    )
    said = [
        row.rpartition(" ")[2] for row in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", row)
    ]
    assert said == list(MACHINES.SUITES)
    assert f"Python {said[0]} to {said[-1]} " in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_script_reads_what_pip_and_pytest_print() -> None:
    assert MACHINES.readme(ROOT) == [
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
    done = MACHINES.Outcome(1, 3.0, text)
    assert done.megabytes == pytest.approx(2.0)
    assert done.skips() == [("node is not installed", 5), ("../shared is not there", 1)]
    assert done.last == "1 failed, 2 passed, 6 skipped in 3.00s"


DEPENDING = (
    "tests/unit/core/test_own_environment.py::test_nothing_of_the_users_is_seen",
    "tests/plugins/local/test_dotenv_encoder.py::test_a_client_of_docker_is_found_in_the_path",
    "tests/plugins/local/test_dotenv_encoder.py::test_the_fake_of_docker_reads_as_docker_does",
    *(
        f"tests/cli/scenarios/test_scenarios.py::test_scenario[{name}]"
        for name in (
            "rehearsal-keys",
            "rehearse",
            "exit-10-no-connection",
            "exit-11-not-delivered",
            "settings-wrong",
        )
    ),
)
"""Tests that failed on somebody's machine, or were likely to."""


def test_what_depends_on_the_machine_passes_on_one_that_is_unlike_in_everything(
    tmp_path: Path,
) -> None:
    """This machine, but for all that stands in the table, at once; by an ordinary user, in a path
    with a space.
    """
    reached = sorted({ROOT, Path(sys.prefix), Path(sys.base_prefix)})
    mounted = [path for path in reached if path.stat().st_dev != Path("/").stat().st_dev]
    parents = sorted({str(parent) for path in reached for parent in path.parents})
    there = shlex.quote(f"{MACHINES.HOMES['ann']}/copy of sealpipe")
    copying = f"""
chmod a+rx {shlex.join(parents)}
mkdir {there}
cd {shlex.quote(str(ROOT))}
git -c safe.directory='*' ls-files -z --cached --others --exclude-standard |
    xargs -0 cp --parents -t {there}
chown -R ann: {there}
"""
    row = MACHINES.MACHINES["all-at-once"]
    python = f"{row.under} {shlex.quote(sys.executable)} -m"
    command = (
        f"cd {there}; {python} pytest -n0 -q {shlex.join(DEPENDING)}; {python} sealpipe rehearse"
    )
    with tmpfs(tmp_path / "memory", size="1g") as memory:
        with MACHINES.machine(memory, Path("/"), mounted, row._replace(setup="")) as run:
            done = run("id -un", program=True)
            if done.last != "ann":
                missing(f"root cannot make such a machine here: {done.last}")
        with MACHINES.machine(
            memory, Path("/"), mounted, row._replace(setup=row.setup + copying)
        ) as run:
            done = run(command, program=True)
    assert done.code == 0, done.text
    assert re.search(r"^\d+ passed(, \d skipped)? in ", done.text, re.MULTILINE), done.text
    assert "No byte that the service received contained the password." in done.text
