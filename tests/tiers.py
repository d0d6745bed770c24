"""Which tests a bare `pytest` leaves out, and why: `pytest --all` runs them too, `pytest --rest` runs only them.

A bare run is for a contributor between two thoughts. A file, a folder or a test that the command line names is run
whole, whatever stands here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_STRACE = "whole commands under strace"
_KILLS = "a sweep of kills"

REST: Final[Mapping[str, str]] = {
    "tests/actions/": "sets up and runs the actions",
    "tests/asking/test_kills.py": _KILLS,
    "tests/benchmarks/": "the short form of the benchmarks",
    "tests/browser/": "Chromium",
    "tests/collecting/test_hostile_submissions.py": "hundreds of commands",
    "tests/collecting/test_killed.py": _KILLS,
    "tests/collecting/test_model.py": "a model's random walks",
    "tests/collecting/test_second_machine.py": "hundreds of commands",
    "tests/delivery/test_foreign_channels.py": "installs third-party plugins",
    "tests/delivery/test_kills.py": _KILLS,
    "tests/faults/test_kills.py": _KILLS,
    "tests/gitlab/": "gitlab-ci-local and a container engine",
    "tests/hooks/test_in_git.py": "pre-commit, with environments of its own",
    "tests/leaks/test_a_share_leaks_nothing.py": _STRACE,
    "tests/leaks/test_asking_leaks_nothing.py": _STRACE,
    "tests/leaks/test_collecting_leaks_nothing.py": _STRACE,
    "tests/leaks/test_other_commands_leak_nothing.py": _STRACE,
    "tests/leaks/test_sending_leaks_nothing.py": _STRACE,
    "tests/leaks/test_storing_leaks_nothing.py": _STRACE,
    "tests/leaks/test_typing_leaks_nothing.py": _STRACE,
    "tests/plugins/local/test_kills.py": _KILLS,
    "tests/plugins/test_example_plugin.py": "installs the example plugin",
    "tests/plugins/test_pluggy_versions.py": "installs other versions of pluggy",
    "tests/rehearsal/test_mutants.py": "broken copies of the service",
    "tests/rehearsal/test_schemathesis.py": "500 cases drawn from the service's own document",
    "tests/storing/test_kills.py": _KILLS,
    "tests/workflows/": "runs whole workflows",
}
"""Folders and files, with the reason."""


def is_in_rest(test: str) -> bool:
    """Whether a bare `pytest` leaves this test (its id) out."""
    return any(test.startswith(begin) for begin in REST)
