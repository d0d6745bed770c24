"""Workflows, run by act: a repository of its own, with sealpipe's checkout at `.sealpipe` as a
workflow has it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from support.ci_jobs import forked_sealpipe
from support.parts import ROOT, path_to, program

SEALPIPE = Path(sys.executable).with_name("sealpipe")
PATIENCE = 240
BETWEEN = {
    "actions/cache/restore": """\
newest=$(ls "$STORE" | grep '^cache-' | tail -n 1 || true)
if [ -n "$newest" ]; then
  mkdir -p "$PLACE" && cp -a "$STORE/$newest/." "$PLACE"
  echo "cache-matched-key=${newest#cache-*-}" >> "$GITHUB_OUTPUT"
fi
""",
    "actions/cache/save": (
        'if [ -d "$PLACE" ]; then cp -a "$PLACE" "$STORE/cache-$(ls "$STORE" | wc -l)-$NAME"; fi'
    ),
    "actions/upload-artifact": 'mkdir "$STORE/$NAME" && cp -a "$PLACE" "$STORE/$NAME"',
    "actions/download-artifact": 'cp -a "$STORE/$NAME/." .',
}
"""Actions of GitHub's own that hand files to a later job or run, and what stands in for each
here.
"""
OURS = re.compile(r"(?:OWNER/sealpipe|\$)/actions/([a-z]+)(?:@0{40})?")


@dataclass(frozen=True)
class Ran:
    """What act made of a workflow: its exit code, its log, and the lines of each job."""

    code: int
    log: str

    def succeeded(self, job: str) -> bool:
        """Whether act says so of a job, by the job's name."""
        return any(f"/{job}" in line and "Job succeeded" in line for line in self.log.splitlines())


class Repository:
    """A git repository with workflows. What its `notify` was given on stdin stands in `told`.

    Caches and artifacts are in `store`, the oldest cache first; `sealpipe` is the one that jobs
    find installed.
    """

    def __init__(self, place: Path) -> None:
        self.place, self.here = place, place / "repository"
        self.told = place / "told"
        self.store = place / "store"
        self.store.mkdir()
        self.sealpipe = forked_sealpipe(place)
        ours = self.here / ".sealpipe"
        for part in ("actions", "core"):
            shutil.copytree(ROOT / part, ours / part, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", ours)
        self.script("notify", f"#!/bin/sh\ncat >> '{self.told}'\n")

    def script(self, name: str, text: str) -> None:
        """A program at the repository's root."""
        file = self.here / name
        file.write_text(text)
        file.chmod(0o755)

    def add(self, workflow: Path) -> Path:
        """A workflow of the repository, as act can run it."""
        file = self.here / ".github" / "workflows" / workflow.name
        file.parent.mkdir(parents=True, exist_ok=True)
        made = here(yaml.safe_load(workflow.read_text(encoding="utf-8")), self.store, self.sealpipe)
        file.write_text(yaml.safe_dump(made, sort_keys=False))
        return file

    def run(
        self,
        event: str,
        workflow: Path,
        *,
        secrets: Mapping[str, str],
        variables: Mapping[str, str] | None = None,
        environ: Mapping[str, str] | None = None,
        inputs: Mapping[str, str] | None = None,
    ) -> Ran:
        """Let act run a workflow.

        Secrets reach it by a file, as on a runner they reach it by no argument.
        """
        file = self.add(workflow)
        self._commit()
        home = self.place / "home"
        home.mkdir(exist_ok=True)
        words = [
            program("act"),
            event,
            "-W",
            str(file.relative_to(self.here)),
            "-P",
            "ubuntu-latest=-self-hosted",
        ]
        words += ["--no-cache-server", "--action-offline-mode"]
        known = {"SEALPIPE_EXECUTABLE": str(SEALPIPE), **(variables or {})}
        for option, rows in (
            ("secret", secrets),
            ("var", known),
            ("env", environ or {}),
            ("input", inputs or {}),
        ):
            given = self.place / f"{option}s"
            given.touch(0o600)
            given.write_text("".join(f"{name}={value}\n" for name, value in rows.items()))
            words += [f"--{option}-file", str(given)]
        outer = {
            "PATH": os.pathsep.join([str(SEALPIPE.parent), path_to("git")]),
            "HOME": str(home),
            "LANG": "C.UTF-8",
        }
        done = subprocess.run(
            words,
            cwd=self.here,
            env=outer,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        return Ran(done.returncode, done.stdout + done.stderr)

    def _commit(self) -> None:
        git = [
            program("git"),
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@example.com",
            "-c",
            "commit.gpgsign=false",
        ]
        for words in (
            ["init", "-q", "-b", "main"],
            ["add", "-A"],
            ["commit", "-q", "--allow-empty", "-m", "t"],
        ):
            subprocess.run([*git, *words], cwd=self.here, check=True, capture_output=True)


def here(workflow: dict[Any, Any], store: Path, sealpipe: Path) -> dict[str, Any]:
    """A workflow as act can run it: our actions at `.sealpipe`, with the sealpipe that runs these
    tests, which a checkout of this repository brings; no other checkout. YAML 1.1 reads `on` as
    true.
    """
    jobs = {}
    for name, job in workflow["jobs"].items():
        if "uses" in job:  # act has only this repository
            jobs[name] = job | {
                "uses": f"./.github/workflows/{job['uses'].partition('@')[0].rpartition('/')[2]}"
            }
            continue
        steps = [
            _step(step, store, sealpipe)
            for step in job["steps"]
            if "repository" not in step.get("with", {})
        ]
        if not any("actions/checkout@" in step.get("uses", "") for step in steps):
            steps.insert(0, {"uses": "actions/checkout@v5"})
        jobs[name] = job | {"steps": steps}
    return {("on" if key is True else key): value for key, value in workflow.items()} | {
        "jobs": jobs
    }


def _step(step: dict[str, Any], store: Path, sealpipe: Path) -> dict[str, Any]:
    between = BETWEEN.get(step.get("uses", "").partition("@")[0])
    if between is not None:
        given = step["with"]
        env = {
            "STORE": str(store),
            "NAME": given.get("name", given.get("key")),
            "PLACE": given.get("path", ""),
        }
        return {name: step[name] for name in ("name", "id", "if") if name in step} | {
            "run": between,
            "env": env,
        }
    if "_setup/setup.sh" in step.get("run", ""):
        return step | {"env": {"SEALPIPE_SETUP_EXECUTABLE": str(sealpipe)}}
    ours = OURS.fullmatch(step.get("uses", ""))
    if ours is None:
        return step
    return step | {
        "uses": f"./.sealpipe/actions/{ours[1]}",
        "with": step.get("with", {}) | {"executable": str(sealpipe)},
    }
