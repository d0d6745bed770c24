"""Each recipe's shell steps, run in order against the rehearsal service and a real OpenBao, as its
CI system would.

The systems themselves are fakes, written from their documentation: the variables of a job, how a
script is started, what a step is given and hands on, and the programs and the endpoint by which a
job gets its token.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import jwt
import pytest
import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from e2e.recipes.recipes import FOLDER, PARTS, SYSTEMS, Step, System, read
from sealpipe.ci_systems import CI_SYSTEMS, detect_ci_system
from sealpipe_rehearsal.running_service import RunningService
from support.ci_jobs import forked_sealpipe
from support.fake_web import Asked, FakeWeb, Reply
from support.openbao import Bao, dev_server
from support.parts import ROOT, check_schema, library, load_module, program, shebang
from support.terminal import PATIENCE, Terminal, bare, one_service, service, user

__all__ = ["bare", "one_service", "service", "user"]

PASSWORD = "canary-of-the-staging-system"
ANSWERS = {"User name": "acme-bot", "Password": "canary-of-the-vendor"}
STORED = {"user": "acme-bot", "password": "canary-of-the-vendor"}
AUDIENCES = {"azure": "api://AzureADTokenExchange", "bitbucket": "ari:cloud:bitbucket::workspace/w"}
"""Where the system chooses the audience; elsewhere it is Vault's address."""

STARTED = ("jenkins",)
"""Systems whose jobs start each sealpipe whole: how it is started is the same for all."""

PROGRAM = f"""{shebang("-I")}# In the place of buildkite-agent and circleci.
import os, sys
words = sys.argv[1:]
if words[:2] in (["redactor", "add"], ["meta-data", "set"]):
    sys.stdin.read()
elif "oidc" in words:
    sys.stdout.write(open(os.environ["TOKEN_OF_THE_JOB"]).read())
elif words[:2] != ["artifact", "download"]:
    sys.exit(f"no such command: {{words}}")
"""


@pytest.fixture(scope="session")
def bao() -> Iterator[Bao]:
    """A Vault that trusts each system's tokens at a mount of its own, and an AppRole; what they may
    is one policy.
    """
    with dev_server() as running:
        rules = (
            'path "secret/data/vendor/*" { capabilities = ["create", "read", "update"] }',
            'path "secret/metadata/vendor/*" { capabilities = ["read", "patch"] }',
        )
        running.call("PUT", "sys/policies/acl/vendor", {"policy": "\n".join(rules)})
        running.call("POST", "sys/auth/approle", {"type": "approle"})
        running.call("POST", "auth/approle/role/vendor", {"token_policies": ["vendor"]})
        yield running


@pytest.fixture(scope="session")
def issuer(bao: Bao) -> rsa.RSAPrivateKey:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    for name in ("azure", "bitbucket", "buildkite", "circleci", "jenkins"):
        bao.call("POST", f"sys/auth/{name}", {"type": "jwt"})
        bao.call("POST", f"auth/{name}/config", {"jwt_validation_pubkeys": [public.decode()]})
        role = {"role_type": "jwt", "user_claim": "sub", "token_policies": ["vendor"]}
        bao.call(
            "POST",
            f"auth/{name}/role/vendor",
            role | {"bound_audiences": [AUDIENCES.get(name, bao.addr)]},
        )
    return key


class Endpoint(FakeWeb):
    """In the place of Azure's token endpoint."""

    token = ""

    def answer(self, asked: Asked) -> Reply:
        allowed = asked.headers.get("authorization") == "Bearer token-of-the-run"
        return Reply(200, {"oidcToken": self.token}) if allowed else Reply(401)


