"""Scan a file by the rules. Returns positions, never the match itself."""

from __future__ import annotations

import os
import re
import stat
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from sealpipe_plugins.precommit.rules import CompiledRule, CompiledStart, Rule

PRAGMA: Final = b"sealpipe: allow"
"""The pragma that allows a match on its line."""
_CHUNK: Final = 32 * 1024 * 1024
"""Bytes read at once. A larger file is scanned in pieces of whole lines."""
_OVERLAP: Final = 16 * 1024
"""Bytes that two pieces of one line share: also in UTF-32 more than twice a match and the text that
its rule checks.
"""
_SOFT_BREAK: Final = b"=\n"
"""A line break within a word in mail..."""
_MAIL: Final = (b"uoted-printable", b"uoted-Printable", b"UOTED-PRINTABLE")
"""... whose header says that it has them..."""
_HEADERS: Final = 64 * 1024
"""... at its beginning."""
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


def is_folder(file: str) -> bool:
    """Return whether it is a folder, such as a submodule: nothing in it is scanned."""
    try:
        return stat.S_ISDIR(os.lstat(file).st_mode)
    except OSError:
        return False


def scan(file: str, rules: Sequence[CompiledRule]) -> Iterator[Match]:
    """Return all matches in a file, each line and rule once. Raises OSError."""
    mode = os.lstat(file).st_mode
    if stat.S_ISLNK(mode):
        # git stores a link's target, not the file it points to
        for line, rule in find_matches(os.fsencode(os.readlink(file)), rules):  # noqa: PTH115
            yield Match(file, line, rule)
    elif stat.S_ISREG(mode):
        # pathlib would be most of what this imports.
        with open(file, "rb", buffering=0) as stream:  # noqa: PTH123
            content = _read_chunk(stream.fileno())
            if len(content) == _CHUNK:
                yield from _scan_pieces(file, content, stream.fileno(), rules)
                return
        for text in _decoded_texts(file, content):
            found = find_matches(text, rules)
            if found:
                yield from (Match(file, line, rule) for line, rule in found)
                return


def find_matches(
    content: bytes, rules: Sequence[CompiledRule], tail: int = 0
) -> list[tuple[int, Rule]]:
    """Return line and rule of each match that no pragma allows, but in the last `tail` bytes."""
    found = {
        (line, each.rule)
        for text, breaks in _variants(content)
        for each in rules
        for start in each.starts
        # searching for a literal is fastest, and most files contain none of them
        if start.literal in text
        for line in _matching_lines(text, each, start, len(text) - tail, breaks)
    }
    return sorted(found, key=lambda each: (each[0], each[1].name))


def _variants(content: bytes) -> Iterator[tuple[bytes, Sequence[int]]]:
    r"""Yield the texts to search: with \n for every line break, and without line breaks.

    If the content has NUL bytes, one is without them: this covers UTF-16 and UTF-32 without a byte
    order mark. If it is mail in quoted-printable, one has its words joined.
    """
    for text in (content, content.translate(None, b"\0")) if b"\0" in content else (content,):
        unified = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in text else text
        yield unified, ()
        if _SOFT_BREAK in unified and any(map(unified[:_HEADERS].__contains__, _MAIL)):
            parts = unified.split(_SOFT_BREAK)
            yield b"".join(parts), tuple(accumulate(map(len, parts[:-1])))


def _matching_lines(
    content: bytes, each: CompiledRule, begun: CompiledStart, limit: int, breaks: Sequence[int]
) -> Iterator[int]:
    """Yield each line with a match before `limit` once, at its first, unless a pragma allows it."""
    line, line_start, line_end, position = 1, 0, 0, 0
    while (match := begun.pattern.search(content, position)) and match.start() < limit:
        start = match.start()
        if not each.matches_before(content, start, begun.head):
            position = start + 1  # the next match may begin inside this one
            continue
        before, line_start = line_start, max(line_end, content.rfind(b"\n", line_end, start) + 1)
        line += content.count(b"\n", before, line_start)
        end = content.find(b"\n", match.end())
        line_end = position = end if end >= 0 else len(content)
        if content.find(PRAGMA, line_start, line_end) < 0:
            yield line + bisect_right(breaks, start)


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
    """Yield the texts to search.

    UTF-16 or UTF-32 with a byte order mark as UTF-8, then the bytes as git stores them.

    The mark may be wrong, so the bytes themselves are always included.
    """
    for mark, encoding in _BYTE_ORDER_MARKS.items():
        if content.startswith(mark):
            yield content[len(mark) :].decode(encoding, "replace").encode("utf-8", "replace")
            break
    # nothing tracked is in a folder of that name, but anyone may commit a file called MERGE_MSG
    folders, _, name = file.rpartition("/")
    yield (
        _strip_git_comments(content)
        if name in _MESSAGES and ".git" in folders.split("/")
        else content
    )


def _strip_git_comments(message: bytes) -> bytes:
    """Remove what git itself removes from a commit message.

    The scissors line and everything that git wrote below.

    Git does so for a message that an editor showed, with a diff (`commit -v`) or with
    `commit.cleanup=scissors`; it tells hooks by GIT_EDITOR that there was no editor. What it writes
    stands at the end: in any other message these are its comments, and scissors above them were in
    the message before, and stay in it.
    """
    if os.environ.get("GIT_EDITOR") == ":":
        return message
    last_line = message.rstrip(b"\r\n").rpartition(b"\n")[2]
    for cut in _SCISSORS.finditer(message):
        is_diff = message.startswith(b"diff --", cut.end()) and not last_line.startswith(cut[1])
        if is_diff or cut.end() == len(message):
            return message[: cut.start()]
    return message


def _scan_pieces(
    file: str, chunk: bytes, descriptor: int, rules: Sequence[CompiledRule]
) -> Iterator[Match]:
    """Scan a large file in pieces of whole lines.

    A line larger than a chunk in pieces that overlap.
    """
    lines, rest, reported = 0, b"", set()
    while chunk:
        content = rest + chunk
        chunk = _read_chunk(descriptor)
        end = _find_last_line_end(content) if chunk else len(content)
        piece = content[:end] if end else content
        for line, rule in find_matches(piece, rules, 0 if end else _OVERLAP // 8):
            if (lines + line, rule.name) not in reported:
                reported.add((lines + line, rule.name))
                yield Match(file, lines + line, rule)
        lines += _count_lines(piece)
        rest = content[end:] if end else content[-_OVERLAP:]


def _find_last_line_end(content: bytes) -> int:
    r"""Return where the last line begins, 0 if there is one line; never between \r and \n."""
    return content.rfind(b"\n") + 1 or content.rfind(b"\r", 0, -4) + 1


def _count_lines(content: bytes) -> int:
    text = content.translate(None, b"\0") if b"\0" in content else content
    return text.count(b"\n") + (text.count(b"\r") - text.count(b"\r\n") if b"\r" in text else 0)
