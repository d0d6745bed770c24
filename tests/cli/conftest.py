"""The fixtures of these tests."""

from __future__ import annotations

import pytest

from sealpipe_rehearsal.running_service import RunningService
from support.ci_jobs import SHARE
from support.terminal import ABROAD, Terminal, bare, extended, one_service, service, user

__all__ = ["bare", "extended", "one_service", "service", "user"]


@pytest.fixture
def commands(user: Terminal, service: RunningService) -> dict[str, tuple[str, ...]]:
    """A command of each kind that would put a secret on stdout."""
    made = user.sealpipe("request", "-a", "Password", "--output", "json").json
    service.submitter().submit(made["collect_link"], {"Password": "canary-of-the-gate"})
    sealed = user.sealpipe(*SHARE, "--seal-link", **ABROAD).out.strip()
    return {
        "share": SHARE,
        "collect": ("collect", made["short_code"]),
        "unseal": ("unseal", sealed),
    }
