"""What must not be committed, as one table of expressions. Read by the hooks, and by the file for gitleaks.

All of them are over bytes, hold a literal that the engine looks for first, and match in linear time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

KEY: Final = "[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]"
"""32 bytes as base64url: 43 characters, of which the last has two bits that are nothing."""
END: Final = "(?![A-Za-z0-9_-])"
TAG: Final = "[a-z][a-z0-9]{0,15}"
"""Any service's tag, as it begins a credential."""
HASH: Final = "(?:#|%23|\\\\u0023)"
"""How the # of a link is written: plain, in another address, in JSON."""
HOST: Final = "[^\\s\"'<>`|{}^\\\\/#%]{1,255}"
"""Any host, and its port."""


class Rule(NamedTuple):
    """`pattern` is for Python; {host} and {tag} stand for what a user may narrow. `advice` is what to do."""

    hook: str
    name: str
    pattern: str
    advice: str


RULES: Final[Sequence[Rule]] = (
    Rule(
        "no-links",
        "link-with-key",
        # From the scheme on: a link is a link in JSON (\/) and in another address (%2F) as well.
        "https?(?::|%3[Aa])(?:/|\\\\/|%2[Ff]){2}(?:{host})(?:/|\\\\/|%2[Ff])[^\\s\"'<>`#]{1,1024}?"
        + HASH
        + "1"
        + KEY
        + END,
        "whoever has it opens what is behind it: expire the share, take it out, and out of the history",
    ),
    Rule(
        "no-credentials",
        "credential-with-custody",
        "(?<![A-Za-z0-9]){tag}_sk_live_[A-Za-z0-9_-]{16}\\.[A-Za-z0-9_-]{43}\\.[A-Za-z0-9_-]{43}" + END,
        "rotate: a key with its custody part opens all that was sealed to it; mint a new one, then revoke this one",
    ),
    Rule(
        "no-credentials",
        "credential",
        "(?<![A-Za-z0-9]){tag}_sk_live_[A-Za-z0-9_-]{16}\\.[A-Za-z0-9_-]{43}(?!\\.[A-Za-z0-9_-]{43})" + END,
        "revoke the key and mint another: whoever has read it can use the account",
    ),
    Rule(
        "no-seeds",
        "seed",
        "(?i:seed)[A-Za-z0-9_.-]{0,32}[\"']?[ \\t]{0,8}(?::|=|:=|=>)[ \\t]{0,8}[\"']?1?" + KEY + END,
        "it opens every answer to its request: end the request, and ask anew under another key",
    ),
    Rule(
        "no-seeds",
        "lone-key",
        "(?<![A-Za-z0-9_/.?&=%-])#1" + KEY + END,
        "it is the key of a link: expire what it belongs to",
    ),
)
HOOKS: Final = tuple(dict.fromkeys(rule.hook for rule in RULES))


def compiled(hook: str, *, tags: Sequence[str] = (), hosts: Sequence[str] = ()) -> list[tuple[Rule, re.Pattern[bytes]]]:
    """The rules of a hook. With `tags` or `hosts`, only for those services."""
    tag = "(?:" + "|".join(map(re.escape, tags)) + ")" if tags else TAG
    host = "(?:" + "|".join(map(re.escape, hosts)) + ")(?::\\d{1,5})?" if hosts else HOST
    rules = [rule for rule in RULES if rule.hook == hook]
    return [(rule, re.compile(filled(rule, tag, host).encode())) for rule in rules]


def filled(rule: Rule, tag: str = TAG, host: str = HOST) -> str:
    """The expression, with what stands for a tag and for a host."""
    return rule.pattern.replace("{tag}", tag).replace("{host}", host)
