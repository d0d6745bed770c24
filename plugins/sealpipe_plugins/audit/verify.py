"""Verify an audit log: find lines that were changed, removed, added or truncated."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final

from sealpipe_plugins.audit.chain import FIRST_PREV, MAX_LINE, Link, parse_line, sha256_hex

_MAX_FINDINGS: Final = 1000
"""Maximum number of findings and of remarks."""


@dataclass
class Verification:
    """The result.

    `findings` are breaks of the chain, `remarks` have a harmless cause; each with its line number.

    `head` is the last line's `seq:mac`, empty if there is none. `kinds` has the number of lines
    that say that they are under a key (True), and of those that do not.
    """

    lines: int = 0
    head: str = ""
    keyed: bool = False
    kinds: Counter[bool] = field(default_factory=Counter)
    findings: list[tuple[int, str]] = field(default_factory=list)
    remarks: list[tuple[int, str]] = field(default_factory=list)


def verify(file: Path, key: bytes | None, head: str | None = None) -> Verification:
    """Verify the whole chain, and that it still contains `head`, if given. Raises OSError."""
    with file.open("rb") as stream:
        verifier = _Verifier(key, head)
        verifier.run(stream)
    return verifier.result


class _Verifier:
    def __init__(self, key: bytes | None, head: str | None) -> None:
        self.result = Verification(keyed=key is not None)
        self._key, self._head = key, head
        self._has_head = head is None
        self._seq, self._prev = 0, FIRST_PREV
        self._broken_line: tuple[int, str] | None = None

    def run(self, stream: BinaryIO) -> None:
        number = 0
        while line := stream.readline(4 * MAX_LINE):
            number += 1
            link = parse_line(line.removesuffix(b"\n"))
            if link is not None:
                self._check_link(number, link)
            elif line.endswith(b"\n") or len(line) >= 4 * MAX_LINE:
                self._report_broken_line()
                self._broken_line = number, sha256_hex(line.removesuffix(b"\n"))
            else:
                self._add_remark(
                    number, "is truncated: its writer was stopped, and nothing was written since"
                )
        self.result.lines = number
        self._report_broken_line()
        if not self._has_head:
            self._report_missing_head(number)

    def _check_link(self, number: int, link: Link) -> None:
        self._resolve_torn(number, link)
        self.result.kinds[link.is_keyed] += 1
        if fault := link.find_fault(self._key):
            self._add_finding(number, fault)
        if link.seq > self._seq + 1:
            missing = link.seq - self._seq - 1
            self._add_finding(
                number, f"comes after {missing} line{'s' if missing > 1 else ''} that were removed"
            )
        elif link.seq <= self._seq:
            self._add_finding(number, "is duplicated or out of order")
        elif link.prev != self._prev:
            self._add_finding(
                number, "does not follow the line before it, which was changed or replaced"
            )
        self._seq, self._prev = link.seq, link.mac
        self.result.head = link.head
        self._has_head = self._has_head or link.head == self._head

    def _resolve_torn(self, number: int, link: Link) -> None:
        """Compare a broken line with the truncated line that the next link records.

        Any other was inserted.
        """
        torn = link.members.get("torn")
        if torn is not None and self._broken_line is not None and self._broken_line[1] == torn:
            self._add_remark(
                self._broken_line[0],
                f"was truncated while it was written, as line {number} records",
            )
            self._broken_line = torn = None
        self._report_broken_line()
        if torn is not None:
            self._add_finding(number, "records a truncated line before it, which was removed")

    def _report_broken_line(self) -> None:
        """Report a broken line that the next link does not record."""
        if self._broken_line is not None:
            self._add_finding(
                self._broken_line[0], "is not a line of the chain: it was changed or added"
            )
        self._broken_line = None

    def _report_missing_head(self, number: int) -> None:
        seq, _, mac = (self._head or "").partition(":")
        if seq.isdecimal() and int(seq) > self._seq:
            missing = int(seq) - self._seq
            self._add_finding(
                number + 1,
                f"and what followed is missing: {missing} line{'s' if missing > 1 else ''} cut off",
            )
        else:
            self._add_finding(
                number,
                f"and those before it do not hold {seq[:20]}:{mac[:64]}: this is a different chain",
            )

    def _add_finding(self, number: int, what: str) -> None:
        if len(self.result.findings) < _MAX_FINDINGS:
            self.result.findings.append((number, what))

    def _add_remark(self, number: int, what: str) -> None:
        if len(self.result.remarks) < _MAX_FINDINGS:
            self.result.remarks.append((number, what))
