"""Commands under strace: killed at a chosen system call, with a call failing, or watched from
outside.

What is watched is every byte that a process and its children write, send, execute or leave on disk.
What it reads, and what it was started with, came from its user; all other strings that it hands to
the kernel are kept. Bytes could also leave by ways that show no string: those are refused.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from support.commands import SEALPIPE, must_be_whole
from support.parts import program
from support.terminal import PATIENCE, Done, Terminal


class Tracer(tuple[str, ...]):
    """Words to put before a command, or to attach to one that has been forked."""

    __slots__ = ()


@dataclass(frozen=True)
class Point:
    """The `number`th call of `name` in a process, counted from 1.

    `text` is what strace showed of it.
    """

    name: str
    number: int
    text: str = ""

    def __str__(self) -> str:
        return f"{self.name} {self.number}"


def killing(point: Point, log: Path, signal: str = "SIGKILL") -> Tracer:
    """Words to put before a command: it gets the signal as it enters that call."""
    return injecting([(point, f"signal={signal}")], log)


def failing(call: str | Point, error: str, log: Path) -> Tracer:
    """Words to put before a command: that call (or every one of that name) fails with that
    error.
    """
    return injecting([(call, f"error={error}")], log)


def injecting(what: Iterable[tuple[str | Point, str]], log: Path) -> Tracer:
    """Words to put before a command: several calls of different names, each with what strace is to
    do to it.
    """
    words = [program("strace"), "-f", "-qq", "-o", str(log)]
    names = []
    for call, action in what:
        name, when = (call.name, str(call.number)) if isinstance(call, Point) else (call, "1+")
        names.append(name)
        words += ["-e", f"inject={name}:{action}:when={when}"]
    return Tracer([*words, "-e", f"trace={','.join(names)}"])


def tracing(log: Path) -> Tracer:
    """Words to put before a command: every call is written to `log`."""
    return Tracer([program("strace"), "-f", "-qq", "-s", "200", "-o", str(log)])


_CALL = re.compile(r"^\d+\s+(?:\[pid\s+\d+\]\s+)?([a-z_0-9]+)\((.*)$")


def points(log: Path, since: str) -> list[Point]:
    """The calls of a traced command from the first that mentions `since` to the last."""
    _need_any_memory()
    counts: Counter[str] = Counter()
    found: list[Point] = []
    for line in log.read_text(errors="backslashreplace").splitlines():
        match = _CALL.match(line)
        if match is None or "resumed>" in line:
            continue
        name = match.group(1)
        counts[name] += 1
        if found or since in line:
            found.append(Point(name, counts[name], match.group(2)))
    return found


def first(
    found: Sequence[Point], name: str, *, after: str | Point | None = None, showing: str = ""
) -> Point:
    """The first call of that name after another one, with something in what strace showed of it."""
    passed = after is None
    for point in found:
        if passed and point.name == name and showing in point.text:
            return point
        passed = passed or after in (point, point.name)
    raise AssertionError(f"no {name} after {after}")


def only(found: Sequence[Point], names: Iterable[str]) -> list[Point]:
    wanted = set(names)
    return [point for point in found if point.name in wanted]


WRITING = frozenset(
    ["write", "writev", "pwrite64", "pwritev", "pwritev2", "sendto", "sendmsg", "sendmmsg"]
)
SILENT = frozenset(
    ["sendfile", "splice", "vmsplice", "copy_file_range", "io_uring_setup", "process_vm_writev"]
)
"""Ways for bytes to leave that show none of them: none of our processes has a use for them."""
TELLING = [
    "add_key",
    "keyctl",
    "prctl",
    "memfd_create",
    "setxattr",
    "fsetxattr",
    "lsetxattr",
    "mmap",
    "fsync",
]

JOURNAL_INDEX = ("-shm>", r"\x2d\x73\x68\x6d>")
_WHOLE = ("-v", "-xx", "-yy", "-s", "10000000")
"""Every string to its end, in hexadecimal, and what each descriptor is."""

CALL = re.compile(r"(\d+) +(\w+)\((.*)", re.DOTALL)
RESUMED = re.compile(r"(\d+) +<\.\.\. \w+ resumed>(.*)", re.DOTALL)
UNFINISHED = " <unfinished ...>"
STRING = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
MADE = re.compile(r"O_(?:CREAT|TMPFILE)[^,]*, (0\d*)")
TARGET = re.compile(r"(\d+)<([^>]*)>")


@dataclass
class Watched:
    """What was seen. `streams` are the bytes by where they went, `words` all other strings with
    their call.
    """

    done: Done
    streams: dict[str, bytearray] = field(default_factory=dict)
    words: list[tuple[str, bytes]] = field(default_factory=list)
    executed: list[list[bytes]] = field(default_factory=list)
    drawn: list[bytes] = field(default_factory=list)
    """What the kernel's random generator gave."""
    created: list[tuple[str, int]] = field(default_factory=list)
    """Files that were made, each with the mode that it was made with."""
    left: dict[str, bytes] = field(default_factory=dict)
    """Files that are there afterwards and were not before."""

    def places(self) -> Iterator[tuple[str, bytes]]:
        """Everything that could hold a secret, with where it is."""
        for name, stream in self.streams.items():
            yield name, bytes(stream)
        for name, word in self.words:
            yield name, word
        for name, content in self.left.items():
            yield f"left in {name}", content
            yield "left as a name", name.encode()


