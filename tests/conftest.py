"""For all tests: print the measured figures at the end of the run, and make hypothesis draw the same cases every time.

A test reports a figure with `record_property("figure", text)`. Only endurance runs and `--hypothesis-seed` draw new
cases, so a failing run of the suite has found a change, not a new random case.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

from sealpipe import ci_systems

# The suite itself may run in a CI system. What it starts does not, but where a test says so.
for name in ci_systems.variables():
    os.environ.pop(name, None)


def pytest_configure(config: pytest.Config) -> None:
    """Without a deadline for a case, too: a busy machine would miss it. Who names a seed wants other cases."""
    if config.getoption("--hypothesis-seed", None) is None:
        settings.load_profile("ci")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Half as many again as there are cores: most tests wait, for a process, a browser or an engine."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores + cores // 2


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the figures. A worker's own output is seen by nobody."""
    figures = [
        str(value)
        for report in terminalreporter.getreports("passed")
        for name, value in report.user_properties
        if name == "figure"
    ]
    if figures:
        terminalreporter.section("figures")
    for figure in figures:
        terminalreporter.line(figure)
