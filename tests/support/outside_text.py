"""Text from outside as an attacker writes it, and short codes of any text: for whatever prints.

What CI systems take for commands where they read a job's output is from their documentation and
sources: a second reading, which knows nothing of `sealpipe.ci_systems`.
"""

from __future__ import annotations

import re
from typing import Final, Literal

from hypothesis import strategies as st

from sealpipe_rehearsal.running_service import RunningService

FORM: Final = "<form action=https://evil.example><input name=link>"

MAIL: Final = (
    f"v1 =?utf-8?q?=0D=0AContent-Type:_text/html=0D=0A=0D=0A{FORM.replace(' ', '_')}?=",
    "=?utf-8?b?DQpCY2M6IGV2ZUBldmlsLmV4YW1wbGUNCg==?=",
    "=?utf-8?q?=0ABcc:_eve@evil.example?= =?us-ascii?q?=0D?=",
    "a =?iso-8859-1?q?x=0D=0A?= =?utf-16?b?DQAKAA==?= =?utf-7?q?+AA0ACg-Bcc:?=",
    "=?utf-8?q?=3D=3Futf-8=3Fq=3F=0D=0ABcc:_eve@evil.example=3F=3D?=",
    "x=?utf-8?q?=0D=0A?=y =?utf-8*en?q?=0D=0ABcc:_x@y.example?=",
    "=?utf-8?q??= =?=?= ?= =?utf-8?q?open",
    "one\r\nBcc: eve@evil.example\r\n\r\n<b>two</b>",
    "one\rBcc: a@b.example\nTo: c@d.example",
    "one\x85Bcc: a@b.example\u2028To: c@d.example\u2029\x0b\x0c\x1c\x1d\x1e",
    "lone \ud800 and \udfff, and \udc0d\udc0a",
    "\U0001f511 " * 60,
    "word " * 400,
    "w" * 4000,
    "\u202eexample.moc\u202c \u2066x\u2069 \u200f",
    "eve@evil.example, Ann <ann@example.com>; Group: a@b.example;",
    "--=_boundary\r\nContent-Type: text/html\r\n\r\n.\r\n.",
    ".\r\n\r\nMAIL FROM:<x@y.example>",
    "\x00\x07\x1b[2J",
)
"""What would write headers, recipients, parts or another message."""

MARKUP: Final = (
    ("<!channel> <!here> <!everyone> <@U024BE7LH> <#C024BE91L> <!subteam^S1> "
        "<https://evil.example|the link>"),
    "&lt;!channel&gt; &amp;lt; &#64;ann &commat;ann &#x3c;b&#x3e;",
    "*bold* _it_ ~no~ `code` ```fence``` ||spoiler|| :tada:",
    ("[the link](https://evil.example) ![x](https://evil.example/x.png) [x][1] [x]: "
        "https://evil.example"),
    ("<script>alert(1)</script> <img src=x onerror=alert(1)> <a href=https://evil.example>x</a> "
        "<!-- x -->"),
    "</title></head><body><form action=https://evil.example> \"'><b>",
    "@everyone @ann @acme/team <at>Ann</at> acme/app#1 #1 GH-1 !1 $1 %v1 ~bug &1 ^alert#1",
    "/close /assign @ann\n/approve\n/label ~bug",
    ("# head\n> quote\n- [x] done\n1. one\n| a | b |\n|---|---|\n***\n===\n    code\n\ttab\n"
        "```\nfence\n~~~"),
    ("https://evil.example/s/x#y www.evil.example mailto:eve@evil.example eve@evil.example "
        "javascript:alert(1)"),
    "{{DATE(2026-01-01T00:00:00Z)}} ${x} @{triggerBody()} {{link}} {link} {title} %s %(x)s {0}",
    '", "link": "https://evil.example", "x": "', "\\\", \\u0022, \\n", "$$x$$ $`a`$ \\(x\\)",
    "[[_TOC_]] ::include{file=x} [[x]]",
)  # fmt: skip
"""What a system might show as more than text."""

COMMANDS: Final = (
    "::error::x", " ::set-env name=X::y", "a ##[command]x", "##vso[task.setvariable variable=x]y",
    "##teamcity[buildStop comment='x']", "##utp:{\"type\":\"x\"}",
    "section_start:1:x[collapsed=true]\r\x1b[0K",
    "section_end:1:x\r\x1b[0K", "travis_fold:start:x", "travis_time:start:1", "--- x", "+++ x",
    "~~~ x", "^^^ +++",
)  # fmt: skip
"""What a CI system's log might read as a command."""


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
