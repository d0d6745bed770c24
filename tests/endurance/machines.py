"""Both commands of the README on strangers' machines, each an empty Debian of its own: the table is
printed.

    python tests/endurance/machines.py CLONE [--only NAME ...] [--first] [--tree 3.12=FOLDER]
        [--folder FOLDER]

CLONE is a clone of the project; MACHINES has the names. Needs root, mmdebstrap and a Debian that
this machine's packages come from. The machine's pip configuration, certificates and proxies are
taken over; nothing else is, no compiler either. The reader's home and clone have a space in their
paths. pip runs as on any machine; what it has installed then runs in the surroundings that the
table names. A Python that Debian does not have comes from a folder that `python --prefix` installed
(`--tree`; by default the newest of pyenv). Ends with exit code 1 if a command or a test failed.
`--first` runs the first command only, and prints what a newcomer sees: how many packages are
fetched, how large they are, and what the program prints.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from configparser import ConfigParser
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

SUITES = {"3.11": "bookworm", "3.12": "bookworm", "3.13": "sid", "3.14": "sid", "3.15": "sid"}
"""Where each Python runs.

Debian has had no 3.12: it is a tree, on the base of 3.11 for its libraries.
"""
PACKAGES = {
    "bookworm": "python3.11-venv,python3-distutils",
    "sid": "python3.13-venv,python3.14-venv,python3.15-venv",
}
TAKEN = re.compile(
    r"PIP_|SSL_|(REQUESTS|CURL)_CA_BUNDLE$|GIT_SSL_|((HTTPS?|NO|ALL)_PROXY)$", re.IGNORECASE
)
"""Variables that are taken over."""
PIP_FILES = {
    "/etc/pip.conf": "/etc/pip.conf",
    "~/.config/pip/pip.conf": "/etc/xdg/pip/pip.conf",
    "~/.pip/pip.conf": "/etc/xdg/pip/pip.conf",
}
"""pip's configuration, and where it is for every user."""
FILES = ("/etc/resolv.conf", "/etc/hosts", "/etc/ssl/certs/ca-certificates.crt")
HOMES = {"ann": "/home/ann lee", "root": "/root"}
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Machine(NamedTuple):
    """What is unlike on it. `docker`: a client, in /usr/local/bin alone.

    `setup` is shell for its root.

    `apart`: its only network is a loopback without IPv6. `under` is what the program is started by.
    """

    python: str = "3.11"
    user: str = "ann"
    docker: bool = False
    setup: str = ""
    environ: Mapping[str, str] = {}
    umask: str = "022"
    apart: bool = False
    under: str = ""


PORTS = (
    "for port in 1 9 8765; do python3 -m http.server --bind 127.0.0.1 $port >/dev/null 2>&1 & "
    "done\n"
)
"""It is no service of ours that answers there.

Tests once believed that nobody listens on 1 and 9.
"""
PROXY = dict.fromkeys(
    ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "https_proxy", "http_proxy"], "http://127.0.0.1:9"
)
ZONE = {"TZ": "Asia/Kathmandu"}
LOCALE = {"LC_ALL": "C"}
ONE_CORE = "taskset -c 0"
MACHINES: Mapping[str, Machine] = {
    "user": Machine(),
    "root": Machine(user="root"),
    "docker": Machine(docker=True),
    "ports": Machine(setup=PORTS),
    "locale": Machine(environ=LOCALE),
    "umask": Machine(umask="077"),
    "proxy": Machine(environ=PROXY),
    "zone": Machine(environ=ZONE),
    "no-ipv6": Machine(apart=True),
    "one-core": Machine(under=ONE_CORE),
    "all-at-once": Machine(
        docker=True,
        setup=PORTS,
        environ={**LOCALE, **PROXY, **ZONE},
        umask="077",
        apart=True,
        under=ONE_CORE,
    ),
    **{name: Machine(name) for name in SUITES},
}
LOOPBACK = """
import fcntl, pathlib, socket, struct
with socket.socket() as some:
    # SIOCSIFFLAGS: IFF_UP, IFF_RUNNING
    fcntl.ioctl(some, 0x8914, struct.pack("16sH14x", b"lo", 0x41))
switch = pathlib.Path("/proc/sys/net/ipv6/conf/all/disable_ipv6")
if switch.exists():
    switch.write_text("1")
"""
SIZES = {"bytes": 1e-6, "kB": 1e-3, "MB": 1.0, "GB": 1e3}