class Job:
    """The jobs of one recipe: their secrets, what they said, and the files that they hand on."""

    def __init__(
        self, name: str, place: Path, replaced: Mapping[str, str], secrets: Mapping[str, str]
    ) -> None:
        self.system: System = SYSTEMS[name]
        self.steps: dict[str, Step] = read(name, replaced)
        self.place, self.secrets = place, secrets
        self.settings: dict[str, str] = {}
        self.log = ""
        self.handed: dict[str, bytes] = {}
        self.told, self.seen = place / "told", place / "environment of notify"

    def run(self, part: str) -> int:
        """Run a step, and after `unseal` the program, if that is a step of its own."""
        code = self._run(part)
        code = (
            self._run("notify")
            if part == "unseal" and code == 0 and "notify" in self.steps
            else code
        )
        left = {each.name for folder in self.place.glob("work*") for each in folder.iterdir()}
        left |= {each.name for name in self.steps for each in (self.place / name).glob("*")}
        assert left <= {"notify", "link.sealed"}, (
            "nothing is left where a later build could find it"
        )
        return code

    def _run(self, part: str) -> int:
        """Run a step in a checkout of its own, or in that of the step before."""
        step = self.steps[part]
        here = self.place / ("work" if self.system.shared_workspace else part)
        (here / "link").parent.mkdir(parents=True, exist_ok=True)
        notify = here / "notify"
        notify.write_text(f"#!/bin/sh\ncat >> '{self.told}'\nenv >> '{self.seen}'\n")
        notify.chmod(0o755)
        for name, content in self.handed.items():
            folder = (
                self.place / "downloads/link" if "PIPELINE_WORKSPACE" in self.settings else here
            )
            folder.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        script = self.place / f"{part}.sh"
        script.write_text(step.script)
        done = subprocess.run(
            [*self.system.shell, str(script)],
            cwd=here,
            env=self._environ(step),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        self.log += done.stdout
        self.handed |= {name: (here / name).read_bytes() for name in step.kept}
        return done.returncode

    def _environ(self, step: Step) -> dict[str, str]:
        tools = [str(self.place / "bin"), str(Path(sys.executable).parent), os.defpath]
        base = {"PATH": os.pathsep.join(tools), "HOME": str(self.place / "home"), "LANG": "C.UTF-8"}
        given = {name: self.secrets[name] for name in step.secrets if name in self.secrets}
        return {**base, **self.system.job, **self.settings, **step.environ, **given}


@pytest.fixture(params=sorted(SYSTEMS))
def job(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    service: RunningService,
    user: Terminal,
    bao: Bao,
    issuer: rsa.RSAPrivateKey,
) -> Iterator[Job]:
    name = request.param
    asked = user.sealpipe(
        "request", "-a", "User name:text", "-a", "Password", "--output", "json"
    ).json
    service.submitter().submit(asked["collect_link"], ANSWERS)
    now = int(time.time())
    claims = {"sub": "acme/app", "aud": AUDIENCES.get(name, bao.addr), "iat": now, "exp": now + 300}
    token = jwt.encode(claims, issuer, algorithm="RS256")
    role = bao.call("GET", "auth/approle/role/vendor/role-id")["role_id"]
    secrets = {
        "SEALPIPE_API_KEY": user.environ["SEALPIPE_API_KEY"],
        "STAGING_PASSWORD": PASSWORD,
        "BITBUCKET_STEP_OIDC_TOKEN": token,
        "ID_TOKEN": token,
        "SYSTEM_ACCESSTOKEN": "token-of-the-run",
        "SEALPIPE_PLUGIN_AZURE__SERVICE_CONNECTION": "0000-1111",
        "VAULT_ROLE_ID": role,
        "VAULT_SECRET_ID": bao.call("POST", "auth/approle/role/vendor/secret-id")["secret_id"],
    }
    replaced = {
        "https://api.example.com/v1": service.base_url,
        "https://links.example.com": "https://links.example",
        "https://vault.example.com": bao.addr,
        "code-of-the-request": asked["short_code"],
        "role-of-this-project": role,
        "%system.teamcity.build.tempDir%": str(tmp_path),
        "/tmp/sealpipe": str(tmp_path / "state"),
        "${env.WORKSPACE_TMP}": str(tmp_path),
        "$[ dependencies.share.outputs['share.SHORT_CODE'] ]": '""',
    }
    made = Job(name, tmp_path / "jobs", replaced, secrets)
    (made.place / "bin").mkdir(parents=True)
    if name not in STARTED:
        forked_sealpipe(made.place / "bin")
    (made.place / "home").mkdir()
    (made.place / "token").write_text(token)
    if name in ("buildkite", "circleci"):
        program = (
            made.place / "bin" / {"buildkite": "buildkite-agent", "circleci": "circleci"}[name]
        )
        program.write_text(PROGRAM)
        program.chmod(0o755)
    with Endpoint() as endpoint:
        endpoint.token = token
        known = {
            "SEALPIPE_BASE_URL": service.base_url,
            "SEALPIPE_LINK_BASE_URL": "https://links.example",
            "VENDOR_REQUEST": asked["short_code"],
            "VAULT_ADDR": bao.addr,
            "PIPELINE_WORKSPACE": str(made.place / "downloads"),
            "WORKSPACE_TMP": str(tmp_path),
            "AGENT_TEMPDIRECTORY": str(tmp_path),
            "SYSTEM_OIDCREQUESTURI": f"http://127.0.0.1:{endpoint.port}/token",
        }
        made.settings = {each: known[each] for each in made.system.settings}
        made.settings["TOKEN_OF_THE_JOB"] = str(made.place / "token")
        yield made


def test_it_shares_unseals_in_a_later_job_and_collects_by_a_login_without_a_stored_secret(
    job: Job, service: RunningService, bao: Bao
) -> None:
    for part in PARTS:
        assert job.run(part) == 0, job.log
    link = job.told.read_text().strip()
    assert link.startswith("https://links.example/")
    fields = service.recipient().open_link(link)
    assert {each.key: str(each.value) for each in fields if each.type == "text"} == {
        "User": "staging"
    }
    assert bao.call("GET", "secret/data/vendor/acme")["data"] == STORED
    assert not list(job.place.parent.glob("link.txt"))
    given = job.seen.read_text()
    assert [
        name for name, secret in job.secrets.items() if secret in given and name != "VAULT_ROLE_ID"
    ] == []
    (sealed,) = {file.read_text().strip() for file in job.place.rglob("link.sealed")}
    assert sealed not in job.log, "a trace shows what is an argument"
    fragment = link.partition("#")[2]
    secrets = {name: value for name, value in job.secrets.items() if name not in ("VAULT_ROLE_ID",)}
    for name, canary in {
        **secrets,
        "link": fragment,
        "key": fragment[1:],
        "answer": STORED["password"],
    }.items():
        masked = re.sub(r"^##vso\[task\.setsecret\].*$", "", job.log, flags=re.MULTILINE)
        assert canary not in masked or name.endswith("SERVICE_CONNECTION"), name
    bao.call("DELETE", "secret/metadata/vendor/acme")


def test_a_collect_without_a_submission_passes(job: Job, user: Terminal) -> None:
    code = user.sealpipe("request", "-a", "Password", "--output", "json").json["short_code"]
    step = job.steps["collect"]
    environ = {**step.environ, "VENDOR_REQUEST": code}
    job.steps["collect"] = Step(step.script, environ, step.secrets)
    assert job.run("collect") == 0, job.log
    job.steps["collect"] = Step(
        step.script, {**environ, "VENDOR_REQUEST": "no-such-code"}, step.secrets
    )
    assert job.run("collect") != 0, "only a missing submission passes"


def test_it_can_be_tried_without_an_account(job: Job, service: RunningService) -> None:
    """As the pages say: `sealpipe rehearse --job --` before each command."""
    before = len(service.seen())
    for part, step in job.steps.items():
        script = re.sub(
            r"\bsealpipe (?=share|unseal|collect)",
            "sealpipe rehearse --job -- sealpipe ",
            step.script,
        )
        assert (script != step.script) is (part != "notify")
        job.steps[part] = Step(script, step.environ, ("SYSTEM_ACCESSTOKEN",), step.kept)
    for part in PARTS:
        assert job.run(part) == 0, job.log
    assert "would store keys of secret/vendor/acme" in job.log
    assert job.told.read_text().startswith("http://127.0.0.1:")
    assert len(service.seen()) == before


@pytest.mark.parametrize("job", ["azure", "jenkins"], indirect=True)
def test_a_link_that_nobody_got_is_expired(job: Job, user: Terminal) -> None:
    """As after a program that fails.

    Where nothing was shared, nothing is expired, and that is no error.
    """

    def list_shares() -> list[str]:
        return [
            each["short_code"]
            for each in user.sealpipe("shares", "list", "--output", "json").json["shares"]
        ]

    assert job.run("expire") == 0, job.log
    assert job.run("share") == 0, job.log
    (code,) = list_shares()
    if "SHORT_CODE" in job.steps["expire"].environ:
        job.steps["expire"] = replace(
            job.steps["expire"], environ={**job.steps["expire"].environ, "SHORT_CODE": code}
        )
    assert job.run("expire") == 0, job.log
    assert f"expired {code}" in job.log
    assert list_shares() == []


def test_a_link_of_another_run_is_refused(job: Job) -> None:
    assert job.run("share") == 0, job.log
    step = job.steps["unseal"]
    script = step.script.replace('--bind "', '--bind "another-')
    job.steps["unseal"] = Step(script, step.environ, step.secrets)
    assert job.run("unseal") != 0, job.log
    assert not job.told.exists() or job.told.read_text() == ""


@pytest.mark.parametrize("name", sorted(SYSTEMS))
def test_a_recipe_has_the_three_parts_and_its_job_is_detected(name: str) -> None:
    assert set(PARTS) <= set(read(name)) <= {*PARTS, "notify", "expire"}
    found = detect_ci_system(SYSTEMS[name].job)
    assert found is not None
    assert found.name == name


@pytest.mark.parametrize("name", sorted(SYSTEMS))
def test_no_secret_is_written_in_a_recipe_or_given_to_a_step_that_does_not_need_it(
    name: str,
) -> None:
    for part, step in read(name).items():
        assert not [each for each in step.environ if re.search("API_KEY|PASSWORD|SECRET_ID", each)]
        assert ("SEALPIPE_API_KEY" in step.secrets) is (part != "notify"), part
        assert "$SEALPIPE_API_KEY" not in step.script
        assert "PASSWORD" not in re.sub("(env:|-u )STAGING_PASSWORD", "", step.script)


FOREIGN = re.compile(r"(?<![\w./-])\./[a-z][\w-]*")
"""A program of the checkout, which is not ours."""
SECRET = re.compile(r"SEALPIPE_API_KEY|STAGING_PASSWORD|VAULT_SECRET_ID|APP_PASSWORD")
WORKFLOWS = sorted((ROOT / "docs/how-to/ci/workflows").glob("*.yml"))


def find_beside_a_key(script: str, secrets: Iterable[str]) -> list[str]:
    """The lines of a step that start a foreign program with a secret of the step in its
    environment.
    """
    lines = [line for line in script.splitlines() if FOREIGN.search(line)]
    return [
        line
        for line in lines
        if any(f"-u {name} " not in line for name in secrets if SECRET.fullmatch(name))
    ]


@pytest.mark.parametrize("name", sorted(SYSTEMS))
def test_no_foreign_program_of_a_recipe_is_beside_the_key(name: str) -> None:
    steps = read(name).values()
    assert sum(len(FOREIGN.findall(step.script)) for step in steps) == 1
    assert [line for step in steps for line in find_beside_a_key(step.script, step.secrets)] == []


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_no_foreign_program_of_a_workflow_is_beside_the_key(file: Path) -> None:
    assert find_in_workflow(yaml.safe_load(file.read_text(encoding="utf-8"))) == []


def find_in_workflow(workflow: dict[str, Any]) -> list[str]:
    found = []
    for job in workflow["jobs"].values():
        common = {**workflow.get("env", {}), **job.get("env", {})}
        for step in job.get("steps", ()):
            found += find_beside_a_key(step.get("run", ""), {**common, **step.get("env", {})})
    return found


def read_blocks(page: str) -> list[Any]:
    """The YAML of a page, also in a list."""
    text = (ROOT / "docs/how-to" / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^( *)```ya?ml\n(.*?)^\1```", text, re.DOTALL | re.MULTILINE)
    return [yaml.safe_load(textwrap.dedent(block)) for _, block in blocks]


@pytest.mark.parametrize("page", ["ci/gitlab.md", "adopt.md"])
def test_no_foreign_program_of_a_gitlab_page_is_beside_the_key(page: str) -> None:
    """The key is a variable of the project: each of its jobs has it."""
    jobs = [job for block in read_blocks(page) if "jobs" not in block for job in block.values()]
    scripts = [
        "\n".join(job["script"]) for job in jobs if isinstance(job, dict) and "script" in job
    ]
    assert [
        line for script in scripts for line in find_beside_a_key(script, ["SEALPIPE_API_KEY"])
    ] == []


def test_no_foreign_program_of_the_github_page_is_beside_the_key() -> None:
    workflows = [
        block
        for block in read_blocks("ci/github.md")
        if isinstance(block, dict) and "jobs" in block
    ]
    assert len(workflows) > 1
    assert [line for workflow in workflows for line in find_in_workflow(workflow)] == []


def test_a_program_beside_the_key_is_found() -> None:
    assert find_beside_a_key("set -e\n./notify < link", ["SEALPIPE_API_KEY"]) == ["./notify < link"]
    assert find_beside_a_key("sealpipe unseal | ./notify", ["SEALPIPE_API_KEY"]) != []
    assert (
        find_beside_a_key(
            "env -u STAGING_PASSWORD ./notify", ["SEALPIPE_API_KEY", "STAGING_PASSWORD"]
        )
        != []
    )
    assert find_beside_a_key("exec env -u SEALPIPE_API_KEY ./notify", ["SEALPIPE_API_KEY"]) == []
    assert find_beside_a_key("./notify", ["ID_TOKEN"]) == []
    assert {file.stem for file in WORKFLOWS if FOREIGN.search(file.read_text())} >= {
        "call-share",
        "sealed-link",
    }


@pytest.mark.parametrize("name", [name for name, system in SYSTEMS.items() if system.schema])
def test_the_schema_of_the_system_finds_nothing(name: str) -> None:
    own = (
        ["--data-transform", "azure-pipelines", "--regex-variant", "nonunicode"]
        if name == "azure"
        else []
    )
    files = [FOLDER / file for file in SYSTEMS[name].files]
    check_schema(f"vendor.{SYSTEMS[name].schema}", *files, options=own)


@pytest.mark.parametrize(("name", "grammar"), [("jenkins", "groovy"), ("teamcity", "kotlin")])
def test_a_file_without_a_schema_is_of_its_language(name: str, grammar: str) -> None:
    """Its syntax alone: what its names mean is known to the server of the system."""
    tree_sitter = library("tree_sitter", "tree-sitter")
    language = tree_sitter.Language(
        library(f"tree_sitter_{grammar}", f"tree-sitter-{grammar}").language()
    )
    parser = tree_sitter.Parser(language)
    for file in SYSTEMS[name].files:
        text = (FOLDER / file).read_bytes()
        assert not parser.parse(text).root_node.has_error
        assert parser.parse(text.rstrip()[:-1]).root_node.has_error, "it finds what it should"


@pytest.mark.parametrize("name", sorted(SYSTEMS))
def test_scripts_are_ones_for_the_shell_that_starts_them(name: str, tmp_path: Path) -> None:
    for part, step in read(name).items():
        file = tmp_path / f"{part}.sh"
        file.write_text(f"#!/usr/bin/env {SYSTEMS[name].shell[0]}\nset -e\n{step.script}")
        done = subprocess.run(
            [program("shellcheck"), "--severity=warning", file],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout


def test_every_system_with_a_plugin_has_a_page_that_shows_its_recipe() -> None:
    pages = load_module("recipe_pages", ROOT / "tests/e2e/workflows/pages.py")
    shown = {name for page in pages.PAGES for name in pages.shown(page.read_text(encoding="utf-8"))}
    assert {f"recipes/{file}" for system in SYSTEMS.values() for file in system.files} <= shown
    assert {file.name for file in FOLDER.iterdir()} == {
        file for system in SYSTEMS.values() for file in system.files
    }
    others = {"github", "gitlab", "plain"}
    assert {row.plugin for row in CI_SYSTEMS} - others == set(SYSTEMS)
    for page in pages.PAGES:
        assert page.read_text(encoding="utf-8") == pages.filled(page.read_text(encoding="utf-8"))


def test_the_fakes_know_the_tokens_that_the_table_names() -> None:
    rows = {row.name: row.job for row in CI_SYSTEMS}
    assert (
        json.dumps(sorted(name for name in SYSTEMS if not rows[name].oidc))
        == '["teamcity", "woodpecker"]'
    )
    given: dict[str, Any] = {name: read(name)["collect"] for name in SYSTEMS}
    for name in ("bitbucket", "jenkins"):
        assert rows[name].oidc in given[name].secrets
    assert rows["azure"].oidc in SYSTEMS["azure"].settings
