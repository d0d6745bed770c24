"""Verify the lines of many audit logs in one file, as a webhook's receiver has stored them.

Each chain is verified by itself. The order of lines does not matter, and a line that arrived twice
counts once.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

from sealpipe_plugins.audit.chain import FIRST_PREV, MAX_LINE, parse_line, read_seq

_MAX_FINDINGS: Final = 1000
_MAX_NAME: Final = 100
"""Maximum characters that a finding shows of a name in a line that is not valid."""


class _Line(NamedTuple):
    """What is kept of a line: where it stands in the file, and what chains it."""

    number: int
    prev: str
    mac: str


@dataclass
class Chain:
    """The lines of one log, by their number in it. `first` and `last` are its times in the file.

    `machines` has the names in its lines, each with the first line of the file that has it: several
    if the machine was renamed, or if another one wrote in its name.
    """

    stream: str
    machines: dict[str, int] = field(default_factory=dict)
    first: str = ""
    last: str = ""
    lines: dict[int, _Line] = field(default_factory=dict)

    @property
    def machine(self) -> str:
        """The name of its machine; all of them, if there are several."""
        return ", ".join(sorted(self.machines))

    @property
    def head(self) -> str:
        """The last line's `seq:mac`."""
        seq = max(self.lines)
        return f"{seq}:{self.lines[seq].mac}"


@dataclass
class Verification:
    """The result.

    `findings` are breaks of a chain, `remarks` have a harmless cause; each with the number of its
    line in the file. `repeated` is the number of lines that the file has once more; `kinds` has the
    number of lines that say that they are under a key (True), and of those that do not.
    """

    keyed: bool
    lines: int = 0
    repeated: int = 0
    chains: dict[str, Chain] = field(default_factory=dict)
    findings: list[tuple[int, str]] = field(default_factory=list)
    remarks: list[tuple[int, str]] = field(default_factory=list)
    kinds: Counter[bool] = field(default_factory=Counter)

    def add_finding(self, number: int, what: str) -> None:
        """Add a break of a chain, unless there are too many."""
        if len(self.findings) < _MAX_FINDINGS:
            self.findings.append((number, what))


def verify(file: Path, key: bytes | None, head: str | None = None) -> Verification:
    """Verify each chain, and that one of them contains `head`, if given. Raises OSError."""
    result = Verification(key is not None)
    claimed: dict[str, set[int]] = defaultdict(set)
    with file.open("rb") as stream:
        for number, line in _read_lines(stream):
            if line:
                result.lines += 1
                _add_line(result, number, line, key, claimed)
    for chain in result.chains.values():
        result.remarks += _find_names(chain)
        for number, what in _find_breaks(chain, claimed[chain.stream]):
            result.add_finding(number, f"{what}, in the chain {chain.stream} of {chain.machine}")
    if head is not None and not any(_contains(each, head) for each in result.chains.values()):
        result.add_finding(result.lines, f"and all others do not hold {head}")
    result.findings.sort()
    result.remarks = sorted(result.remarks)[:_MAX_FINDINGS]
    return result


def _read_lines(stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    number = 0
    while line := stream.readline(4 * MAX_LINE):
        number += 1
        yield number, line.rstrip(b"\r\n")


def _add_line(
    result: Verification,
    number: int,
    line: bytes,
    key: bytes | None,
    claimed: Mapping[str, set[int]],
) -> None:
    """Add a line to its chain; one that is not valid to what is `claimed` of a chain's numbers."""
    link = parse_line(line)
    if link is not None:
        result.kinds[link.is_keyed] += 1
    fault = (
        "is not a line of an audit log: it was changed, cut or added"
        if link is None
        else link.find_fault(key)
    )
    if link is None or fault:
        members = _read_members(line) if link is None else link.members
        name, seq = _read_text(members, "stream"), read_seq(members)
        if seq is not None:
            claimed[name].add(seq)
            machine = _read_text(members, "machine")[:_MAX_NAME]
            fault += f"; it says that it is number {seq} of the chain {name[:_MAX_NAME]}"
            fault += f" of {machine}" if machine else ""
        result.add_finding(number, fault)
        return
    name = _read_text(link.members, "stream")
    chain = result.chains.setdefault(name, Chain(name))
    chain.machines.setdefault(_read_text(link.members, "machine"), number)
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
    time = _read_text(link.members, "time")
    chain.first, chain.last = min(chain.first or time, time), max(chain.last, time)


def _read_members(line: bytes) -> Mapping[str, Any]:
    """Return the members of what is no line of a chain; empty if there are none."""
    try:
        members = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return members if isinstance(members, dict) else {}


def _read_text(members: Mapping[str, Any], name: str) -> str:
    value = members.get(name)
    return value if isinstance(value, str) else ""


def _find_names(chain: Chain) -> Iterator[tuple[int, str]]:
    (first, _), *others = chain.machines.items()
    for other, number in others:
        what = (
            f"names the machine {other}, other lines of the chain {chain.stream} name {first}: "
            "it was renamed, or one wrote in the name of the other"
        )
        yield number, what


def _find_breaks(chain: Chain, claimed: Set[int]) -> Iterator[tuple[int, str]]:
    """Find what is missing or replaced. What is only changed (`claimed`) is not missing."""
    changed = sorted(claimed)
    seq_before, mac_before = 0, FIRST_PREV
    for seq, line in sorted(chain.lines.items()):
        if seq > seq_before + 1:
            here = bisect_left(changed, seq) - bisect_right(changed, seq_before)
            missing = seq - seq_before - 1 - here
            if missing:
                lines = "line" if missing == 1 else "lines"
                yield line.number, f"comes after {missing} {lines} not here"
        elif line.prev != mac_before:
            yield line.number, "does not follow the line before it, which was replaced"
        seq_before, mac_before = seq, line.mac


def _contains(chain: Chain, head: str) -> bool:
    seq, _, mac = head.partition(":")
    line = chain.lines.get(int(seq)) if seq.isdecimal() and len(seq) < 20 else None
    return line is not None and line.mac == mac
