"""Fakes of what the GitHub runner makes of a step's output: commands, masks, and the order of two
streams.

Commands and files: written from ActionCommand and FileCommandManager of the runner's published
source and CI-FACTS. The masker: from CI-FACTS and SecretMasker, ValueEncoders and HostContext;
where the two differ it hides less. The two streams: a port of how the runner and Azure's agent read
a step (ProcessInvoker: StartReadStream, ProcessOutput), a thread and a queue for each and one loop
that empties both. Which line is looked at first hangs on the scheduler, so each place where it may
be late can be made so.
"""

from __future__ import annotations

import base64
import json
import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import IO, NamedTuple
from urllib.parse import quote
from xml.sax.saxutils import escape

KNOWN = (
    "add-mask",
    "add-matcher",
    "add-path",
    "debug",
    "echo",
    "endgroup",
    "error",
    "group",
    "notice",
)
KNOWN += ("remove-matcher", "save-state", "set-env", "set-output", "stop-commands", "warning")
SUMMARY_LIMIT = 1024 * 1024
_DATA = (("\r", "%0D"), ("\n", "%0A"), ("%", "%25"))
_PROPERTY = (*_DATA[:2], (":", "%3A"), (",", "%2C"), _DATA[2])
_OLD = ((";", "%3B"), *_DATA[:2], ("]", "%5D"), _DATA[2])


class Command(NamedTuple):
    """A workflow command."""

    name: str
    properties: dict[str, str]
    data: str


def command(line: str) -> Command | None:
    """`::name a=b::data` after blanks, or `##[name a=b]data` anywhere; None where it is only a
    line.
    """
    new = re.match(r"\s*::(?P<info>.*?)::(?P<data>.*)\Z", line, re.DOTALL)
    if new:
        found = _command(new["info"], ",", new["data"], _PROPERTY, _DATA)
        if found:
            return found
    old = re.search(r"##\[(?P<info>[^\]]*)\](?P<data>.*)\Z", line, re.DOTALL)
    return _command(old["info"], ";", old["data"], _OLD, _OLD) if old else None


def _command(
    info: str,
    separator: str,
    data: str,
    inner: tuple[tuple[str, str], ...],
    outer: tuple[tuple[str, str], ...],
) -> Command | None:
    name, _, rest = info.partition(" ")
    if name.lower() not in KNOWN:
        return None
    pairs = [part.split("=", 1) for part in rest.strip().split(separator) if "=" in part]
    return Command(
        name.lower(),
        {key: _unescaped(value, inner) for key, value in pairs},
        _unescaped(data, outer),
    )


def _unescaped(text: str, table: tuple[tuple[str, str], ...]) -> str:
    for token, replacement in table:
        text = text.replace(replacement, token)
    return text


def pairs(text: str) -> list[tuple[str, str]]:
    """What GITHUB_OUTPUT or GITHUB_ENV says, in order.

    ValueError where the runner fails the step.
    """
    found: list[tuple[str, str]] = []
    rest = text.split("\n")
    if rest and not rest[-1]:
        rest.pop()
    lines = iter(rest)
    for line in lines:
        equals, heredoc = line.find("="), line.find("<<")
        if not line:
            continue
        if equals >= 0 and (heredoc < 0 or equals < heredoc):
            name, _, value = line.partition("=")
        elif heredoc >= 0:
            name, _, delimiter = line.partition("<<")
            held: list[str] = []
            if not name or not delimiter:
                raise ValueError(line)
            for inner in lines:
                if inner == delimiter:
                    break
                held.append(inner)
            else:
                raise ValueError(f"no {delimiter}")
            value = "\n".join(held)
        else:
            raise ValueError(line)
        found.append((name, value))
    return found


def read_lines(text: str) -> list[str]:
    """As .NET reads lines: CR, LF and CRLF each end one."""
    parts = re.split(r"\r\n|[\r\n]", text)
    return parts[:-1] if parts and not parts[-1] else parts


