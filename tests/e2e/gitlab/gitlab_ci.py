"""GitLab for tests: the templates as it reads them, a project whose pipeline gitlab-ci-local runs,
and a vendor's job.

The templates are those of containers/gitlab; that reading, and that of a dotenv report, are written
from GitLab's documentation of `spec:inputs` (a string that is nothing but one input takes that
input's type; else the input's text stands in it) and of `artifacts:reports:dotenv`, and from
CI-FACTS.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jwt as pyjwt
import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from support.ci_jobs import forked_sealpipe
from support.openbao import Bao
from support.parts import ROOT, path_to, program

FOLDER = ROOT / "containers/gitlab"
NAMES = ("share", "request", "collect", "expire", "batch")
BOUND = '--bind "gitlab:$CI_PROJECT_PATH:$CI_PIPELINE_ID"'
"""What a sealed link of the template is bound to, as a later job writes it."""
INPUT = re.compile(r"\$\[\[ inputs\.([a-z-]+) \]\]")


@dataclass(frozen=True)
class Template:
    """One file: its inputs, and the document that they are put into."""

    name: str
    inputs: dict[str, dict[str, Any]]
    document: dict[str, Any]

    @classmethod
    def read(cls, name: str) -> Template:
        head, document = yaml.safe_load_all((FOLDER / f"{name}.yml").read_text(encoding="utf-8"))
        assert list(head) == ["spec"]
        assert list(head["spec"]) == ["inputs"]
        return cls(name, head["spec"]["inputs"], document)

    @property
    def job(self) -> dict[str, Any]:
        """The one job, its inputs not filled in."""
        (job,) = self.document.values()
        return dict(job)

    def filled(self, **given: Any) -> dict[str, Any]:
        """The document with inputs (`_` for `-`), defaults in place of the rest."""
        named = {name.replace("_", "-"): value for name, value in given.items()}
        assert set(named) <= set(self.inputs), named
        values = {
            name: named.get(name, about.get("default")) for name, about in self.inputs.items()
        }
        assert None not in values.values(), values
        filled = put_in(self.document, values)
        assert isinstance(filled, dict)
        return filled


def put_in(node: Any, values: Mapping[str, Any]) -> Any:
    """A node of the document with the inputs in place."""
    if isinstance(node, dict):
        return {put_in(key, values): put_in(value, values) for key, value in node.items()}
    if isinstance(node, list):
        return [put_in(each, values) for each in node]
    if not isinstance(node, str):
        return node
    whole = INPUT.fullmatch(node)
    return values[whole[1]] if whole else INPUT.sub(lambda found: str(values[found[1]]), node)


def texts(node: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Every text of a node, keys too, and where it stands."""
    if isinstance(node, dict):
        for key, value in node.items():
            yield path, str(key)
            yield from texts(value, (*path, str(key)))
    elif isinstance(node, list):
        for each in node:
            yield from texts(each, path)
    elif isinstance(node, str):
        yield path, node


class ReportError(Exception):
    """GitLab fails the job's upload."""


def read_dotenv(file: Path) -> dict[str, str]:
    """A dotenv report as GitLab takes it: 5 KB, 20 variables, no blank line, and quotes are part of
    the value.
    """
    data = file.read_bytes()
    if len(data) > 5 * 1024:
        raise ReportError("larger than 5 KB")
    found: dict[str, str] = {}
    for line in data.decode("ascii").splitlines():
        name, sign, value = line.partition("=")
        if not sign or not re.fullmatch(r"[A-Za-z0-9_]+", name.strip()):
            raise ReportError(f"Invalid Format: {line!r}")
        found[name.strip()] = value.strip()
    if len(found) > 20:
        raise ReportError("more than 20 variables")
    return found


