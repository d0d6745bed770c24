"""The templates with `rehearse: "true"`, and the component project that is made from them, in a
shell runner.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.gitlab.gitlab_ci import NAMES, Pipeline, Template, read_dotenv
from sealpipe_rehearsal.commands import ci_job
from support.ci_jobs import batch_file
from support.fake_chat import FakeSlack
from support.parts import ROOT, check_schema

COMPONENT = ROOT / "containers/gitlab/component"
BATCH = batch_file("file:{name}.link")
REHEARSED = {"rehearse": "true", "stage": "before", "rules": [{"when": "on_success"}]}


@pytest.fixture
def without_account(tmp_path: Path) -> Pipeline:
    """A project with no credential and no address."""
    return Pipeline(tmp_path / "gitlab", {})


def test_every_template_runs_without_an_account_and_sends_nothing(
    without_account: Pipeline,
) -> None:
    with FakeSlack() as slack:
        without_account.variables |= {
            "SLACK_WEBHOOK_URL": slack.webhook_url,
            "VAULT_ADDR": "https://vault.example",
        }
        (without_account.place / "vendors.toml").write_text(BATCH)
        ran = without_account.run(
            (
                "share",
                {
                    **REHEARSED,
                    "fields": "Password=env:DB_PASSWORD",
                    "title": "Staging",
                    "send": "slack:",
                },
            ),
            (
                "request",
                {
                    **REHEARSED,
                    "ask": "user=User name:text\nPassword",
                    "send": "slack:",
                    "key": "new",
                },
            ),
            (
                "collect",
                {
                    **REHEARSED,
                    "stage": "after",
                    "requests": "sealpipe-request.json",
                    "to": "vault:secret/acme#user,pw=Password",
                    "after": "expire",
                },
            ),
            (
                "expire",
                {
                    **REHEARSED,
                    "stage": "after",
                    "shares": "$SHARE_SHORT_CODE",
                    "requests": "-any\n#x",
                },
            ),
            ("batch", {**REHEARSED, "file": "vendors.toml", "database": "env:DATABASE_URL"}),
        )
        assert ran.code == 0, ran.log
        assert slack.messages == []
    assert "made-up values for empty variables: DB_PASSWORD" in ran.log
    assert ran.log.count("ignored in a rehearsal, which sends and stores nothing: send") == 2
    assert (
        json.loads(ran.artifact("sealpipe-share", "sealpipe-share.json").read_text())["title"]
        == "Staging"
    )
    assert (
        "would store secret/acme in Vault at vault.example if it does not exist (user, pw)"
        in ran.log
    )
    code = read_dotenv(ran.report("sealpipe-share"))["SHARE_SHORT_CODE"]
    assert [f"expired {each}" in ran.log for each in (code, "-any", "#x")] == [True, True, True]
    assert "1 row: 1 create" in ran.log
    assert not list(without_account.place.rglob("*.link"))


@pytest.mark.parametrize("name", NAMES)
def test_a_template_has_an_input_that_rehearses_it(name: str) -> None:
    template = Template.read(name)
    assert template.inputs["rehearse"]["default"] == "false"
    assert template.job["variables"]["TEMPLATE_REHEARSE"] == "$[[ inputs.rehearse ]]"
    assert name in ci_job.LEFT_OUT


# -- the component project ----------------------------------------------------------------------


def make_project(place: Path) -> Path:
    command = [
        sys.executable,
        str(COMPONENT / "make.py"),
        str(place),
        "--image",
        "registry.example/sealpipe:1.2.3",
    ]
    subprocess.run(command, check=True)
    return place


def test_a_component_is_its_template_with_a_default_image(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    assert sorted(each.parent.name for each in project.glob("templates/*/template.yml")) == sorted(
        NAMES
    )
    for name in NAMES:
        head, document = yaml.safe_load_all(
            (project / f"templates/{name}/template.yml").read_text()
        )
        template = Template.read(name)
        image = head["spec"]["inputs"]["image"]
        assert image.pop("default") == "registry.example/sealpipe:1.2.3"
        assert (head["spec"]["inputs"], document) == (template.inputs, template.document)
    assert {each.name for each in project.iterdir()} == {
        "templates",
        "README.md",
        "LICENSE.md",
        ".gitlab-ci.yml",
    }


def test_its_pipeline_rehearses_every_component_of_the_commit(without_account: Pipeline) -> None:
    shutil.rmtree(without_account.place / "templates")  # those that other tests include
    make_project(without_account.place)
    (without_account.place / "vendors.toml").write_text(BATCH)
    ran = without_account.run_own_file()
    assert ran.code == 0, ran.log
    passed = set(re.findall(r" PASS  (\S+)", ran.log))
    assert passed == {f"sealpipe-{name}" for name in NAMES}, "and no release without a tag"


def test_the_schema_of_gitlab_finds_nothing_in_its_pipeline() -> None:
    check_schema("vendor.gitlab-ci", COMPONENT / "pipeline.yml")


def test_its_readme_shows_each_component_with_inputs_that_there_are() -> None:
    text = (COMPONENT / "README.md").read_text(encoding="utf-8")
    blocks = [
        yaml.safe_load(block)
        for block in re.findall(r"^```yaml\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    ]
    shown: dict[str, dict[str, Any]] = {}
    for block in blocks:
        (include,) = block["include"]
        component = re.fullmatch(
            r"\$CI_SERVER_FQDN/GROUP/PROJECT/(\w+)@VERSION", include["component"]
        )
        assert component is not None
        shown[component[1]] = include["inputs"]
    assert sorted(shown) == sorted(NAMES)
    for name, inputs in shown.items():
        assert set(inputs) <= set(Template.read(name).inputs)
