"""Where state lives, and which CI run it belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sealpipe.errors import StateError

_RUNS = (
    ("GITHUB_RUN_ID", ("GITHUB_REPOSITORY", "GITHUB_RUN_ID", "GITHUB_RUN_ATTEMPT", "GITHUB_JOB")),
    ("CI_JOB_ID", ("CI_PROJECT_PATH", "CI_JOB_ID")),
)
"""What tells one CI run from another: the variable that must be there, and those that make the name."""


def state_folder(environ: Mapping[str, str], named: str | None) -> Path:
    """The state folder: the setting, else $XDG_STATE_HOME, else the CI's temporary folder, else the home's."""
    if named:
        return Path(named).absolute()
    if environ.get("XDG_STATE_HOME", "").startswith("/"):
        return Path(environ["XDG_STATE_HOME"]) / "sealpipe"
    if environ.get("GITHUB_ACTIONS") and environ.get("RUNNER_TEMP"):
        return Path(environ["RUNNER_TEMP"]) / "sealpipe"
    if environ.get("GITLAB_CI") and environ.get("CI_PROJECT_DIR"):
        # The runner's own folder for what must not lie in the checkout: it names files there itself.
        return Path(environ["CI_PROJECT_DIR"] + ".tmp") / "sealpipe"
    if environ.get("HOME", "").startswith("/"):
        return Path(environ["HOME"]) / ".local" / "state" / "sealpipe"
    raise StateError("there is no place for the state folder: HOME is not set")


def current_run(environ: Mapping[str, str]) -> str:
    """The CI run that this process is part of, as one line; empty outside CI."""
    for sign, names in _RUNS:
        if environ.get(sign):
            return "/".join(environ.get(name, "") for name in names)
    return ""