class Outcome(NamedTuple):
    """What one command did."""

    code: int
    seconds: float
    text: str

    @property
    def megabytes(self) -> float:
        """What pip fetched, as it says itself; files of a local index count, too."""
        fetched = re.findall(r"^ *Downloading \S+ \(([0-9.]+) (\w+)\)", self.text, re.MULTILINE)
        local = map(Path, re.findall(r"^ *Processing (/\S+\.(?:whl|gz))", self.text, re.MULTILINE))
        return sum(float(size) * SIZES[unit] for size, unit in fetched) + sum(
            file.stat().st_size * 1e-6 for file in local if file.exists()
        )

    @property
    def last(self) -> str:
        return (self.text.strip().splitlines() or [""])[-1].strip("= ")

    @property
    def packages(self) -> int:
        """How many packages pip installed, the project among them."""
        installed = re.findall(r"^Successfully installed (.+)$", self.text, re.MULTILINE)
        return sum(len(line.split()) for line in installed)

    def skips(self) -> list[tuple[str, int]]:
        """The reasons of skipped tests, with their number, most frequent first."""
        counted: Counter[str] = Counter()
        for number, reason in re.findall(
            r"^SKIPPED \[(\d+)\] [^ ]+: (.*)$", self.text, re.MULTILINE
        ):
            counted["../shared is not there" if "../shared" in reason else reason] += int(number)
        return counted.most_common()


def readme(clone: Path) -> list[str]:
    """The two commands of the README."""
    text = (clone / "README.md").read_text(encoding="utf-8")
    commands = re.findall(r"^pip install .* && (?:sealpipe rehearse|pytest)$", text, re.MULTILINE)
    assert len(commands) == 2, "README.md does not name its two commands"
    return [str(each) for each in commands]


def mirror() -> str:
    """Where this machine has its Debian packages from."""
    command = [
        "apt-get",
        "indextargets",
        "--format",
        "$(REPO_URI) $(ORIGIN) $(LABEL)",
        "Created-By: Packages",
    ]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return next(line.split()[0] for line in listed if line.endswith(" Debian Debian"))


def make_base(folder: Path, suite: str) -> Path:
    """An empty Debian of a suite with its Pythons and git; made once."""
    base = folder / suite
    if not (base / "made").exists():
        shutil.rmtree(base, ignore_errors=True)
        packages = f"--include=ca-certificates,git,{PACKAGES[suite]}"
        # a mirror may be a snapshot of some weeks ago
        dated = '--aptopt=Acquire::Check-Valid-Until "false"'
        command = [
            "mmdebstrap",
            "--quiet",
            dated,
            "--variant=minbase",
            packages,
            suite,
            base,
            mirror(),
        ]
        subprocess.run(command, check=True)
        (base / "made").touch()
    return base


def trees() -> Mapping[str, Path]:
    """The newest Python of each minor version that pyenv has installed."""
    found = sorted(
        Path("~/.pyenv/versions").expanduser().glob("3.*"),
        key=lambda path: int(path.name.split(".")[-1]),
    )
    return {".".join(path.name.split(".")[:2]): path.resolve() for path in found}


def pip_folders(files: list[Path]) -> Iterator[Path]:
    """The folders of this machine that its pip configuration names; what an index lists is beside
    it.
    """
    for file in files:
        config = ConfigParser(interpolation=None)
        config.read(file, encoding="utf-8")
        for section in config.sections():
            for word in " ".join(config[section].values()).split():
                folder = Path(word.removeprefix("file://"))
                if folder.is_absolute() and folder.is_dir():
                    yield folder.parent if folder.name == "simple" else folder


def _quoted(path: Path | str) -> str:
    return shlex.quote(str(path))


def _under(path: Path | str) -> str:
    """A path of the machine, in its root."""
    return _quoted(f".{path}")


