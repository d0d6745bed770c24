"""Reading an audit log from its first line to its last: what was changed, removed, added or cut off, and where."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final

from sealpipe_plugins.audit.chain import LONGEST, START, Link, digest, parsed

_SHOWN: Final = 1000
"""Findings that are told one by one."""


@dataclass
class Verified:
    """What a log is like. `findings` are breaks of the chain, `remarks` what has an innocent reason; each with a line.

    `head` is the last line's `seq:mac`, empty where there is none.
    """

    lines: int = 0
    head: str = ""
    keyed: bool = False
    findings: list[tuple[int, str]] = field(default_factory=list)
    remarks: list[tuple[int, str]] = field(default_factory=list)


def verify(file: Path, key: bytes | None, head: str | None = None) -> Verified:
    """Walk the whole chain. `head` is one that was told before: whether it is still in there. Raises OSError."""
    with file.open("rb") as stream:
        walk = _Walk(key, head)
        walk.run(stream)
    return walk.seen


class _Walk:
    def __init__(self, key: bytes | None, head: str | None) -> None:
        self.seen = Verified(keyed=key is not None)
        self._key, self._head = key, head
        self._found_head = head is None
        self._seq, self._prev = 0, START
        self._loose: tuple[int, str] | None = None

    def run(self, stream: BinaryIO) -> None:
        number = 0
        while line := stream.readline(4 * LONGEST):
            number += 1
            link = parsed(line.removesuffix(b"\n"))
            if link is not None:
                self._take(number, link)
            elif line.endswith(b"\n") or len(line) >= 4 * LONGEST:
                self._settle_loose()
                self._loose = number, digest(line.removesuffix(b"\n"))
            else:
                self._remark(number, "is cut off: who wrote it was stopped, and nobody has written since")
        self.seen.lines = number
        self._settle_loose()
        if not self._found_head:
            self._miss_head(number)

    def _take(self, number: int, link: Link) -> None:
        self._settle(number, link)
        if not link.holds(self._key):
            what = "was changed, or written under another key" if self._key else "was changed"
            self._find(number, what)
        if link.seq > self._seq + 1:
            missing = link.seq - self._seq - 1
            self._find(number, f"comes after {missing} line{'s' if missing > 1 else ''} that were removed")
        elif link.seq <= self._seq:
            self._find(number, "is there twice, or in another place than it was written")
        elif link.prev != self._prev:
            self._find(number, "does not follow the line before it: that one was changed or put in its place")
        self._seq, self._prev = link.seq, link.mac
        self.seen.head = link.head
        self._found_head = self._found_head or link.head == self._head

    def _settle(self, number: int, link: Link) -> None:
        """What came before that is no line: the next one notes it where it was cut off, else somebody put it there."""
        torn = link.members.get("torn")
        if torn is not None and self._loose is not None and self._loose[1] == torn:
            self._remark(self._loose[0], f"was cut off while it was written, as line {number} notes")
            self._loose = torn = None
        self._settle_loose()
        if torn is not None:
            self._find(number, "notes a line before it that was cut off, and that is not there: it was removed")

    def _settle_loose(self) -> None:
        """What is no line, and of which the next one says nothing."""
        if self._loose is not None:
            self._find(self._loose[0], "is no line of the chain: it was changed, or added")
        self._loose = None

    def _miss_head(self, number: int) -> None:
        seq, _, mac = (self._head or "").partition(":")
        if seq.isdecimal() and int(seq) > self._seq:
            missing = int(seq) - self._seq
            self._find(number + 1, f"and what followed is missing: {missing} line{'s' if missing > 1 else ''} cut off")
        else:
            self._find(number, f"and those before it do not hold {seq[:20]}:{mac[:64]}: the chain is another one")

    def _find(self, number: int, what: str) -> None:
        if len(self.seen.findings) < _SHOWN:
            self.seen.findings.append((number, what))

    def _remark(self, number: int, what: str) -> None:
        if len(self.seen.remarks) < _SHOWN:
            self.seen.remarks.append((number, what))
