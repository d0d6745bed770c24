"""A file against the rules: where they match, and never what."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from sealpipe_plugins.precommit.rules import Compiled, Rule

PRAGMA: Final = b"sealpipe: allow"
"""What a line says that may hold a match."""
_CHUNK: Final = 32 * 1024 * 1024
_OVERLAP: Final = 8 * 1024
"""Bytes that two chunks have in common: more than any match is long."""
_BEFORE: Final = 32
"""Bytes before a match that its rule looks at, at most."""
_MESSAGES: Final = frozenset({"COMMIT_EDITMSG", "MERGE_MSG", "TAG_EDITMSG"})
_SCISSORS: Final = re.compile(rb"^. -{8,} >8 -{8,}\r?$", re.M)
_BOMS: Final = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}


class Found(NamedTuple):
    """A match: the file's name, the line's number from 1, and the rule."""

    file: str
    line: int
    rule: Rule


def scan(file: str, rules: Sequence[Compiled]) -> Iterator[Found]:
    """All matches of a file, each line and rule once. Raises OSError."""
    mode = os.lstat(file).st_mode
    if stat.S_ISLNK(mode):
        # What is committed of a link is where it points, not what is there.
        yield from _named(file, os.fsencode(os.readlink(file)), rules)  # noqa: PTH115 - as below
    elif stat.S_ISREG(mode):
        with open(file, "rb", buffering=0) as stream:  # noqa: PTH123 - pathlib would be most of what this imports
            content = _read(stream.fileno())
            if len(content) == _CHUNK:
                yield from _in_chunks(file, content, stream.fileno(), rules)
                return
        yield from _named(file, _plain(file, content), rules)


def _named(file: str, content: bytes, rules: Sequence[Compiled]) -> Iterator[Found]:
    for line, rule in matches(content, rules):
        yield Found(file, line, rule)


def matches(content: bytes, rules: Sequence[Compiled]) -> list[tuple[int, Rule]]:
    """Line and rule of each match that no pragma allows."""
    found: dict[tuple[int, str], Rule] = {}
    for each in rules:
        # The search for a literal is the fastest that there is, and most files hold none of them.
        for match in each.pattern.finditer(content) if any(map(content.__contains__, each.anchors)) else ():
            start = match.start()
            if each.before.search(content, max(0, start - _BEFORE), start) and not _allowed(content, match):
                found[content.count(b"\n", 0, start) + 1, each.rule.name] = each.rule
    return [(line, rule) for (line, _), rule in sorted(found.items(), key=lambda each: each[0])]


def _allowed(content: bytes, match: re.Match[bytes]) -> bool:
    begin = content.rfind(b"\n", 0, match.start()) + 1
    end = content.find(b"\n", match.end())
    return PRAGMA in content[begin : end if end >= 0 else len(content)]


def _read(descriptor: int) -> bytes:
    """As much as a chunk holds."""
    parts: list[bytes] = []
    # As much as there is: room for a whole chunk would be cleared by the kernel for every small file.
    left = min(_CHUNK, max(1, os.fstat(descriptor).st_size - os.lseek(descriptor, 0, os.SEEK_CUR)))
    while left and (part := os.read(descriptor, left)):
        parts.append(part)
        left -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _plain(file: str, content: bytes) -> bytes:
    """The text that git would store, as UTF-8 where it says that it is UTF-16."""
    encoding = _BOMS.get(content[:2])
    if encoding is not None:
        return content[2:].decode(encoding, "replace").encode("utf-8", "replace")
    if file.rpartition("/")[2] in _MESSAGES:
        cut = _SCISSORS.search(content)  # below it stands the diff, which git takes off
        return content if cut is None else content[: cut.start()]
    return content


def _in_chunks(file: str, content: bytes, descriptor: int, rules: Sequence[Compiled]) -> Iterator[Found]:
    """A large file, in pieces that overlap."""
    before, seen = 0, set()
    while True:
        for line, rule in matches(content, rules):
            if (before + line, rule.name) not in seen:
                seen.add((before + line, rule.name))
                yield Found(file, before + line, rule)
        more = _read(descriptor)
        if not more:
            return
        before += content.count(b"\n", 0, len(content) - _OVERLAP)
        content = content[-_OVERLAP:] + more
