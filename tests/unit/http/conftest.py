"""A machine on which nothing of anybody's is set."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.terminal import bare, one_service, service, user

__all__ = ["bare", "one_service", "service", "user"]

_OTHERS = (
    "AWS_",
    "VAULT_",
    "BAO_",
    "OP_",
    "GITHUB_",
    "GITLAB_",
    "CI_",
    "ACTIONS_",
    "SLACK_",
    "TEAMS_",
    "SEALPIPE_P",
)


def forget_everybody(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    """Nobody's variables, and nobody's files."""
    for name in [
        name for name in os.environ if name.startswith(_OTHERS) or name.lower().endswith("_proxy")
    ]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without anybody's variables or files."""
    forget_everybody(monkeypatch, tmp_path)