class Masker:
    """Every value that is to be hidden, in every form in which the runner knows it again."""

    def __init__(self) -> None:
        self.values: list[str] = []
        self._forms: dict[str, None] = {}

    def add(self, value: str) -> None:
        """Hide a value: whole, and each of its lines, trimmed."""
        if not value.strip():
            return
        self.values.append(value)
        for part in [value, *(line.strip() for line in re.split(r"\r\n|[\r\n]", value))]:
            if part:
                self._forms |= dict.fromkeys(form for form in _forms(part) if form)

    def __call__(self, text: str) -> str:
        """The text with every form hidden; what overlaps or touches is hidden as one."""
        spans = sorted((at, at + len(form)) for form in self._forms for at in _places(text, form))
        out, end = [], 0
        for start, stop in spans:
            if start > end or not out:
                out += [text[end:start], "***"]
                end = stop
            else:
                end = max(end, stop)
        return "".join([*out, text[end:]])


def _forms(value: str) -> Iterator[str]:
    data = value.encode()
    yield value
    for shift in range(min(3, len(data))):  # the same bytes behind 0, 2 or 1 others
        yield base64.b64encode(data[shift:]).decode()
    yield value.replace("'", "''")
    yield json.dumps(value, ensure_ascii=False)[1:-1]
    yield quote(value, safe="")
    yield escape(value, {'"': "&quot;", "'": "&apos;"})
    if len(value) > 8 and value.startswith('"') and value.endswith('"'):
        yield value[1:-1]


def _places(text: str, form: str) -> Iterator[int]:
    at = text.find(form)
    while at >= 0:
        yield at
        at = text.find(form, at + 1)


PATIENCE = 60


def read_github(line: str) -> str | None:
    """The value that a line masks, for GitHub's runner."""
    found = command(line)
    return found.data if found and found.name == "add-mask" else None


def read_azure(line: str) -> str | None:
    """The value that a line masks, for the agent of Azure Pipelines: the command may stand anywhere
    in it.
    """
    _, mark, value = line.partition("##vso[task.setsecret]")
    return value.replace("%0A", "\n").replace("%0D", "\r").replace("%AZP25", "%") if mark else None


class TwoReaders:
    """`late`: seconds that each line of stderr waits in its thread."""

    def __init__(self, late: float = 0, read: Callable[[str], str | None] = read_github) -> None:
        self.late, self._read = late, read
        self.log: list[str] = []
        """What everybody sees."""
        self.code = 0
        self.stalled = 0.0
        """The longest time, in seconds, that this got no turn on a busy machine."""
        self._mask = Masker()
        self._errors: SimpleQueue[str] = SimpleQueue()
        self._outputs: SimpleQueue[str] = SimpleQueue()
        self._arrived = threading.Event()

    def run(self, argv: Sequence[str], environ: Mapping[str, str], here: Path) -> TwoReaders:
        """Run it to its end. Returns itself."""
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environ,
            cwd=here,
        )
        assert process.stdout
        assert process.stderr
        readers = [
            threading.Thread(target=self._follow, args=(process.stdout, self._outputs, 0)),
            threading.Thread(target=self._follow, args=(process.stderr, self._errors, self.late)),
        ]
        for reader in readers:
            reader.start()
        turn = time.monotonic()
        while any(reader.is_alive() for reader in readers):
            self.stalled, turn = max(self.stalled, time.monotonic() - turn), time.monotonic()
            if self._arrived.wait(0.01):
                self._arrived.clear()
                self._empty()
        self._empty()
        self.code = process.wait(PATIENCE)
        return self

    def _follow(self, stream: IO[bytes], queue: SimpleQueue[str], late: float) -> None:
        with stream:
            for line in stream:
                time.sleep(late)
                queue.put(line.decode("utf-8", "replace").rstrip("\r\n"))
                self._arrived.set()

    def _empty(self) -> None:
        errors = _all(self._errors)
        for line in [*errors, *_all(self._outputs)]:
            value = self._read(line)
            if value is None:
                self.log.append(self._mask(line))
            else:
                self._mask.add(value)


def _all(queue: SimpleQueue[str]) -> list[str]:
    return [queue.get() for _ in range(queue.qsize())]
