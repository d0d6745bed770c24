"""A share in a job of each CI system: its mask or refusal, its outputs, and what the audit log
knows of the run.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from plugins.ci.fakes import FakePrograms, read_azure_commands, read_env_file
from sealpipe_rehearsal.running_service import RunningService
from support.ci_jobs import BUILDKITE, JOBS, ROWS
from support.github_log import pairs, read_azure, read_github
from support.terminal import ABROAD, Done, Terminal, opened

CANARY = "canary-of-the-job"
RUNS = {
    "gitlab": ("acme/app/99", "https://gitlab.example/acme/app/-/jobs/99", "eve"),
    "buildkite": (
        "4735ba57-80d0-46e2-8fa0-b28223a86586/e44f9784-e20e-4b93-a21d-f41fd5869db9",
        "https://buildkite.com/acme/app/builds/1514#e44f9784-e20e-4b93-a21d-f41fd5869db9",
        "Carol Danvers",
    ),
    "bitbucket": (
        "acme/app/31/{b7b7e8a4-9a9b-4d51-a3ec-6a4bd5b5d4a5}",
        "https://bitbucket.org/acme/app/pipelines/results/31",
        "{0e8f4a1d-54f2-4a8e-8f0e-1d2c3b4a5f60}",
    ),
    "circleci": (
        "0f2f0b2c-7a9a-4b6a-9d8e-5c1b7a3d2e4f/812",
        "https://circleci.com/gh/acme/app/812",
        "grace",
    ),
    "teamcity": ("App/Deploy/66", "https://teamcity.example/build/901", ""),
    "woodpecker": ("acme/app/8/1", "https://ci.example/repos/7/pipeline/8", "octocat"),
    "azure": (
        "https://dev.azure.com/acme//hand over/17/12f1170f-54f2-53f3-20dd-22fc7dff55f9",
        "https://dev.azure.com/acme/hand%20over/_build/results?buildId=17",
        "Ada",
    ),
    "jenkins": (
        "https://jenkins.example//app/main/153",
        "https://jenkins.example/job/app/job/main/153/",
        "linus",
    ),
}
GITHUB_RUN = ("acme/app/77/2/deploy", "https://github.example/acme/app/actions/runs/77", "mallory")


@pytest.mark.parametrize("name", JOBS)
def test_a_share_in_a_job_keeps_what_the_table_says(
    name: str, user: Terminal, service: RunningService, programs: FakePrograms
) -> None:
    row = ROWS[name]
    audit = user.here / "audit.jsonl"
    config = user.file("config.toml", f'[audit]\nfile = "{audit}"\n')
    output = user.here / "output"
    environ = JOBS[name] | programs.path | ABROAD
    environ |= {
        "SEALPIPE_CONFIG": str(config),
        "DB": CANARY,
        "SEALPIPE_PLUGIN_GITLAB__DOTENV": str(output),
    }
    environ |= {row.job.output: str(output)} if row.job.output.isupper() else {}
    words = ("share", "-f", "env:DB")

    refused = user.sealpipe(*words, **environ)
    assert (refused.code, refused.out, row.title in refused.err) == (2, "", True), refused
    assert (service.seen(), programs.meta_data, output.exists()) == ([], {}, False)

    done = user.sealpipe(*words, "--print", **environ)
    assert done.code == 0, done
    link = done.out.removesuffix("\n")
    assert opened(service, link) == {"DB": CANARY}
    fragment = link.partition("#")[2]
    masked = find_masked(name, done, programs)
    assert masked == ({link, fragment, fragment[1:]} if row.mask or row.job.mask_program else set())
    if not row.mask:
        assert fragment[1:] not in done.err

    created = json.loads(audit.read_text().splitlines()[-1])
    outputs = find_outputs(done, programs)
    expected = {"short-code": created["short_code"], "expires-at": created["expires_at"]}
    if not row.job.output:
        expected = {}
    assert outputs == expected
    run = RUNS.get(name, GITHUB_RUN)
    assert (created["ci"], created["run"], created["run_url"], created["actor"]) == (
        row.plugin,
        *run,
    )


def find_masked(name: str, done: Done, programs: FakePrograms) -> set[str]:
    read = read_azure if name == "azure" else read_github
    in_log = {value for value in map(read, done.err.splitlines()) if value}
    assert not programs.redacted or not in_log
    return programs.redacted or in_log


def find_outputs(done: Done, programs: FakePrograms) -> dict[str, Any]:
    file = programs.folder.parent / "work" / "output"
    found: dict[str, Any] = {
        key.removeprefix("sealpipe:"): value for key, value in programs.meta_data.items()
    }
    for command in read_azure_commands(done.err):
        if command.name == "task.setvariable":
            assert command.properties.keys() == {"variable", "isOutput"}
            found[command.properties["variable"]] = command.data
    if file.exists():
        text = file.read_text()
        found |= dict(pairs(text)) if "<<" in text else read_env_file(file)
    return {key.lower().replace("_", "-"): value for key, value in found.items()}


def test_a_run_without_its_variables_has_no_link_and_no_user(user: Terminal) -> None:
    audit = user.here / "audit.jsonl"
    config = user.file("config.toml", f'[audit]\nfile = "{audit}"\n')
    environ = {
        "CIRCLECI": "true",
        "CIRCLE_BUILD_URL": "javascript:alert(1)",
        "SEALPIPE_CONFIG": str(config),
    }
    assert user.sealpipe("share", "-f", "text:x", "--link-file", "link", **environ).code == 0
    created = json.loads(audit.read_text().splitlines()[-1])
    assert (created["ci"], created["run_url"], created["actor"]) == ("circleci", "", "")


def test_outside_a_job_the_audit_has_no_run(user: Terminal) -> None:
    audit = user.here / "audit.jsonl"
    config = user.file("config.toml", f'[audit]\nfile = "{audit}"\n')
    assert user.sealpipe("share", "-f", "text:x", SEALPIPE_CONFIG=str(config)).code == 0
    created = json.loads(audit.read_text().splitlines()[-1])
    assert {created[name] for name in ("ci", "run", "run_url", "actor")} == {None}


def test_buildkite_masks_what_other_commands_print(
    user: Terminal, service: RunningService, programs: FakePrograms
) -> None:
    environ = BUILDKITE | programs.path | ABROAD | {"DB": "one line\nof two"}
    done = user.sealpipe("read", "env:DB", "--print", **environ)
    assert (done.code, done.out, "one line" in done.err) == (0, "one line\nof two", False), done
    assert {"one line\nof two", "one line", "of two"} <= programs.redacted

    made = user.sealpipe(
        "request", "-a", "Password", "--receipt", "r.json", "--output", "json", **environ
    ).json
    service.submitter().submit(made["collect_link"], {"Password": "canary-of-the-submitter"})
    done = user.sealpipe("collect", "./r.json", "--print", **environ)
    assert (done.code, "canary-of-the-submitter" in done.out) == (0, True), done
    assert "canary-of-the-submitter" in programs.redacted

    sealed = user.sealpipe("share", "-f", "env:DB", "--seal-link", **environ).out.strip()
    link = user.sealpipe("unseal", sealed, "--print", **environ).out.strip()
    assert {link, link.partition("#")[2]} <= programs.redacted
    done = user.sealpipe("run", "-e", "SECRET=env:DB", "--", "sh", "-c", "echo $SECRET", **environ)
    assert (done.code, "one line" in done.out) == (0, False), done
