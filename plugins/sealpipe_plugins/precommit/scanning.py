"""Scan a file by the rules. Returns positions, never the match itself."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from sealpipe_plugins.precommit.rules import CompiledRule, Rule

PRAGMA: Final = b"sealpipe: allow"
"""The pragma that allows a match on its line."""
_CHUNK: Final = 32 * 1024 * 1024
_OVERLAP: Final = 8 * 1024
"""Bytes that two chunks share: longer than any match and the text that its rule checks before it."""
_MESSAGES: Final = frozenset({"COMMIT_EDITMSG", "MERGE_MSG", "TAG_EDITMSG"})
_SCISSORS: Final = re.compile(rb"^(.) -{8,} >8 -{8,}\r?\n(?:\1.*\n)*", re.M)
_BYTE_ORDER_MARKS: Final = {
    b"\xff\xfe\x00\x00": "utf-32-le",
    b"\x00\x00\xfe\xff": "utf-32-be",
    b"\xff\xfe": "utf-16-le",
    b"\xfe\xff": "utf-16-be",
}
"""The longer marks first: one begins with another."""


class Match(NamedTuple):
    """A match: the file's name, the line's number from 1, and the rule."""

    file: str
    line: int
    rule: Rule


def scan(file: str, rules: Sequence[CompiledRule]) -> Iterator[Match]:
    """Return all matches in a file, each line and rule once. Raises OSError."""
    mode = os.lstat(file).st_mode
    if stat.S_ISLNK(mode):
        # git stores a link's target, not the file it points to
        for line, rule in find_matches(os.fsencode(os.readlink(file)), rules):  # noqa: PTH115 - as below
            yield Match(file, line, rule)
    elif stat.S_ISREG(mode):
        with open(file, "rb", buffering=0) as stream:  # noqa: PTH123 - pathlib would be most of what this imports
            content = _read_chunk(stream.fileno())
            if len(content) == _CHUNK:
                yield from _scan_chunks(file, content, stream.fileno(), rules)
                return
        for text in _decoded_texts(file, content):
            found = find_matches(text, rules)
            if found:
                yield from (Match(file, line, rule) for line, rule in found)
                return


def find_matches(content: bytes, rules: Sequence[CompiledRule]) -> list[tuple[int, Rule]]:
    """Return line and rule of each match that no pragma allows.

    If the content has NUL bytes, also search it without them: this covers UTF-16 and UTF-32 without a byte order mark.
    """
    texts = (content, content.translate(None, b"\0")) if b"\0" in content else (content,)
    found = {
        (line, each.rule)
        for text in texts
        for each in rules
        # searching for a literal is fastest, and most files contain none of them
        if any(map(text.__contains__, each.anchors))
        for line in _matching_lines(text, each)
    }
    return sorted(found, key=lambda each: (each[0], each[1].name))


def _matching_lines(content: bytes, each: CompiledRule) -> Iterator[int]:
    """Yield the lines with a match that no pragma allows. Each line is reported once, at its first match."""
    line, line_start, line_end, position = 1, 0, 0, 0
    while match := each.pattern.search(content, position):
        start = match.start()
        if not each.matches_before(content, start):
            position = start + 1  # the next match may begin inside this one
            continue
        before, line_start = line_start, max(line_end, content.rfind(b"\n", line_end, start) + 1)
        line += content.count(b"\n", before, line_start)
        end = content.find(b"\n", match.end())
        line_end = position = end if end >= 0 else len(content)
        if content.find(PRAGMA, line_start, line_end) < 0:
            yield line


def _read_chunk(descriptor: int) -> bytes:
    """Read up to one chunk."""
    parts: list[bytes] = []
    # Read only what exists: the kernel would clear a buffer of a whole chunk for every small file.
    left = min(_CHUNK, max(1, os.fstat(descriptor).st_size - os.lseek(descriptor, 0, os.SEEK_CUR)))
    while left and (part := os.read(descriptor, left)):
        parts.append(part)
        left -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _decoded_texts(file: str, content: bytes) -> Iterator[bytes]:
    """Yield the texts to search: UTF-16 or UTF-32 with a byte order mark as UTF-8, then the bytes as git stores them.

    The mark may be wrong, so the bytes themselves are always included.
    """
    for mark, encoding in _BYTE_ORDER_MARKS.items():
        if content.startswith(mark):
            yield content[len(mark) :].decode(encoding, "replace").encode("utf-8", "replace")
            break
    # nothing tracked is in a folder of that name, but anyone may commit a file called MERGE_MSG
    folders, _, name = file.rpartition("/")
    yield _strip_git_comments(content) if name in _MESSAGES and ".git" in folders.split("/") else content


def _strip_git_comments(message: bytes) -> bytes:
    """Remove what git itself removes from a commit message: the scissors line and everything that git wrote below.

    Other text below the scissors line was not written by git: a message from the command line is kept whole.
    """
    for cut in _SCISSORS.finditer(message):
        if message.startswith(b"diff --", cut.end()) or cut.end() == len(message):
            return message[: cut.start()]
    return message


def _scan_chunks(file: str, content: bytes, descriptor: int, rules: Sequence[CompiledRule]) -> Iterator[Match]:
    """Scan a large file in overlapping chunks."""
    before, reported = 0, set()
    while True:
        for line, rule in find_matches(content, rules):
            if (before + line, rule.name) not in reported:
                reported.add((before + line, rule.name))
                yield Match(file, before + line, rule)
        more = _read_chunk(descriptor)
        if not more:
            return
        before += content.count(b"\n", 0, len(content) - _OVERLAP)
        content = content[-_OVERLAP:] + more
