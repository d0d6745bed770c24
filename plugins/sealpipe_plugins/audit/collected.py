"""Verify the lines of many audit logs in one file, as a webhook's receiver has stored them.

Each chain is verified by itself. The order of lines does not matter, and a line that arrived twice
counts once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from sealpipe_plugins.audit.chain import FIRST_PREV, MAX_LINE, Link, parse_line

_MAX_FINDINGS: Final = 1000


class _Line(NamedTuple):
    """What is kept of a line: where it stands in the file, and what chains it."""

    number: int
    prev: str
    mac: str


@dataclass
class Chain:
    """The lines of one log, by their number in it. `first` and `last` are its times in the file."""

    machine: str
    stream: str
    first: str = ""
    last: str = ""
    lines: dict[int, _Line] = field(default_factory=dict)

    @property
    def head(self) -> str:
        """The last line's `seq:mac`."""
        seq = max(self.lines)
        return f"{seq}:{self.lines[seq].mac}"


@dataclass
class Verification:
    """The result.

    `findings` are breaks of a chain, each with the number of its line in the file; `repeated` is
    the number of lines that the file has once more.
    """

    keyed: bool
    lines: int = 0
    repeated: int = 0
    chains: dict[str, Chain] = field(default_factory=dict)
    findings: list[tuple[int, str]] = field(default_factory=list)

    def add_finding(self, number: int, what: str) -> None:
        """Add a break of a chain, unless there are too many."""
        if len(self.findings) < _MAX_FINDINGS:
            self.findings.append((number, what))


def verify(file: Path, key: bytes | None, head: str | None = None) -> Verification:
    """Verify each chain, and that one of them contains `head`, if given. Raises OSError."""
    result = Verification(key is not None)
    with file.open("rb") as stream:
        for number, line in _read_lines(stream):
            if line:
                result.lines += 1
                _add_line(result, number, line, key)
    for chain in result.chains.values():
        for number, what in _find_breaks(chain):
            result.add_finding(number, f"{what}, in the chain {chain.stream} of {chain.machine}")
    if head is not None and not any(_contains(each, head) for each in result.chains.values()):
        result.add_finding(result.lines, f"and all others do not hold {head}")
    result.findings.sort()
    return result


def _read_lines(stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    number = 0
    while line := stream.readline(4 * MAX_LINE):
        number += 1
        yield number, line.rstrip(b"\r\n")


def _add_line(result: Verification, number: int, line: bytes, key: bytes | None) -> None:
    link = parse_line(line)
    if link is None:
        result.add_finding(number, "is not a line of an audit log: it was changed, cut or added")
        return
    if not link.is_valid(key):
        changed = "was changed, or written under another key" if key else "was changed"
        result.add_finding(number, f"{changed}, after sealpipe wrote it")
        return
    name = _read_text(link, "stream")
    chain = result.chains.setdefault(name, Chain(_read_text(link, "machine"), name))
    previous = chain.lines.get(link.seq)
    if previous is None:
        chain.lines[link.seq] = _Line(number, link.prev, link.mac)
    elif previous.mac == link.mac:
        result.repeated += 1
    else:
        result.add_finding(
            number,
            f"and line {previous.number} are both number {link.seq} of the chain {name} of "
            f"{chain.machine}: its log was cut off and continued",
        )
    time = _read_text(link, "time")
    chain.first, chain.last = min(chain.first or time, time), max(chain.last, time)


def _read_text(link: Link, name: str) -> str:
    value = link.members.get(name)
    return value if isinstance(value, str) else ""


def _find_breaks(chain: Chain) -> Iterator[tuple[int, str]]:
    seq_before, mac_before = 0, FIRST_PREV
    for seq, line in sorted(chain.lines.items()):
        if seq > seq_before + 1:
            missing = seq - seq_before - 1
            yield line.number, f"comes after {missing} line{'s' if missing > 1 else ''} not here"
        elif line.prev != mac_before:
            yield line.number, "does not follow the line before it, which was replaced"
        seq_before, mac_before = seq, line.mac


def _contains(chain: Chain, head: str) -> bool:
    seq, _, mac = head.partition(":")
    line = chain.lines.get(int(seq)) if seq.isdecimal() and len(seq) < 20 else None
    return line is not None and line.mac == mac
