"""A project whose pipeline gitlab-ci-local runs: the templates by `include`, CI variables as the project's settings."""

from __future__ import annotations

import json
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

from support.gitlab_templates import FOLDER
from support.parts import program

PATIENCE = 180
BASE, IMAGE = "sealpipe-base:under-test", "sealpipe:under-test"
SHELL = ("--force-shell-executor", "--shell-isolation")
# GitLab takes a job with no tag in its list; the schema that this program checks by does not.
ALWAYS = ("--no-color", "--ignore-schema-paths", "#/definitions/tags/minItems")
DOCKER = ("--network", "host", "--helper-image", BASE, "--pull-policy", "if-not-present", "--no-umask")
Include = tuple[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Ran:
    """A pipeline that ended."""

    code: int
    log: str
    place: Path

    def artifact(self, job: str, name: str) -> Path:
        """A file that a job left to later ones."""
        return self.place / ".gitlab-ci-local/artifacts" / job / name

    def report(self, job: str) -> Path:
        """Its dotenv report."""
        return self.artifact(job, ".gitlab-ci-reports/dotenv/sealpipe.env")


class Pipeline:
    """A checkout with an origin. `variables` are the project's CI variables: they go before those of a job."""

    def __init__(self, place: Path, variables: Mapping[str, str]) -> None:
        self.place, self.home = place / "project", place / "home"
        for folder in (self.place / "templates", self.home / ".gitlab-ci-local"):
            folder.mkdir(parents=True)
        for template in FOLDER.glob("*.yml"):
            shutil.copy(template, self.place / "templates")
        # The runner that this program plays says `false` here: the real one says `true`.
        self.variables = {"GITLAB_CI": "true", **variables}

    def run(
        self, *includes: tuple[str, Mapping[str, Any]], docker: Mapping[str, str] | None = None, **jobs: Any
    ) -> Ran:
        """Run templates with their inputs, and jobs of the project's own; `docker`: the environment of its client."""
        config = {
            "stages": ["before", "deploy", "vendor", "after"],
            "include": [
                {"local": f"templates/{name}.yml", "inputs": {"image": IMAGE, **inputs}} for name, inputs in includes
            ],
            **jobs,
        }
        (self.place / ".gitlab-ci.yml").write_text(yaml.safe_dump(config, sort_keys=False))
        (self.place / ".gitignore").write_text("/.gitlab-ci-local/\n")
        settings = {name: {"type": "variable", "values": {"*": text}} for name, text in self.variables.items()}
        (self.home / ".gitlab-ci-local/variables.yml").write_text(json.dumps({"global": settings}))
        self._commit()
        command = [program("gitlab-ci-local"), "--home", str(self.home)]
        tools = [str(Path(sys.executable).parent), str(Path(program("node")).parent), os.defpath]
        environ = {"PATH": os.pathsep.join(tools), "HOME": str(self.home), "LANG": "C.UTF-8", **(docker or {})}
        done = subprocess.run(
            [*command, *(SHELL if docker is None else DOCKER), *ALWAYS],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environ,
            cwd=self.place,
            timeout=PATIENCE,
            check=False,
        )
        return Ran(done.returncode, re.sub(r"\x1b\[[0-9;]*m", "", done.stdout.decode()), self.place)

    def _commit(self) -> None:
        program("rsync")
        git = ["git", "-C", str(self.place), "-c", "user.name=t", "-c", "user.email=t@example.invalid"]
        environ = {"PATH": os.defpath, "HOME": str(self.home), "GIT_CONFIG_NOSYSTEM": "1"}

        def call(*words: str) -> None:
            subprocess.run([*git, *words], env=environ, check=True, capture_output=True)

        if not (self.place / ".git").exists():
            call("init", "--quiet", "--initial-branch=main")
            call("remote", "add", "origin", "git@gitlab.example.invalid:acme/app.git")
        call("add", "--all")
        call("commit", "--quiet", "--allow-empty", "--message=pipeline")