def watch(
    user: Terminal,
    command: Sequence[str],
    *,
    stdin: bytes = b"",
    environ: Mapping[str, str | None] | None = None,
    stdout: int = subprocess.PIPE,
    inject: str | None = None,
    interrupt: Callable[[], object] | None = None,
) -> Watched:
    """Run a command to its end.

    `inject` makes system calls fail (see strace); once `interrupt` returns, SIGTERM.

    A start of `sealpipe` itself is in what is watched only if it is whole (`support.commands`).
    """
    _need_any_memory()
    before = set(_files(user))
    trace = user.home.parent / "trace"
    calls = ",".join(["%file", "%process", "%network", "getrandom", *WRITING, *SILENT, *TELLING])
    how = ["-e", f"inject={inject}"] if inject else []
    tracer = Tracer(
        [program("strace"), "-f", "-qq", *how, *_WHOLE, "-o", str(trace), "-e", f"trace={calls}"]
    )
    changed = user.with_environ(environ or {})
    is_whole = (
        tuple(command[: len(SEALPIPE)]) != SEALPIPE
        or must_be_whole(changed)
        or stdout != subprocess.PIPE
        or interrupt
    )
    if is_whole:
        done = _start(tracer, user, command, stdin, changed, stdout, interrupt)
    else:
        with _umask(0):
            done = user.sealpipe(
                *command[len(SEALPIPE) :], stdin=stdin, tracer=tracer, **(environ or {})
            )
    seen = Watched(done)
    for number, (name, rest) in enumerate(_calls(trace.read_text())):
        _note(seen, name, rest, first=bool(is_whole) and number == 0)
    root = f"{user.home.parent}/"
    seen.streams = {name.removeprefix(root): stream for name, stream in seen.streams.items()}
    trace.unlink()
    seen.left = {name: _content(user.home.parent / name) for name in set(_files(user)) - before}
    assert "stdout" in seen.streams or not seen.done.out, "strace saw what we saw"
    return seen


def _need_any_memory() -> None:
    """Skip without CAP_SYS_PTRACE: of a process that protects its memory strace then shows
    addresses for texts.
    """
    found = re.search(r"^CapEff:\s+(\w+)$", Path("/proc/self/status").read_text(), re.MULTILINE)
    if found is None or not int(found[1], 16) >> 19 & 1:
        pytest.skip(
            "this user's strace cannot read what a sealpipe does, for it protects its memory"
        )


