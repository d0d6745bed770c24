"""Which tests a bare `pytest` leaves out, and why: `pytest --all` runs them too, `pytest --rest` only them.

A bare run is for a contributor between two thoughts: five minutes on two cores. Whoever names a file, a folder or a
test on the command line gets all of it, whatever stands here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

REST: Final[Mapping[str, str]] = {
    "tests/browser/": "Chromium",
    "tests/benchmarks/": "measures for minutes",
    "tests/actions/": "installs, and runs the actions",
    "tests/gitlab/": "gitlab-ci-local, and a container engine",
    "tests/workflows/": "runs whole workflows",
}
"""Folders, files and tests by how their id begins."""


def is_in_rest(test: str) -> bool:
    """Whether a bare `pytest` leaves this test (its id) out."""
    return any(test.startswith(begin) for begin in REST)
