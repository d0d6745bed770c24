"""For all tests: what they measured stands at the end of the run, and hypothesis draws the same cases every time.

A figure is told by `record_property("figure", text)`. New cases are looked for by campaigns, whose seeds differ: a
run of the suite that fails has found what changed, not what chance drew.
"""

from __future__ import annotations

import pytest
from hypothesis import settings

settings.load_profile("ci")  # the same cases, without a deadline that a busy machine would miss


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
