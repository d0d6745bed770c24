"""The patterns that must not be committed, for the hooks and for other scanners.

They match bytes. A match is short and starts at a literal that is fast to search; before it a rule checks a bounded
length. So the time is linear in the size of the input.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

KEY: Final = "[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]"
"""32 bytes as base64url: 43 characters; the last one has two unused bits."""
TAG: Final = "[a-z][a-z0-9]{0,15}"
"""Any service's tag, at the start of a credential."""
HOST: Final = "[^\\s\"'<>`|{}^\\\\/#%]{1,255}"
"""Any host and port."""
_SLASH: Final = r"(?:/|\\/|%(?:25)?2[Ff]|\\u002[Ff]|\\x2[Ff])"
"""A slash, as written in a link, in JSON, or inside another URL."""
_HASH: Final = (
    ("#1", "#1"),
    ("%231", "%231"),
    ("%25231", "%25231"),
    ("\\u00231", r"\\u00231"),
    ("\\x231", r"\\x231"),
    ("&num;1", "&num;1"),
    ("&#", "&#(?:0{0,8}35|[Xx]0{0,8}23);1"),
)
"""The sign before a key and its 1, as written in a link, inside another URL, in JSON, in a script, in HTML."""
NO_ANCHOR: Final = "(?![a-z0-9_-]{43})"
"""A key has an upper-case letter (but for one of 10^9); `#1-how-to-begin` of 43 characters is an anchor of a page."""
_STOPS: Final = "\\s\"'<>`"
"""What ends a word."""
_FIRST: Final = f"(?:^|[{_STOPS}#(\\[{{=,;:|@]|%(?:25)?3[AaDd])"
"""Text before the host of a link, also of one without a scheme."""
_CONTINUATION: Final = "[_-]{0,4}[A-Za-z0-9]|[_-]{5}"
"""Characters that continue a token after a match; single underscores and dashes do not."""
_END: Final = "[_-]{0,4}(?:[^A-Za-z0-9_-]|$)"
"""The opposite: the end of a token."""
_FRONT: Final = "(?:^|[^A-Za-z0-9]|%[0-9A-Fa-f]{2})"
"""Text before a credential's tag: in a URL it may be a percent-encoded sign."""
_LIVE: Final = (("_sk_live_", "_sk_live_"),)
_CREDENTIAL: Final = "[A-Za-z0-9_-]{16}\\.[A-Za-z0-9_-]{43}"


class Rule(NamedTuple):
    """A pattern to search for, and what stands before it.

    `starts` has the beginnings of the pattern, each by a literal that it begins with and that is fast to search.
    `before` matches the text up to the pattern: at most `reach` bytes, of which only the first may be one of `stops`.
    `{host}` and `{tag}` in it are placeholders that a user may narrow. `after` must not follow. `advice` is the remedy.
    """

    hook: str
    name: str
    starts: tuple[tuple[str, str], ...]
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
        _HASH,
        f"{NO_ANCHOR}{KEY}",
        "anyone with it can open the share: expire the share and remove the link from the history",
        before=f"{_FIRST}(?:{_SLASH}{{1,2}}{{host}}(?:(?:{_SLASH}|\\?)[^{_STOPS}#]*)?|{{host}}{_SLASH}[^{_STOPS}#]*)",
        reach=1200,
        stops=b" \t\n\r\f\v\"'<>`#",
    ),
    Rule(
        "no-credentials",
        "credential-with-custody",
        _LIVE,
        rf"{_CREDENTIAL}\.[A-Za-z0-9_-]{{43}}",
        "rotate it: its custody part opens everything sealed to it; create another key, then revoke this one",
        before=_FRONT + "{tag}",
    ),
    Rule(
        "no-credentials",
        "credential",
        _LIVE,
        _CREDENTIAL,
        "anyone with it can use the account: revoke the key and create another",
        before=_FRONT + "{tag}",
        after=rf"{_CONTINUATION}|\.[A-Za-z0-9_-]{{43}}(?!{_CONTINUATION})",
    ),
    Rule(
        "no-seeds",
        "seed",
        tuple((word, word) for word in ("seed", "SEED", "Seed")),
        rf"[A-Za-z0-9_.-]{{0,32}}[\"']?[ \t]{{0,8}}(?::=|=>|:|=)[ \t]{{0,8}}[\"']?1?{KEY}",
        "it opens every submission of its request: expire the request and create another",
    ),
    Rule(
        "no-seeds",
        "lone-key",
        _HASH,
        f"{NO_ANCHOR}{KEY}",
        "it is the key of a link: expire its share",
        before=f"(?:^|[^A-Za-z0-9_/.?&=%~-]|(?:^|[{_STOPS}])[^{_STOPS}/%\\\\]{{0,64}})",
        reach=80,
    ),
)
HOOKS: Final = tuple(dict.fromkeys(rule.hook for rule in RULES))


class CompiledRule(NamedTuple):
    """A compiled rule: its patterns by the literal that each begins with. `blanks` replaces each stop by a blank."""

    rule: Rule
    patterns: Mapping[bytes, re.Pattern[bytes]]
    before: re.Pattern[bytes]
    blanks: bytes

    def matches_before(self, content: bytes, start: int) -> bool:
        """Return whether the text before `start` matches the rule's `before`."""
        begin = max(0, start - self.rule.reach)
        if self.rule.stops:
            begin += max(0, content[begin:start].translate(self.blanks).rfind(b" "))  # the stop itself may be matched
        return self.before.search(content, begin, start) is not None


def compile_rules(hook: str, *, tags: Sequence[str] = (), hosts: Sequence[str] = ()) -> list[CompiledRule]:
    """Return the rules of a hook. With `tags` or `hosts`, only for those services."""
    tag = "(?:" + "|".join(map(re.escape, tags)) + ")" if tags else TAG
    host = "(?:" + "|".join(map(re.escape, hosts)) + r")(?::\d{1,5})?" if hosts else HOST
    return [
        CompiledRule(
            rule,
            {
                literal.encode(): re.compile(f"{start}{rule.pattern}(?!{rule.after})".encode())
                for literal, start in rule.starts
            },
            re.compile((_fill_pattern(rule.before, tag, host) + r"\Z").encode()),
            bytes.maketrans(rule.stops, b" " * len(rule.stops)),
        )
        for rule in RULES
        if rule.hook == hook
    ]


def scanner_pattern(rule: Rule) -> str:
    """Return the rule as one RE2 expression. RE2 has no lookaround, so its match is longer at each end.

    Its first group is the match. What `NO_ANCHOR` refuses is matched, and left to the scanner to allow.
    """
    body = f"(?:{'|'.join(start for _, start in rule.starts)}){rule.pattern.replace(NO_ANCHOR, '')}"
    return f"{_fill_pattern(rule.before, TAG, HOST)}({body}){_END}"


def _fill_pattern(pattern: str, tag: str, host: str) -> str:
    return pattern.replace("{tag}", tag).replace("{host}", host)
