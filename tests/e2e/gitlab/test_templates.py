"""What the templates are, read as GitLab reads them: what an input may touch, and what a job hands
on.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from e2e.gitlab.gitlab_ci import INPUT, NAMES, Template, texts
from sealpipe.command_settings import COMMANDS
from sealpipe.settings import Setting
from support.parts import ROOT, check_schema, program

IMAGE = {"image": "registry.example/sealpipe:1"}
NEEDED = {"collect": {"requests": "code"}, "batch": {"file": "vendors.toml"}}
FIXED = {
    "share": {
        "link_file": "a later job has it sealed",
        "receipt": "has another default",
        "bind": "has another default: the pipeline",
        "print": "nothing captures stdout",
    },
    "request": {"receipt": "has another default"},
    "collect": {
        "dir": "what was typed is no artifact, and in no later job",
        "print": "nothing captures stdout",
    },
    "batch": {
        "out": "has another default",
        **dict.fromkeys(("html", "csv", "json"), "of `batch report`"),
        "metrics": "of `batch worker`",
        "watch": "for people",
        "older_than": "of `batch purge`",
    },
}
OTHER_DEFAULTS = ("receipt", "bind", "out")
"""Options that have no input of their name, or not their default, and why."""

NAMED = {("share", "field"): "fields"}
KEYWORDS = {
    *("stage", "image", "rules", "inherit", "id_tokens", "variables", "script"),
    *("artifacts", "allow_failure", "cache", "resource_group"),
}
SECRETS = re.compile("key|token|secret|password|credential", re.IGNORECASE)


@pytest.fixture(params=NAMES)
def template(request: pytest.FixtureRequest) -> Template:
    return Template.read(request.param)


def filled(template: Template, **given: Any) -> dict[str, Any]:
    (job,) = template.filled(**{**IMAGE, **NEEDED.get(template.name, {}), **given}).values()
    return dict(job)


def test_there_is_one_job_and_no_keyword_of_the_whole_pipeline(template: Template) -> None:
    assert list(template.document) == ["$[[ inputs.job-name ]]"]
    assert set(template.job) <= KEYWORDS
    # The runner is the project's choice; its before_script would run in our image.
    assert template.job["inherit"] == {"default": ["tags"]}


def test_every_input_has_a_description_and_is_used_and_nothing_else_is(template: Template) -> None:
    used = {name for _, text in texts(template.document) for name in INPUT.findall(text)}
    assert used == set(template.inputs)
    for name, about in template.inputs.items():
        assert about["description"].endswith("."), name
        assert set(about) <= {"description", "default", "type", "options"}, name
        assert "options" not in about or about["default"] in about["options"], name
        kind = {"array": list}.get(about.get("type", "string"), str)
        assert isinstance(about.get("default", kind()), kind), name
    assert [name for name, about in template.inputs.items() if "default" not in about] == [
        "image",
        *NEEDED.get(template.name, ()),
    ]
    assert not [line for _, line in texts(template.document) if "$[[" in INPUT.sub("", line)]


def test_no_input_is_pasted_into_a_script(template: Template) -> None:
    (script,) = template.job["script"]
    assert "$[[" not in script
    assert script.startswith("set -eu\n")
    # A value gets there by a variable alone, which the shell reads and never runs; shellcheck sees
    # to the quotes.
    assert not re.search(r"\beval\b|`|\bsh -c\b|\bsource\b", script)


def test_no_input_takes_a_secret_and_no_variable_has_one(template: Template) -> None:
    values = {
        name: text
        for path, text in texts(template.job)
        if path[:1] == ("variables",)
        for name in path[1:]
    }
    assert not {name for name in values if name.startswith(("SEALPIPE_API", "VAULT_TOKEN", "AWS_"))}
    kept = {"key", "id-token-aud"}  # a reference, and no token
    assert {name for name in template.inputs if SECRETS.search(name)} <= kept


@pytest.mark.parametrize("name", ["share", "request", "collect", "batch"])
def test_every_option_of_the_command_has_an_input_that_reaches_it_by_its_variable(
    name: str,
) -> None:
    template = Template.read(name)
    variables = filled(template)["variables"]
    for setting in COMMANDS[name]:
        if setting.name in FIXED[name] and setting.name not in OTHER_DEFAULTS:
            assert setting.get_variable(name) not in variables
            continue
        wanted = NAMED.get((name, setting.name), setting.name.replace("_", "-"))
        variable, file = setting.get_variable(name), f"containers/gitlab/{name}.yml"
        assert wanted in template.inputs, f"add the input {wanted} under `spec` in {file}"
        found = template.job["variables"].get(variable)
        assert found == f"$[[ inputs.{wanted} ]]", (
            f"set {variable} from inputs.{wanted} in the job's variables in {file}"
        )
        assert means_the_default(setting, template.inputs[wanted]), wanted


def means_the_default(setting: Setting, about: dict[str, Any]) -> bool:
    """An empty variable counts as unset."""
    if setting.name in OTHER_DEFAULTS:
        return bool(about["default"])
    if setting.flag:
        return about["default"] == "false" and set(about["options"]) == {"true", "false"}
    if setting.choices:
        return (about["default"], about["options"]) == (setting.default, list(setting.choices))
    return about["default"] == ""


def test_what_a_job_leaves_is_for_developers_and_its_report_is_the_one_that_sealpipe_writes(
    template: Template,
) -> None:
    job = filled(template)
    artifacts = job.get("artifacts")
    if template.name == "collect":
        assert artifacts is None
        return
    assert artifacts["access"] == "developer"
    assert artifacts["when"] == "always"
    assert artifacts["expire_in"] == "7 days"
    reports = {"share": {"dotenv": "sealpipe.env"}, "request": {"dotenv": "sealpipe.env"}}
    assert artifacts.get("reports") == reports.get(template.name)
    if "reports" in artifacts:
        assert job["variables"]["SEALPIPE_PLUGIN_GITLAB__DOTENV"] == "sealpipe.env"
        # Nothing of ours writes there: the command does, the short code and the expiry.
        assert "sealpipe.env" not in job["script"][0]


def test_rules_stage_name_token_and_pending_are_inputs() -> None:
    rules = [{"if": '$CI_PIPELINE_SOURCE == "schedule"', "when": "always"}]
    job = filled(
        Template.read("collect"),
        job_name="nightly",
        stage="night",
        rules=rules,
        id_token_aud="https://vault.example",
    )
    assert (job["stage"], job["rules"]) == ("night", rules)
    assert job["id_tokens"] == {"VAULT_ID_TOKEN": {"aud": "https://vault.example"}}
    assert job["allow_failure"] == {"exit_codes": [15]}
    assert filled(Template.read("expire"))["rules"] == [{"when": "on_failure"}]
    for name in ("share", "request", "collect", "batch"):
        never, else_ = filled(Template.read(name))["rules"]
        assert never == {"if": '$CI_PIPELINE_SOURCE == "merge_request_event"', "when": "never"}
        assert else_ == {"when": "on_success"}


def test_the_schema_of_gitlab_finds_nothing(template: Template, tmp_path: Path) -> None:
    document = template.filled(**IMAGE, **NEEDED.get(template.name, {}))
    whole = tmp_path / ".gitlab-ci.json"
    whole.write_text(json.dumps(document))
    source = ROOT / f"containers/gitlab/{template.name}.yml"
    include = {
        "include": [{"project": "a/b", "ref": "1", "file": source.name, "inputs": {"image": "x"}}]
    }
    including = tmp_path / "including.json"
    including.write_text(json.dumps(include))
    check_schema("vendor.gitlab-ci", whole, including)


def test_the_scripts_run_in_any_shell(template: Template, tmp_path: Path) -> None:
    file = tmp_path / "script.sh"
    file.write_text("#!/bin/sh\n" + template.job["script"][0])
    command = [
        program("shellcheck"),
        "--severity=style",
        "--exclude=SC2154,SC2329",
        str(file),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
