"""action.yml, its README, the runner's table and the command line's own table say the same."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sealpipe.command_settings import COMMANDS
from sealpipe.registry import Registry
from sealpipe.settings import GLOBAL
from support.parts import ROOT, load_module

PAGES = load_module("action_pages", Path(__file__).with_name("pages.py"))
ACTIONS = sorted(PAGES.INPUTS)
OURS = {"output", "print", "debug"}
"""Options that the action itself sets (it captures the result, and reads it), and what its `env:`
turns on.
"""
KEYS = {"api_key", "api_key_previous"}
"""They come by `env:` and have no option."""
OFFLINE = {"unseal": {"base_url", "link_base_url", "state_dir", "deadline"}}
"""What a command that makes no connection has no option for."""
OTHERS = {"batch": {"html", "csv", "json", "metrics", "older_than", "watch"}}
"""Options of commands that the action does not run, such as `batch report`, or that are for
people.
"""


@pytest.mark.parametrize("action", ACTIONS)
def test_the_manifest_and_the_readme_are_made_from_the_table(action: str) -> None:
    folder = ROOT / "actions" / action
    assert (folder / "action.yml").read_text() == PAGES.manifest(action), (
        "run python tests/e2e/actions/pages.py"
    )
    assert (folder / "README.md").read_text() == PAGES.readme(action), (
        "run python tests/e2e/actions/pages.py"
    )


@pytest.mark.parametrize("action", ACTIONS)
def test_a_readme_denies_no_input_that_there_is(action: str) -> None:
    text = (ROOT / "actions" / action / "README.md").read_text()
    denied = set(re.findall(r"[Nn]o input `([a-z-]+)`", text))
    assert denied.isdisjoint(each.name for each in PAGES.inputs(action))


@pytest.mark.parametrize("action", ACTIONS)
def test_every_option_of_the_command_has_an_input_and_the_reverse(action: str) -> None:
    common = {
        row.option for row in GLOBAL if row.name not in OURS | KEYS | OFFLINE.get(action, set())
    }
    rows = COMMANDS.get(action, ()) if action != "expire" else ()
    own = {row.option for row in rows if row.name not in OURS | OTHERS.get(action, set())}
    inputs, here = (
        {each.flag for each in PAGES.inputs(action) if each.flag},
        "actions/_run/sealpipe_action/manifest.py",
    )
    assert sorted((common | own) - inputs) == [], (
        f"options without an input: add a row for `{action}` in {here}"
    )
    assert sorted(inputs - common - own) == [], (
        f"inputs without an option: remove the row of `{action}` in {here}"
    )


@pytest.mark.parametrize("action", ACTIONS)
def test_an_input_is_of_the_kind_that_its_option_is(action: str) -> None:
    rows = {row.option: row for row in (*GLOBAL, *COMMANDS.get(action, ()))}
    for each in PAGES.inputs(action):
        if each.kind != "own":
            row = rows[each.flag]
            assert each.kind == ("flag" if row.flag else "lines" if row.multiple else "text"), (
                each.name
            )


@pytest.mark.parametrize("action", ACTIONS)
def test_expressions_stand_in_env_and_outputs_only(action: str) -> None:
    manifest = PAGES.loaded(action)
    assert manifest["runs"]["using"] == "composite"
    assert set(manifest["branding"]) == {"icon", "color"}
    for step in manifest["runs"]["steps"]:
        assert set(step) - {"if"} == {"name", "id", "shell", "env", "run"}
        assert step["shell"] == "bash"
        assert "${{" not in step["run"]
        assert step["run"].startswith("set -euo pipefail\n")
        assert "-x" not in re.findall(r"set (\S+)", step["run"])
    assert all(
        re.fullmatch(r"[a-z]+(-[a-z]+)*", name)
        for name in (*manifest["inputs"], *manifest["outputs"])
    )


@pytest.mark.parametrize("action", ACTIONS)
def test_every_input_reaches_a_step_and_no_input_takes_a_secret(action: str) -> None:
    manifest: dict[str, Any] = PAGES.loaded(action)
    told = " ".join(
        str(value) for step in manifest["runs"]["steps"] for value in step["env"].values()
    )
    for name in manifest["inputs"]:
        assert f"inputs.{name} " in told, name
        assert not re.search(r"(^|-)(key|token|secret|password|passcode)$", name) or (
            action,
            name,
        ) in {
            ("request", "key"),  # which key: a word
            ("collect", "key"),  # a reference
            (action, "on-missing-key"),
        }


def test_the_set_up_step_gets_no_credential() -> None:
    for action in ACTIONS:
        (env,) = [
            step["env"] for step in PAGES.loaded(action)["runs"]["steps"] if step["id"] == "setup"
        ]
        assert {env[row.get_variable()] for row in GLOBAL if row.secret} == {""}


def test_the_extras_are_those_of_the_plugins_descriptors() -> None:
    script = (ROOT / "actions" / "_run" / "extras.sh").read_text()
    found = re.search(r"^table='(.*)'$", script, re.MULTILINE)
    assert found is not None
    table = dict(row.split("=") for row in found[1].split())
    listed = Registry(environ={}).catalog.list_plugins()
    built_in = {
        each.info.name: each.info.extra for each in listed if not each.origin and each.info.extra
    }
    assert table == built_in


@pytest.mark.parametrize(
    ("environ", "extras"),
    [
        ({}, ""),
        ({"SEALPIPE_ACTION_REFERENCES": "Password=vault:secret/app#password\n"}, "vault"),
        ({"SEALPIPE_ACTION_REFERENCES": "A=env:VAULT\nmy-vault:x"}, ""),
        ({"SEALPIPE_ACTION_REFERENCES": '"a=b"=aws-ssm:/x\nB=op://v/i/f'}, "aws,op"),
        (
            {
                "SEALPIPE_ACTION_REFERENCES": "A=file:x?format=yaml#a",
                "SEALPIPE_ACTION_EXTRAS": " aws, yaml",
            },
            "aws,yaml",
        ),
        ({"SEALPIPE_ACTION_REHEARSE": "true"}, "rehearsal"),
        (
            {
                "SEALPIPE_STORE__PROD__PLUGIN": "vault",
                "SEALPIPE_ACTION_REFERENCES": "prod:secret/x#y",
            },
            "vault",
        ),
        ({"SEALPIPE_ACTION_FIELDS_FROM": "no-such-file"}, ""),
        (
            {
                "SEALPIPE_ACTION_FILE": "no-such-file.yaml",
                "SEALPIPE_ACTION_DATABASE": "env:DATABASE_URL",
            },
            "yaml,batch",
        ),
        ({"SEALPIPE_BATCH_DATABASE": "env:DATABASE_URL"}, "batch"),
    ],
)
def test_the_references_say_which_extras_are_needed(environ: dict[str, str], extras: str) -> None:
    script = ROOT / "actions" / "_run" / "extras.sh"
    done = subprocess.run(
        ["bash", script],
        env={"PATH": "/usr/bin:/bin", **environ},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"{extras}\n"
