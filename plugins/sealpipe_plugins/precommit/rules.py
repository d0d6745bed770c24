"""The patterns that must not be committed, for the hooks and for gitleaks.

They match bytes. A match is short and starts at a literal that is fast to search; before it a rule checks a bounded
length. So the time is linear in the size of the input.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

KEY: Final = "[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]"
"""32 bytes as base64url: 43 characters; the last one has two unused bits."""
TAG: Final = "[a-z][a-z0-9]{0,15}"
"""Any service's tag, at the start of a credential."""
HOST: Final = "[^\\s\"'<>`|{}^\\\\/#%]{1,255}"
"""Any host and port."""
_SLASH: Final = r"(?:/|\\/|%2[Ff]|\\u002[Ff])"
"""A slash, as written in a link, in JSON, or inside another URL."""
_HASH: Final = r"(?:#|%23|\\u0023|&#35;|&#x23;)"
_CONTINUATION: Final = "[_-]{0,4}[A-Za-z0-9]|[_-]{5}"
"""Characters that continue a token after a match; single underscores and dashes do not."""
_END: Final = "[_-]{0,4}(?:[^A-Za-z0-9_-]|$)"
"""The opposite: the end of a token."""
_FRONT: Final = "(?:^|[^A-Za-z0-9]|%[0-9A-Fa-f]{2})"
"""Text before a credential's tag: in a URL it may be a percent-encoded sign."""
_CREDENTIAL: Final = "_sk_live_[A-Za-z0-9_-]{16}\\.[A-Za-z0-9_-]{43}"


class Rule(NamedTuple):
    """A pattern to search for. It begins with one of `anchors`, and `before` matches the text up to it.

    `{host}` and `{tag}` in an expression are placeholders that a user may narrow. `after` must not follow. `before`
    matches at most `reach` bytes, which contain none of `stops`. `advice` is the remedy.
    """

    hook: str
    name: str
    anchors: tuple[str, ...]
    pattern: str
    advice: str
    before: str = ""
    after: str = _CONTINUATION
    reach: int = 32
    stops: bytes = b""


RULES: Final[Sequence[Rule]] = (
    Rule(
        "no-links",
        "link-with-key",
        ("#1", "%231", "\\u00231", "&#35;1", "&#x23;1"),
        f"{_HASH}1{KEY}",
        "anyone with it can open the share: expire the share and remove the link from the history",
        before=rf"[Hh][Tt][Tt][Pp][Ss]?(?::|%3[Aa]){_SLASH}{{2}}{{host}}{_SLASH}[^\s\"'<>`#]+",
        reach=1200,
        stops=b" \t\n\r\f\v\"'<>`#",
    ),
    Rule(
        "no-credentials",
        "credential-with-custody",
        ("_sk_live_",),
        rf"{_CREDENTIAL}\.[A-Za-z0-9_-]{{43}}",
        "rotate it: its custody part opens everything sealed to it; create another key, then revoke this one",
        before=_FRONT + "{tag}",
    ),
    Rule(
        "no-credentials",
        "credential",
        ("_sk_live_",),
        _CREDENTIAL,
        "anyone with it can use the account: revoke the key and create another",
        before=_FRONT + "{tag}",
        after=rf"{_CONTINUATION}|\.[A-Za-z0-9_-]{{43}}(?!{_CONTINUATION})",
    ),
    Rule(
        "no-seeds",
        "seed",
        ("seed", "SEED", "Seed"),
        rf"(?:seed|SEED|Seed)[A-Za-z0-9_.-]{{0,32}}[\"']?[ \t]{{0,8}}(?::=|=>|:|=)[ \t]{{0,8}}[\"']?1?{KEY}",
        "it opens every submission of its request: expire the request and create another",
    ),
    Rule(
        "no-seeds",
        "lone-key",
        ("#1",),
        f"#1{KEY}",
        "it is the key of a link: expire its share",
        before="(?:^|[^A-Za-z0-9_/.?&=%~-])",
    ),
)
HOOKS: Final = tuple(dict.fromkeys(rule.hook for rule in RULES))


class CompiledRule(NamedTuple):
    """A compiled rule. `blanks` replaces each of its stops by a blank."""

    rule: Rule
    anchors: tuple[bytes, ...]
    before: re.Pattern[bytes]
    pattern: re.Pattern[bytes]
    blanks: bytes

    def matches_before(self, content: bytes, start: int) -> bool:
        """Return whether the text before `start` matches the rule's `before`."""
        begin = max(0, start - self.rule.reach)
        if self.rule.stops:
            begin += content[begin:start].translate(self.blanks).rfind(b" ") + 1
        return self.before.search(content, begin, start) is not None


def compile_rules(hook: str, *, tags: Sequence[str] = (), hosts: Sequence[str] = ()) -> list[CompiledRule]:
    """Return the rules of a hook. With `tags` or `hosts`, only for those services."""
    tag = "(?:" + "|".join(map(re.escape, tags)) + ")" if tags else TAG
    host = "(?:" + "|".join(map(re.escape, hosts)) + r")(?::\d{1,5})?" if hosts else HOST
    return [
        CompiledRule(
            rule,
            tuple(anchor.encode() for anchor in rule.anchors),
            re.compile((_fill_pattern(rule.before, tag, host) + r"\Z").encode()),
            re.compile(f"{_fill_pattern(rule.pattern, tag, host)}(?!{rule.after})".encode()),
            bytes.maketrans(rule.stops, b" " * len(rule.stops)),
        )
        for rule in RULES
        if rule.hook == hook
    ]


def gitleaks_pattern(rule: Rule) -> str:
    """Return the rule as one RE2 expression. RE2 has no lookaround, so its match is longer at each end."""
    before, body = (_fill_pattern(part, TAG, HOST) for part in (rule.before, rule.pattern))
    return f"{before}({body}){_END}"


def _fill_pattern(pattern: str, tag: str, host: str) -> str:
    return pattern.replace("{tag}", tag).replace("{host}", host)
