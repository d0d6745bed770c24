"""With a system call that fails: the old file or the new one, whole, and no litter.

Killed at one: tests/unit/core.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from plugins.local.putting import Putting
from sealpipe.plugin import Mode
from support.parts import ROOT
from support.strace import Point, failing, first, only, points, tracing

MATTER = (
    "mkdir", "openat", "fchmod", "chmod", "flock", "write", "fsync", "linkat", "rename", "renameat",
    "renameat2", "unlink", "exit_group",
)  # fmt: skip
"""The calls that change something (an openat that makes no file does not), and the last one of
all.
"""


@pytest.fixture(scope="module", autouse=True)
def code(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A copy of the code: whoever edits a module meanwhile changes how many calls its import
    makes.
    """
    copy = tmp_path_factory.mktemp("code")
    for name in ("core", "plugins", "tests/support", "tests/plugins/local"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Putting, "code", [copy / "core", copy / "plugins", copy / "tests"])
        yield


class Case(NamedTuple):
    """A sink and a mode, what is there before (by path in the place) and after."""

    sink: str
    mode: Mode
    values: Mapping[str, str]
    before: Mapping[str, str]
    after: Mapping[str, str]


TARGET = "target"
CASES = {
    "file, create": Case("file", "create", {"K": "n" * 9000}, {}, {TARGET: "n" * 9000}),
    "file, replace": Case("file", "replace", {"K": "new"}, {TARGET: "old"}, {TARGET: "new"}),
    "dotenv, merge": Case(
        "dotenv", "merge", {"K": "new"}, {TARGET: "A=1\nK=old\n"}, {TARGET: "A=1\nK=new\n"}
    ),
}


class Place:
    """A folder with what is there before."""

    def __init__(self, root: Path, case: Case) -> None:
        self.case, self.root, self.here = case, root, root / "here"
        self.here.mkdir(parents=True)
        for name, text in case.before.items():
            (self.here / name).write_text(text)
            (self.here / name).chmod(0o600)
        self.target = self.here / TARGET

    def run(self, under: list[str]) -> tuple[int, str]:
        putting = Putting(self.root, self.case.sink, self.case.mode, under=under)
        with suppress(BrokenPipeError):
            putting.tell(self.target, self.case.values)
        return putting.ended()

    def files(self) -> dict[str, str]:
        return {
            str(path.relative_to(self.here)): path.read_text()
            for path in self.here.rglob("*")
            if path.is_file()
        }


def traced(place: Place) -> list[Point]:
    """The calls of an undisturbed run, from when it is told what to store."""
    log = place.root / "trace"
    # Once before: who runs it first compiles modules, too, and makes more calls.
    assert Place(place.root / "before", place.case).run([]) == (0, "stored")
    assert place.run(tracing(log)) == (0, "stored")
    found = only(points(log, str(place.target)), MATTER)
    return [
        point
        for point in found
        if point.name != "openat" or "O_TMPFILE" in point.text or "O_CREAT" in point.text
    ]


FAULTS = {
    "ENOSPC": ("write", "n", "PluginError: the disk has no room"),
    "EACCES": ("openat", "O_TMPFILE", "AccessDeniedError: "),
    "EROFS": ("openat", "O_TMPFILE", "PluginError: the file system of file:"),
    "EIO": ("fsync", "", "PluginError: file:"),
}


@pytest.mark.parametrize("error", FAULTS)
@pytest.mark.parametrize("name", ["file, create", "file, replace"])
def test_a_failing_system_call_is_reported_and_changes_nothing(
    name: str, error: str, tmp_path: Path
) -> None:
    call, showing, said = FAULTS[error]
    found = traced(Place(tmp_path / "traced", CASES[name]))
    point = first(found, call,
        after=first(found, "openat", showing="O_TMPFILE") if call != "openat" else None,
                  showing=showing)  # fmt: skip
    place = Place(tmp_path / "failing", CASES[name])
    code, told = place.run(failing(point, error, place.root / "log"))
    assert (code, told[: len(said)]) == (0, said)
    assert told.endswith(")"), "and it says what to do"
    assert "(" in told
    assert place.files() == dict(place.case.before)


@pytest.mark.parametrize("name", ["file, create", "file, replace", "dotenv, merge"])
def test_a_file_system_without_nameless_files_does_too(name: str, tmp_path: Path) -> None:
    found = traced(Place(tmp_path / "traced", CASES[name]))
    place = Place(tmp_path / "failing", CASES[name])
    point = first(found, "openat", showing="O_TMPFILE")
    assert place.run(failing(point, "EOPNOTSUPP", place.root / "log")) == (0, "stored")
    assert place.files() == dict(place.case.after)


def test_a_folder_that_cannot_be_locked_is_a_refusal_to_replace(tmp_path: Path) -> None:
    place = Place(tmp_path, CASES["dotenv, merge"])
    found = first(traced(Place(tmp_path / "traced", place.case)), "flock")
    _, told = place.run(failing(found, "ENOLCK", tmp_path / "log"))
    assert told.startswith("UnsupportedError: the folder of dotenv:")
    assert "cannot be locked" in told
    assert place.files() == dict(place.case.before)


@pytest.mark.parametrize("umask", [0, 0o277])
def test_the_umask_opens_nothing_and_closes_nothing(umask: int, tmp_path: Path) -> None:
    for sink, name in (("file", "one"), ("dir", "some"), ("dotenv", "env")):
        putting = Putting(tmp_path, sink, "create", umask=umask, warm=f"warm-{sink}")
        putting.tell(tmp_path / name, {"K": "v"})
        assert putting.ended() == (0, "stored")
    found = {
        path.relative_to(tmp_path): stat.S_IMODE(path.stat().st_mode)
        for path in tmp_path.rglob("*")
    }
    assert {os.fspath(path): mode for path,
        mode in found.items() if not os.fspath(path).startswith("warm")} == {
        "one": 0o600, "some": 0o700, "some/K": 0o600, "env": 0o600,
    }  # fmt: skip
