"""The patterns that must not be committed, for the hooks and for other scanners.

They match bytes. A match is short and starts at a literal that is fast to search; before it a rule
checks a bounded length. So the time is linear in the size of the input.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

KEY: Final = "[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]"
"""32 bytes as base64url: 43 characters; the last one has two unused bits."""
TAG: Final = "[a-z][a-z0-9]{0,15}"
"""Any service's tag, at the start of a credential."""
HOST: Final = "[^\\s\"'<>`|{}^\\\\/#%&]{1,255}"
"""Any host and port; no sign of it begins a spelling of `/`."""
_BACKSLASH: Final = r"(?:\\|%(?:25){0,3}5[Cc])"
"""JSON within JSON doubles it, and a URL may contain JSON."""


class Start(NamedTuple):
    """A literal that a text begins with.

    If it is the end of a spelled sign: what stands before it of that.
    """

    literal: str
    head: str = ""


class Spellings(NamedTuple):
    """How a sign is written, as it is, in URLs, JSON, scripts and HTML, to any depth.

    As one expression, and apart.
    """

    pattern: str
    starts: tuple[Start, ...]


def _spell(sign: str, entity: str, rest: str = "") -> Spellings:
    """Return the spellings of a sign, followed by a rest."""
    code, octal = f"{ord(sign):02x}", f"{ord(sign):03o}"
    spellings = (
        (_BACKSLASH + "{0,16}", (("", sign), ("%(?:25){0,8}", code))),
        (
            _BACKSLASH + "{1,16}",
            (("(?:u00|x|U0{6})", code), (r"[ux]\{0{0,8}", code + "}"), ("0?", octal)),
        ),
        (
            "&(?:amp;){0,2}",
            (("#0{0,8}", f"{ord(sign)};"), ("#[Xx]0{0,8}", code + ";"), ("", entity + ";")),
        ),
    )
    heads: dict[str, list[str]] = {}
    for before, ways in spellings:
        for head, end in ways:
            heads.setdefault(end + rest, []).append(before + head)
    parts = (
        f"{before}(?:{'|'.join(head + _ignore_case(end + rest) for head, end in ways)})"
        for before, ways in spellings
    )
    return Spellings(
        f"(?:{'|'.join(parts)})",
        tuple(Start(literal, f"(?:{'|'.join(each)})") for literal, each in heads.items()),
    )


def _ignore_case(literal: str) -> str:
    """Return an expression for a literal, whose digits of hex may be in upper case."""
    return re.escape(literal).replace("f", "[Ff]")


_SLASH: Final = _spell("/", "sol").pattern
_HASH: Final = _spell("#", "num", "1")
"""The sign before a key, and the key's 1."""
NO_ANCHOR: Final = "(?![a-z0-9_-]{43})"
"""A key has an upper-case letter (but for one of 10^9); `#1-how-to-begin` of 43 characters is an
anchor of a page.
"""
_STOPS: Final = "\\s\"'<>`"
"""What ends a word."""
_ESCAPE: Final = (
    r"(?:%(?:25)*[0-9A-Fa-f]{2}|\\(?:u00[0-9A-Fa-f]{2}|x[0-9A-Fa-f]{2}|[0-3][0-7]{2}|[a-z]))"
)
_FIRST: Final = f"(?:^|[^A-Za-z0-9.-]|{_ESCAPE})"
"""Text before the host of a link, also of one without a scheme, or behind a template: no host goes
on over it.
"""
_PATH: Final = f"[^{_STOPS}#]*(?:&#[^{_STOPS}#]*)*"
_NO_SLASH: Final = (
    rf"(?:[^{_STOPS}/%&\\]|%(?:25)*(?:2[0-46-9A-Ea-e]|[013-9A-Fa-f][0-9A-Fa-f])"
    rf"|\\[^{_STOPS}/ux0]|&[^{_STOPS}/%\\#s])"
)
"""A character of a word, or an escape: not of a slash, which would make the word a link."""
_CONTINUATION: Final = "[_-]{0,4}[A-Za-z0-9]|[_-]{5}"
"""Characters that continue a token after a match; single underscores and dashes do not."""
_END: Final = "[_-]{0,4}(?:[^A-Za-z0-9_-]|$)"
"""The opposite: the end of a token."""
_FRONT: Final = "(?:^|[^A-Za-z0-9]|%[0-9A-Fa-f]{2})"
"""Text before a credential's tag: in a URL it may be a percent-encoded sign."""
_LIVE: Final = (Start("_sk_live_"),)
_HEAD_REACH: Final = 64
"""Bytes of a sign's spelling."""
_CREDENTIAL: Final = "[A-Za-z0-9_-]{16}\\.[A-Za-z0-9_-]{43}"


