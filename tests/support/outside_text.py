"""Text from outside as an attacker writes it, and short codes of any text: for whatever prints."""

from __future__ import annotations

import re
from typing import Final, Literal

from hypothesis import strategies as st

from sealpipe.testing.hostile import COMMANDS, MAIL, MARKUP
from sealpipe_rehearsal.running_service import RunningService


def outside(*, printable: bool = False) -> st.SearchStrategy[str]:
    """Text that is made of all of these, whole or in pieces, and of anything else."""
    known = MAIL + MARKUP + COMMANDS
    pieces = tuple(sorted({word for text in known for word in text.split(" ")[:20] if word}))
    whole = st.sampled_from(known) | st.sampled_from(pieces) | st.text(max_size=12)
    signs = st.text(
        "=?<>@#!:*_`[](){}&\\/|~-+^$%\"'\r\n\t \u2028\x85\ud800\u202e\u00fc\U0001f511", max_size=12
    )
    text = st.lists(whole | signs, max_size=8).map("".join)
    return (
        text.map(lambda made: "".join(sign for sign in made if sign.isprintable()))
        if printable
        else text
    )


ODD = ("#x", "$(id)", "-x", "é", "a%2Fb", "a/b", "%41", "${{ github.token }}")
"""Codes that a shell, an expression, an option's parser or a percent-decoder would take for
something else.
"""


def renamed(
    service: RunningService, what: Literal["shares", "requests"], code: str, other: str
) -> str:
    """The service calls a share or a request otherwise from now on; `other`."""
    service.rename(what, code, other)
    return other


def ended(service: RunningService) -> list[str]:
    """What DELETEs named, as it stood in their paths, oldest first."""
    return [seen.target.rpartition("/")[2] for seen in service.seen() if seen.method == "DELETE"]


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
    """The commands in an output: the system that would obey, and the line.

    Lines end where any system ends one.
    """
    lines = re.split(r"\r\n|[\r\n\v\f\x85\u2028\u2029]", text)
    return [
        (name, line)
        for name, pattern in READERS.items()
        for line in lines
        if re.search(pattern, line)
    ]
