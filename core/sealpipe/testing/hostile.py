"""Text from outside, as an attacker writes it: titles that a channel has to show as text.

What CI systems take for commands where they read a job's output is from their documentation and
sources: a second reading, which knows nothing of `sealpipe.ci_systems`.
"""

from __future__ import annotations

from typing import Final

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