def _start(
    tracer: Tracer,
    user: Terminal,
    command: Sequence[str],
    stdin: bytes,
    environ: Mapping[str, str],
    stdout: int,
    interrupt: Callable[[], object] | None,
) -> Done:
    """Watch a command from its start."""
    # By itself strace stops every call; by a filter of the kernel only these. What is injected asks
    # for the former.
    how = [] if "-e" in tracer[:5] else ["--seccomp-bpf"]
    process = subprocess.Popen(
        [*tracer, *how, *command],
        stdin=subprocess.PIPE,
        stdout=stdout,
        stderr=subprocess.PIPE,
        env={**environ, "PYTHONDONTWRITEBYTECODE": "1"},
        cwd=user.here,
        umask=0,
    )
    if interrupt is not None:
        _feed(process, stdin)
        interrupt()
        (child,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(child), signal.SIGTERM)
    out, err = process.communicate(None if interrupt else stdin, timeout=PATIENCE)
    return Done(
        process.returncode, (out or b"").decode("utf-8", "replace"), err.decode("utf-8", "replace")
    )


@contextmanager
def _umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def _feed(process: subprocess.Popen[bytes], stdin: bytes) -> None:
    assert process.stdin
    with process.stdin as pipe:
        pipe.write(stdin)
    process.stdin = None


def _files(user: Terminal) -> Iterator[str]:
    for folder in (user.home, user.here, user.tmp):
        # Not rglob: some versions of it fail at a link whose target is longer than a name may be.
        for place, folders, names in os.walk(folder):
            links = [name for name in folders if (Path(place) / name).is_symlink()]
            yield from (
                str((Path(place) / name).relative_to(user.home.parent)) for name in names + links
            )


def _content(path: Path) -> bytes:
    return os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()


def _calls(trace: str) -> Iterator[tuple[str, str]]:
    """Each system call and all that was printed of it; one that another thread cut in two is put
    together.
    """
    begun: dict[str, tuple[str, str]] = {}
    for line in trace.splitlines():
        if resumed := RESUMED.fullmatch(line):
            name, rest = begun.pop(resumed[1])
            yield name, rest + resumed[2]
        elif call := CALL.fullmatch(line):
            if call[3].endswith(UNFINISHED):
                begun[call[1]] = call[2], call[3].removesuffix(UNFINISHED)
            else:
                yield call[2], call[3]
    yield from begun.values()  # cut off by the end


def _note(seen: Watched, name: str, rest: str, *, first: bool) -> None:
    assert name not in SILENT, f"{name} moves bytes that nobody sees"
    is_shared = name == "mmap" and "PROT_WRITE" in rest and "MAP_SHARED" in rest
    # The index of SQLite's journal has numbers of pages and checksums, no content.
    assert not is_shared or any(end in rest for end in JOURNAL_INDEX), "memory written into a file"
    strings = [bytes.fromhex(text.replace("\\x", "")) for text in STRING.findall(rest)]
    if name == "getrandom":
        seen.drawn += strings
    elif name in WRITING:
        seen.streams.setdefault(_target(rest), bytearray()).extend(b"".join(strings))
    elif name.startswith("recv") or (name == "execve" and first):
        return
    else:
        seen.words += [(name, word) for word in strings]
        if name == "execve":
            seen.executed.append(strings)
        elif made := MADE.search(rest):
            seen.created.append((os.fsdecode(strings[0]), int(made[1], 8)))


def _target(rest: str) -> str:
    found = TARGET.match(rest)
    if found is None:
        return "a closed descriptor"
    if found[1] in ("1", "2"):
        return {"1": "stdout", "2": "stderr"}[found[1]]
    where = re.sub(r"\\x([0-9a-f]{2})", lambda digits: chr(int(digits[1], 16)), found[2])
    return where if where.startswith(("/", "TCP")) else f"descriptor {found[1]}, {where}"