class Rule(NamedTuple):
    """A pattern to search for, and what stands before it.

    `starts` has the beginnings of the pattern, each by a literal that is fast to search.
    `before` matches the text up to the start: at most `reach` bytes, of which only the first may be
    one of `stops`. `{host}` and `{tag}` in it are placeholders that a user may narrow. `after` must
    not follow. `advice` is the remedy.
    """

    hook: str
    name: str
    starts: tuple[Start, ...]
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
        _HASH.starts,
        f"{NO_ANCHOR}{KEY}",
        "anyone with it can open the share: expire the share and remove the link from the history",
        before=(
            f"{_FIRST}(?:{_SLASH}{{1,2}}{{host}}(?:(?:{_SLASH}|\\?){_PATH})?"
            f"|{{host}}{_SLASH}{_PATH})"
        ),
        reach=1200,
        stops=b" \t\n\r\f\v\"'<>`",
    ),
    Rule(
        "no-credentials",
        "credential-with-custody",
        _LIVE,
        rf"{_CREDENTIAL}\.[A-Za-z0-9_-]{{43}}",
        (
            "rotate it: its custody part opens everything sealed to it; create another key, "
            "then revoke this one"
        ),
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
        tuple(map(Start, ("seed", "SEED", "Seed"))),
        rf"[A-Za-z0-9_.-]{{0,32}}[\"']?[ \t]{{0,8}}(?::=|=>|:|=)[ \t]{{0,8}}[\"']?1?{KEY}",
        "it opens every submission of its request: expire the request and create another",
    ),
    Rule(
        "no-seeds",
        "lone-key",
        _HASH.starts,
        f"{NO_ANCHOR}{KEY}",
        "it is the key of a link: expire its share",
        before=rf"(?:^|[^A-Za-z0-9_/.?&=%~\\-]|\\[nrt]|(?:^|[{_STOPS}]){_NO_SLASH}{{0,64}}&?)",
        reach=200,
    ),
)
HOOKS: Final = tuple(dict.fromkeys(rule.hook for rule in RULES))


class CompiledStart(NamedTuple):
    """What to search for from a literal on, and what stands before its sign."""

    literal: bytes
    pattern: re.Pattern[bytes]
    head: re.Pattern[bytes]


class CompiledRule(NamedTuple):
    """A compiled rule. `blanks` replaces each stop by a blank."""

    rule: Rule
    starts: Sequence[CompiledStart]
    before: re.Pattern[bytes]
    blanks: bytes

    def matches_before(self, content: bytes, start: int, head: re.Pattern[bytes]) -> bool:
        """Return whether the text before `start` matches a start's head and the rule's `before`."""
        sign = head.search(content, max(0, start - _HEAD_REACH), start)
        if not sign:
            return False
        begin = max(0, sign.start() - self.rule.reach)
        if self.rule.stops:
            # the stop itself may be matched
            begin += max(0, content[begin : sign.start()].translate(self.blanks).rfind(b" "))
        return self.before.search(content, begin, sign.start()) is not None


def compile_rules(
    hook: str, *, tags: Sequence[str] = (), hosts: Sequence[str] = ()
) -> list[CompiledRule]:
    """Return the rules of a hook. With `tags` or `hosts`, only for those services."""
    tag = "(?:" + "|".join(map(re.escape, tags)) + ")" if tags else TAG
    # possessive.
    host = "(?:" + "|".join(map(re.escape, hosts)) + r")(?::\d{1,5})?" if hosts else f"{HOST}+"
    return [
        CompiledRule(
            rule,
            [
                CompiledStart(
                    start.literal.encode(),
                    re.compile(
                        f"{re.escape(start.literal)}{rule.pattern}(?!{rule.after})".encode()
                    ),
                    re.compile(rf"{start.head}\Z".encode()),
                )
                for start in rule.starts
            ],
            re.compile((_fill_pattern(rule.before, tag, host) + r"\Z").encode()),
            bytes.maketrans(rule.stops, b" " * len(rule.stops)),
        )
        for rule in RULES
        if rule.hook == hook
    ]


def scanner_pattern(rule: Rule) -> str:
    """Return the rule as one RE2 expression.

    RE2 has no lookaround, so its match is longer at each end.

    Its first group is the match. What `NO_ANCHOR` refuses is matched, and left to the scanner to
    allow.
    """
    starts = "|".join(start.head + re.escape(start.literal) for start in rule.starts)
    body = f"(?:{starts}){rule.pattern.replace(NO_ANCHOR, '')}"
    return f"{_fill_pattern(rule.before, TAG, HOST)}({body}){_END}"


def _fill_pattern(pattern: str, tag: str, host: str) -> str:
    return pattern.replace("{tag}", tag).replace("{host}", host)
