"""What must not be committed, as one table of expressions. Read by the hooks, and by the file for gitleaks.

Each is over bytes, begins at a literal that is quickly found, and matches in linear time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

KEY: Final = "[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]"
"""32 bytes as base64url: 43 characters, of which the last has two bits that are nothing."""
TAG: Final = "[a-z][a-z0-9]{0,15}"
"""Any service's tag, as it begins a credential."""
HOST: Final = "[^\\s\"'<>`|{}^\\\\/#%]{1,255}"
"""Any host, and its port."""
_SLASH: Final = r"(?:/|\\/|%2[Ff])"
"""As it stands in a link, in JSON, and in another address."""
_HASH: Final = r"(?:#|%23|\\u0023)"
_PARTS: Final = "_sk_live_[A-Za-z0-9_-]{16}\\.[A-Za-z0-9_-]{43}"


class Rule(NamedTuple):
    """One thing to look for. It begins with one of `anchors`, and `before` matches up to there.

    `{host}` and `{tag}` in an expression stand for what a user may narrow. `after` must not follow. `advice` is what
    to do.
    """

    hook: str
    name: str
    anchors: tuple[str, ...]
    pattern: str
    advice: str
    before: str = ""
    after: str = "[A-Za-z0-9_-]"


RULES: Final[Sequence[Rule]] = (
    Rule(
        "no-links",
        "link-with-key",
        ("http",),
        rf"https?(?::|%3[Aa]){_SLASH}{{2}}{{host}}{_SLASH}[^\s\"'<>`#]{{1,900}}?{_HASH}1{KEY}",
        "whoever has it opens what is behind it: expire the share, and take it out of the history, too",
    ),
    Rule(
        "no-credentials",
        "credential-with-custody",
        ("_sk_live_",),
        rf"{_PARTS}\.[A-Za-z0-9_-]{{43}}",
        "rotate: with its custody part a key opens all that was sealed to it; mint another, then revoke this one",
        before="(?:^|[^A-Za-z0-9]){tag}",
    ),
    Rule(
        "no-credentials",
        "credential",
        ("_sk_live_",),
        _PARTS,
        "revoke the key and mint another: whoever has read it can use the account",
        before="(?:^|[^A-Za-z0-9]){tag}",
        after=r"[A-Za-z0-9_-]|\.[A-Za-z0-9_-]{43}",
    ),
    Rule(
        "no-seeds",
        "seed",
        ("seed", "SEED", "Seed"),
        rf"(?:seed|SEED|Seed)[A-Za-z0-9_.-]{{0,32}}[\"']?[ \t]{{0,8}}(?::=|=>|:|=)[ \t]{{0,8}}[\"']?1?{KEY}",
        "it opens every answer to its request: end the request, and ask anew under another key",
    ),
    Rule(
        "no-seeds",
        "lone-key",
        ("#1",),
        f"#1{KEY}",
        "it is the key of a link: expire what it belongs to",
        before="(?:^|[^A-Za-z0-9_/.?&=%~-])",
    ),
)
HOOKS: Final = tuple(dict.fromkeys(rule.hook for rule in RULES))


class Compiled(NamedTuple):
    """A rule, ready to be looked for."""

    rule: Rule
    anchors: tuple[bytes, ...]
    before: re.Pattern[bytes]
    pattern: re.Pattern[bytes]


def compiled(hook: str, *, tags: Sequence[str] = (), hosts: Sequence[str] = ()) -> list[Compiled]:
    """The rules of a hook. With `tags` or `hosts`, only for those services."""
    tag = "(?:" + "|".join(map(re.escape, tags)) + ")" if tags else TAG
    host = "(?:" + "|".join(map(re.escape, hosts)) + r")(?::\d{1,5})?" if hosts else HOST
    return [
        Compiled(
            rule,
            tuple(anchor.encode() for anchor in rule.anchors),
            re.compile((_filled(rule.before, tag, host) + r"\Z").encode()),
            re.compile(f"{_filled(rule.pattern, tag, host)}(?!{rule.after})".encode()),
        )
        for rule in RULES
        if rule.hook == hook
    ]


def for_gitleaks(rule: Rule) -> str:
    """The same as one expression of RE2, which cannot look around: what it matches is one sign longer at each end."""
    before, body = (_filled(part, TAG, HOST) for part in (rule.before, rule.pattern))
    return f"{before}({body})(?:[^A-Za-z0-9_-]|$)"


def _filled(pattern: str, tag: str, host: str) -> str:
    return pattern.replace("{tag}", tag).replace("{host}", host)
