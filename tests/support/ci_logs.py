"""What CI systems take for commands where they read a job's output, from their documentation and sources.

A second reading: it knows nothing of `sealpipe.ci_systems`.
"""

from __future__ import annotations

import re
from typing import Final

READERS: Final = {
    "GitHub Actions": r"^\s*::|##\[",
    "Azure Pipelines": r"##vso\[|##\[",
    "TeamCity": r"##teamcity\[",
    "Unity": r"##utp:",
    "GitLab": r"section_(?:start|end):",
    "Travis": r"travis_(?:fold|time):",
    "Buildkite": r"^(?:---|\+\+\+|~~~)(?:\s|$)|^\^\^\^\s+\+\+\+\s*$",
}


def commands(text: str) -> list[tuple[str, str]]:
    """The commands in an output: the system that would obey, and the line. Lines end where any system ends one."""
    lines = re.split(r"\r\n|[\r\n\v\f\x85\u2028\u2029]", text)
    return [(name, line) for name, pattern in READERS.items() for line in lines if re.search(pattern, line)]