@contextmanager
def machine(folder: Path, base: Path, bound: Sequence[Path], row: Machine) -> Iterator[Any]:
    """A machine that is gone afterwards: a function that runs a shell's command on it, as its user.

    With `program`, in the surroundings of the row; without, as pip has to run. With the base `/` it
    is this machine, changed.
    """
    place = Path(tempfile.mkdtemp(dir=folder))
    for name in ("upper", "work", "root"):
        (place / name).mkdir()
    configured = {Path(here).expanduser(): there for here, there in PIP_FILES.items()}
    copied = {Path(each): each for each in FILES} | configured
    client = shutil.which("docker")
    if row.docker and client:
        copied[Path(client).resolve()] = "/usr/local/bin/docker"
    lines = [
        "set -eu",
        "mount --make-rprivate /",
        (
            "mount -t overlay overlay -o "
            f"lowerdir={base},upperdir={place}/upper,workdir={place}/work {place}/root"
        ),
        f"cd {place}/root",
        (
            "mount -t proc proc proc; mount --rbind /sys sys; mount --rbind /dev dev; mount -t "
            "tmpfs tmpfs run"
        ),
        "rm -f usr/bin/docker",
        (
            f"chroot . id ann >/dev/null 2>&1 || chroot . useradd -m -d '{HOMES['ann']}' -s "
            "/bin/bash ann"
        ),
    ]
    lines += [
        (
            f"mkdir -p {_under(Path(there).parent)}; cp --remove-destination {_quoted(here)} "
            f"{_under(there)}"
        )
        for here, there in copied.items()
        if here.exists()
    ]
    # Last and to be read only: these are the folders of this machine themselves. Their parents may
    # be root's alone.
    folders = dict.fromkeys([*bound, *pip_folders([each for each in configured if each.exists()])])
    for here in folders:
        lines.append(f"mkdir -p {_under(here)}; chmod a+x {' '.join(map(_under, here.parents))}")
    for here in folders:
        lines.append(
            f"mount --bind {_quoted(here)} {_under(here)}; mount -o remount,bind,ro {_under(here)}"
        )
    taken = {name: value for name, value in os.environ.items() if TAKEN.match(name)}

    def run(command: str, *, program: bool = False) -> Outcome:
        environ = {"HOME": HOMES[row.user], "PATH": PATH, "LANG": "C.UTF-8", **taken}
        entering, surroundings = ["unshare", "--mount", "--pid", "--fork", "--kill-child"], [*lines]
        if program:
            environ = {
                name: value for name, value in environ.items() if name not in taken
            } | row.environ
            surroundings.append(f"chroot . sh -euc {shlex.quote(row.setup)}")
            if row.apart:
                entering.append("--net")
                surroundings.insert(0, f"{shlex.quote(sys.executable)} -c {shlex.quote(LOOPBACK)}")
        words = [
            "env",
            "-i",
            *(f"{name}={value}" for name, value in environ.items()),
            "bash",
            "-euc",
        ]
        words.append(f"umask {row.umask}; cd; {command}")
        surroundings.append(f"exec chroot --userspec={row.user} . {shlex.join(words)}")
        began = time.monotonic()
        with (place / "log").open("wb") as log:  # to be read while it runs
            done = subprocess.run(
                [*entering, "sh", "-c", "\n".join(surroundings)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                check=False,
            )
        text = (place / "log").read_text(encoding="utf-8", errors="replace")
        return Outcome(done.returncode, time.monotonic() - began, text)

    try:
        yield run
    finally:
        shutil.rmtree(place, ignore_errors=True)


def try_machine(folder: Path, clone: Path, name: str, tree: Path | None, *, first: bool) -> bool:
    """Run both commands or the first, each on a machine of its own, and print their rows; whether
    they worked.
    """
    row = MACHINES[name]
    base = make_base(folder, SUITES[row.python])
    python = f"python{row.python}" if tree is None else f"{tree}/bin/python{row.python}"
    worked = True
    for command in readme(clone)[: 1 if first else 2]:
        fetching, _, program = command.partition(" && ")
        bound = [clone, *([] if tree is None else [tree])]
        there = 'cd "clone of sealpipe"; . ../venv/bin/activate'
        with machine(folder, base, bound, row) as run:
            made = run(
                "git config --global safe.directory '*'; git clone -q "
                f"{shlex.quote(str(clone))} 'clone of sealpipe'; "
                f"{python} -m venv venv; {there}; python --version; {fetching}"
            )
            done = run(f"{there}; {row.under} {program}", program=True) if made.code == 0 else made
        (folder / f"{name}-{program.split()[-1]}.log").write_text(
            made.text + done.text, encoding="utf-8"
        )
        worked = worked and done.code == 0
        version = (re.findall(r"^Python (\S+)$", made.text, re.MULTILINE) or ["none"])[0]
        print(
            (
                f"| {name} | {version} | `{command}` | {done.code} | {made.seconds:.0f} | "
                f"{made.megabytes:.0f} |"
            ),
            end="",
        )
        print(f" {done.seconds:.0f} | {done.last} |")
        if first:
            print(f"  {made.packages} packages installed; what the program prints:\n{done.text}")
        for reason, number in done.skips():
            print(f"  skipped {number}: {reason}")
        for failure in re.findall(r"^(?:FAILED|ERROR) .*", done.text, re.MULTILINE):
            print(f"  {failure}")
        sys.stdout.flush()
    return worked


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("clone", type=Path)
    parser.add_argument(
        "--only", nargs="+", choices=MACHINES, default=list(MACHINES), metavar="NAME"
    )
    parser.add_argument("--first", action="store_true", help="only the first command")
    parser.add_argument("--tree", action="append", default=[], metavar="VERSION=FOLDER")
    parser.add_argument(
        "--folder", type=Path, help="where bases and logs stay (default: a temporary folder)"
    )
    options = parser.parse_args()
    given = {
        name: Path(path).resolve()
        for name, _, path in (each.partition("=") for each in options.tree)
    }
    folder = Path(tempfile.mkdtemp()) if options.folder is None else options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    worked = []
    try:
        print(
            "| machine | Python | command | exit code | pip's s | MB | the program's s | "
            "its last line |"
        )
        print("| --- | --- | --- | --: | --: | --: | --: | --- |")
        for name in options.only:
            tree = given.get(name) or (trees().get(name) if name == "3.12" else None)
            if name == "3.12" and tree is None:
                print(
                    f"| {name} | | | | | | | not tried: Debian has none, and no --tree was given |"
                )
                continue
            if MACHINES[name].docker and shutil.which("docker") is None:
                print(f"| {name} | | | | | | | not tried: this machine has no docker client |")
                continue
            worked.append(
                try_machine(folder, options.clone.resolve(), name, tree, first=options.first)
            )
    finally:
        if options.folder is None:
            shutil.rmtree(folder, ignore_errors=True)
    return int(not all(worked))


if __name__ == "__main__":
    sys.exit(main())
