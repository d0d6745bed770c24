"""action.yml from the runner's table, and each README's tables from action.yml.

Run it as a script to write them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import yaml

ACTIONS = Path(__file__).resolve().parents[3] / "actions"
sys.path.insert(0, str(ACTIONS / "_run"))

# Found by the line above.
from sealpipe_action.manifest import INPUTS, OUTPUTS, PREFIX, Input, inputs  # noqa: E402

SHOWN = {
    "share": ("Share secrets by a link", "Encrypt secrets and create a share link.", "send"),
    "request": ("Request secrets", "Create a collect link to ask someone for secrets.", "inbox"),
    "collect": ("Collect secrets", "Decrypt submissions and store them.", "download"),
    "expire": (
        "Expire shares and requests",
        "Expire shares and requests that are no longer needed.",
        "x-circle",
    ),
    "unseal": (
        "Unseal a link",
        "Open a link that another job sealed, mask it, and set it as an output.",
        "unlock",
    ),
    "batch": ("Run a batch", "Request or share secrets for each row of a file.", "users"),
}
"""Title, what it does, and its icon."""

REFERENCES = {
    "share": ("fields", "also-to", "send", "passcode-from", "passcode-to", "param"),
    "request": ("send", "passcode-from", "param", "seed-to"),
    "collect": ("to", "key"),
    "expire": (),
    "unseal": (),
    "batch": ("database",),
}
"""Inputs that may name a plugin whose packages have to be installed."""

OTHERWISE = {
    "outcome": " || steps.check.outputs.outcome || 'failed'",
    "error-code": " || steps.setup.outputs.error-code || steps.check.outputs.error-code",
    "executable": " || steps.setup.outputs.executable",
}
"""What an output is where a step before the last one was the last to run."""

MARK = "<!-- made from action.yml by `python tests/e2e/actions/pages.py` -->"


def manifest(action: str) -> str:
    """actions/ACTION/action.yml."""
    title, about, icon = SHOWN[action]
    rows = inputs(action)
    env = "".join(
        f"        {each.variable}: ${{{{ inputs.{each.name} }}}}\n" for each in _of_the_step(action)
    )
    needed = "\n".join(f"          ${{{{ inputs.{name} }}}}" for name in REFERENCES[action])
    references = f"        {PREFIX}REFERENCES: |\n{needed}\n" if needed else ""
    own = {each.name for each in rows}
    more = "".join(
        f"        {PREFIX}{name.replace('-', '_').upper()}: ${{{{ inputs.{name} }}}}\n"
        for name in ("fields-from", "file", "database", "rehearse")
        if name in own
    )
    return f"""\
# Made by `python tests/e2e/actions/pages.py` from actions/_run/sealpipe_action/manifest.py.
name: {json.dumps(f"sealpipe: {title}")}
description: {json.dumps(about)}
author: sealpipe
branding:
  icon: {icon}
  color: purple
inputs:
{"".join(_input(each) for each in rows)}outputs:
{"".join(_output(each.name, each.help) for each in OUTPUTS[action])}runs:
  using: composite
  steps:
    - name: Check the credential
      id: check
      shell: bash
      env:
        {PREFIX}API_KEY_FILE: ${{{{ inputs.api-key-file }}}}
        {PREFIX}REHEARSE: ${{{{ inputs.rehearse }}}}
        {PREFIX}ON_MISSING_KEY: ${{{{ inputs.on-missing-key }}}}
      run: |
        set -euo pipefail
        # A workflow may have a link to this file. The program that follows it gets no variable of
        # the step.
        here=$(exec -c readlink -f "$GITHUB_ACTION_PATH/action.yml")
        here=${{here%/*/action.yml}}
        printf 'folder=%s\\n' "$here" >> "$GITHUB_OUTPUT"
        . "$here/_run/credential.sh"
    - name: Set up sealpipe
      id: setup
      if: steps.check.outputs.outcome == ''
      shell: bash
      env:
        {PREFIX}FOLDER: ${{{{ steps.check.outputs.folder }}}}
        # What is installed gets no credential.
        SEALPIPE_API_KEY: ""
        SEALPIPE_API_KEY_PREVIOUS: ""
        SEALPIPE_SETUP_INSTALLER: ${{{{ inputs.installer }}}}
        SEALPIPE_SETUP_EXECUTABLE: ${{{{ inputs.executable }}}}
        {PREFIX}EXTRAS: ${{{{ inputs.extras }}}}
{references}{more}      run: |
        set -euo pipefail
        SEALPIPE_SETUP_EXTRAS=$(bash "${PREFIX}FOLDER/_run/extras.sh")
        export SEALPIPE_SETUP_EXTRAS
        exec bash "${PREFIX}FOLDER/_setup/setup.sh"
    - name: {title}
      id: run
      if: steps.check.outputs.outcome == ''
      shell: bash
      env:
        {PREFIX}FOLDER: ${{{{ steps.check.outputs.folder }}}}
        {PREFIX}SEALPIPE: ${{{{ steps.setup.outputs.executable }}}}
{env}      run: |
        set -euo pipefail
        python=${{{PREFIX}SEALPIPE%/*}}/python
        if [ ! -x "$python" ]; then python=python3; fi
        # In bash's place: a job that is cancelled interrupts this process alone.
        exec "$python" -I "${PREFIX}FOLDER/_run" {action}
"""


def _of_the_step(action: str) -> list[Input]:
    return [
        each
        for each in inputs(action)
        if each.name not in ("extras", "installer", "executable", "on-missing-key")
    ]


def _input(each: Input) -> str:
    return (
        f"  {each.name}:\n    description: {json.dumps(each.help)}\n"
        f"    required: false\n    default: {json.dumps(each.default)}\n"
    )


def _output(name: str, about: str) -> str:
    value = f"steps.run.outputs.{name}{OTHERWISE.get(name, '')}"
    return f"  {name}:\n    description: {json.dumps(about)}\n    value: ${{{{ {value} }}}}\n"


def tables(action: dict[str, Any]) -> str:
    """The tables of a README, from what action.yml says."""
    rows = [(name, each["default"], each["description"]) for name, each in action["inputs"].items()]
    lines = ["### Inputs", "", "| input | what | default |", "| --- | --- | --- |"]
    lines += [
        f"| `{name}` | {_cell(about)} | {f'`{default}`' if default else ''} |"
        for name, default, about in rows
    ]
    lines += ["", "### Outputs", "", "| output | what |", "| --- | --- |"]
    lines += [
        f"| `{name}` | {_cell(each['description'])} |" for name, each in action["outputs"].items()
    ]
    return "\n".join(lines) + "\n"


def readme(action: str) -> str:
    """actions/ACTION/README.md: what a person wrote above the mark, the tables below it."""
    own = (ACTIONS / action / "README.md").read_text(encoding="utf-8").split(MARK)[0]
    return f"{own}{MARK}\n\n{tables(loaded(action))}"


def loaded(action: str) -> dict[str, Any]:
    """action.yml as it stands on disk."""
    found = yaml.safe_load((ACTIONS / action / "action.yml").read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    for each in INPUTS:
        (ACTIONS / each / "action.yml").write_text(manifest(each), encoding="utf-8")
        (ACTIONS / each / "README.md").write_text(readme(each), encoding="utf-8")
