"""Whether a tag may be released: `python -I .github/release/ready.py`, in the release workflow,
after a whole checkout.

GITHUB_REF_NAME is the tag and GITHUB_SHA its commit. The tag is the version, and every place and
the changelog name it; the addresses of pyproject.toml are of GITHUB_REPOSITORY; the commit is on
main; and the workflow of the tests has succeeded for it. Each that does not hold is printed, with
exit code 1.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent


def find_obstacles(tag: str, commit: str, repository: str) -> Iterator[str]:
    """Yield each reason against a release."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    if tag != f"v{project['version']}":
        yield f"the tag {tag} is not the version {project['version']}"
    for script, *words in (("version.py",), ("notes.py", project["version"])):
        done = _run(sys.executable, "-I", str(HERE / script), *words)
        if done.returncode:
            yield f"{script}: {(done.stderr or done.stdout).strip()}"
    if project["urls"]["Source"] != f"https://github.com/{repository}":
        yield (
            f"pyproject.toml has the address {project['urls']['Source']}, and this is {repository}"
        )
    if _run("git", "merge-base", "--is-ancestor", commit, "refs/remotes/origin/main").returncode:
        yield f"the commit {commit} is not on main"
    runs = f"repos/{repository}/actions/workflows/tests.yml/runs"
    query = f"{runs}?head_sha={commit}&event=push&branch=main"
    done = _run("gh", "api", query)
    runs = json.loads(done.stdout)["workflow_runs"] if done.returncode == 0 else []
    newest = max(runs, key=lambda run: run["run_number"], default=None)
    if newest is None or (newest["status"], newest["conclusion"]) != ("completed", "success"):
        state = "no run" if newest is None else newest["conclusion"] or newest["status"]
        yield f"the tests of {commit} have not succeeded: {state}"


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)


def main() -> int:
    environ = os.environ
    obstacles = list(
        find_obstacles(
            environ["GITHUB_REF_NAME"], environ["GITHUB_SHA"], environ["GITHUB_REPOSITORY"]
        )
    )
    print("\n".join(obstacles) or "ready")
    return int(bool(obstacles))


if __name__ == "__main__":
    sys.exit(main())