PATIENCE = 180
BASE, IMAGE = "sealpipe-base:under-test", "sealpipe:under-test"
SERVER_IMAGE = "sealpipe-server:under-test"
SHELL = ("--force-shell-executor", "--shell-isolation")
ALWAYS = ("--no-color",)
DOCKER = (
    "--network",
    "host",
    "--helper-image",
    BASE,
    "--pull-policy",
    "if-not-present",
    "--no-umask",
)
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
    """A checkout with an origin.

    `variables` are the project's CI variables: they go before those of a job.
    """

    def __init__(self, place: Path, variables: Mapping[str, str]) -> None:
        self.place, self.home = place / "project", place / "home"
        for folder in (self.place / "templates", self.home / ".gitlab-ci-local"):
            folder.mkdir(parents=True)
        for template in FOLDER.glob("*.yml"):
            shutil.copy(template, self.place / "templates")
        # The runner that this program plays says `false` here: the real one says `true`.
        self.variables = {"GITLAB_CI": "true", **variables}
        self.sealpipe = forked_sealpipe(place)

    def run(
        self,
        *includes: tuple[str, Mapping[str, Any]],
        docker: Mapping[str, str] | None = None,
        **jobs: Any,
    ) -> Ran:
        """Run templates with their inputs, and jobs of the project's own; `docker`: the environment
        of its client.
        """
        config = {
            "stages": ["before", "deploy", "vendor", "after"],
            "include": [
                {"local": f"templates/{name}.yml", "inputs": {"image": IMAGE, **inputs}}
                for name, inputs in includes
            ],
            **jobs,
        }
        (self.place / ".gitlab-ci.yml").write_text(yaml.safe_dump(config, sort_keys=False))
        return self.run_own_file(docker)

    def run_own_file(self, docker: Mapping[str, str] | None = None) -> Ran:
        """Run the pipeline of the project's own file."""
        (self.place / ".gitignore").write_text("/.gitlab-ci-local/\n")
        settings = {
            name: {"type": "variable", "values": {"*": text}}
            for name, text in self.variables.items()
        }
        (self.home / ".gitlab-ci-local/variables.yml").write_text(json.dumps({"global": settings}))
        self._commit()
        command = [program("gitlab-ci-local"), "--home", str(self.home)]
        tools = [
            str(self.sealpipe.parent),
            str(Path(sys.executable).parent),
            path_to("node", "git", "rsync"),
        ]
        environ = {
            "PATH": os.pathsep.join(tools),
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            **(docker or {}),
        }
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
        git = [
            program("git"),
            "-C",
            str(self.place),
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@example.invalid",
        ]
        environ = {"PATH": os.defpath, "HOME": str(self.home), "GIT_CONFIG_NOSYSTEM": "1"}

        def call(*words: str) -> None:
            subprocess.run([*git, *words], env=environ, check=True, capture_output=True)

        if not (self.place / ".git").exists():
            call("init", "--quiet", "--initial-branch=main")
            call("remote", "add", "origin", "git@gitlab.example.invalid:acme/app.git")
        call("add", "--all")
        call("commit", "--quiet", "--allow-empty", "--message=pipeline")


def handed(
    name: str, place: Path, environ: Mapping[str, str], code: int = 6
) -> tuple[int, list[list[str]]]:
    """What a template's script starts sealpipe with, a stand-in here that ends with `code`: 6 for
    an unknown code.
    """
    tool, told = place / "bin/sealpipe", place / "told"
    tool.parent.mkdir()
    tool.write_text(
        f'#!/bin/sh\nprintf "%s\\037" "$@" >> {told}; echo >> {told}; mkdir -p '
        f".sealpipe/batch; exit {code}\n"
    )
    tool.chmod(0o755)
    (script,) = Template.read(name).job["script"]
    done = subprocess.run(
        ["sh", "-c", script],
        cwd=place,
        env={"PATH": f"{tool.parent}:{os.defpath}", **environ},
        stdin=subprocess.DEVNULL,
        check=False,
    )
    return done.returncode, [
        line.split("\x1f")[:-1] for line in told.read_text().splitlines()
    ] if told.exists() else []


ANSWERED = {"password": "canary-of-the-vendor", "user": "acme"}
"""What the vendor's answers are stored as."""

_SCRIPT = f"""
import os
from sealpipe_rehearsal.people import Submitter
origin = os.environ["SEALPIPE_BASE_URL"].removesuffix("/v1")
link = os.environ["SEALPIPE_LINK_BASE_URL"] + "/r/" + os.environ["REQUEST_SHORT_CODE"]
values = {{"Staging password": "{ANSWERED["password"]}", "User name": "{ANSWERED["user"]}"}}
Submitter(origin).submit(link, values)
"""
SUBMITS: dict[str, Any] = {
    "stage": "vendor",
    "image": IMAGE,
    "script": ['python3 -c "$VENDOR"'],
    "variables": {"VENDOR": _SCRIPT},
}
"""A job that answers the request that was reported."""


def log_in(pipeline: Pipeline, bao: Bao) -> None:
    """OpenBao trusts this project's tokens, and the job has one, as GitLab would have made it."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    mount = f"gitlab-{secrets.token_hex(4)}"  # others log in to the same one
    bao.call("POST", f"sys/auth/{mount}", {"type": "jwt"})
    bao.call("POST", f"auth/{mount}/config", {"jwt_validation_pubkeys": [public.decode()]})
    rules = (
        'path "secret/data/vendor/*" { capabilities = ["create", "read", "update"] }',
        'path "secret/metadata/vendor/*" { capabilities = ["read", "patch"] }',
    )
    bao.call("PUT", "sys/policies/acl/vendor", {"policy": "\n".join(rules)})
    role = {
        "role_type": "jwt",
        "user_claim": "project_path",
        "bound_audiences": ["vault.example"],
        "bound_claims": {"project_path": "acme/app", "ref_protected": "true"},
        "token_policies": ["vendor"],
    }
    bao.call("POST", f"auth/{mount}/role/app", role)
    now = int(time.time())
    claims = {
        "aud": "vault.example",
        "project_path": "acme/app",
        "ref_protected": "true",
        "iat": now,
        "exp": now + 300,
    }
    pipeline.variables |= {
        "VAULT_ADDR": bao.addr,
        "VAULT_AUTH_PATH": mount,
        "VAULT_AUTH_ROLE": "app",
        "VAULT_ID_TOKEN": pyjwt.encode(claims, key, algorithm="RS256"),
    }
