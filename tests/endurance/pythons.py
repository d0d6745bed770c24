"""Both commands of the README on each Python, each in an empty Debian that has nothing else: the table is printed.

    python tests/endurance/pythons.py CLONE [--only 3.15 ...] [--first] [--tree 3.12=FOLDER] [--folder FOLDER]

CLONE is a clone of the project. Needs root, debootstrap and a Debian that this machine's packages come from. The
machine's pip configuration, certificates and proxies are taken over; nothing else is, no compiler either. A Python that
Debian does not have comes from a folder that `python --prefix` installed (`--tree`; by default the newest of pyenv).
Ends with exit code 1 if a command or a test failed. `--first` runs the first command only, and prints what a newcomer
sees: how many packages are fetched, how large they are, and what the program prints.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from configparser import ConfigParser
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

SUITES = {"3.11": "bookworm", "3.12": "bookworm", "3.13": "sid", "3.14": "sid", "3.15": "sid"}
"""Where each runs. Debian has had no 3.12: it is a tree, on the base of 3.11 for its libraries."""
PACKAGES = {"bookworm": "python3.11-venv,python3-distutils", "sid": "python3.13-venv,python3.14-venv,python3.15-venv"}
"""What is in them; debootstrap does not see that python3-distutils provides what python3.11-venv depends on."""
TAKEN = re.compile(r"PIP_|SSL_|(REQUESTS|CURL)_CA_BUNDLE$|GIT_SSL_|((HTTPS?|NO|ALL)_PROXY)$", re.IGNORECASE)
"""Variables that are taken over."""
PIP_FILES = ("/etc/pip.conf", "/etc/xdg/pip/pip.conf", "~/.config/pip/pip.conf", "~/.pip/pip.conf")
FILES = ("/etc/resolv.conf", "/etc/hosts", "/etc/ssl/certs/ca-certificates.crt")
ENTER = """
set -eu
root=$1; shift
mount --make-rprivate /
mount -t overlay overlay -o "lowerdir=$BASE,upperdir=$UPPER,workdir=$WORK" "$root"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/run"
for folder in $BOUND; do mkdir -p "$root$folder"; mount --bind "$folder" "$root$folder"; done
for file in $COPIED; do mkdir -p "$(dirname "$root$file")"; rm -f "$root$file"; cp "$file" "$root$file"; done
exec chroot "$root" env -i "$@"
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
        for number, reason in re.findall(r"^SKIPPED \[(\d+)\] [^ ]+: (.*)$", self.text, re.MULTILINE):
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
    command = ["apt-get", "indextargets", "--format", "$(REPO_URI) $(ORIGIN) $(LABEL)", "Created-By: Packages"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return next(line.split()[0] for line in listed if line.endswith(" Debian Debian"))


def make_base(folder: Path, suite: str) -> Path:
    """An empty Debian of a suite with its Pythons and git; made once."""
    base = folder / suite
    if not (base / "made").exists():
        shutil.rmtree(base, ignore_errors=True)
        packages = f"--include=ca-certificates,git,{PACKAGES[suite]}"
        subprocess.run(["debootstrap", "--variant=minbase", packages, suite, base, mirror()], check=True)
        (base / "made").touch()
    return base


def trees() -> Mapping[str, Path]:
    """The newest Python of each minor version that pyenv has installed."""
    found = sorted(Path("~/.pyenv/versions").expanduser().glob("3.*"), key=lambda path: int(path.name.split(".")[-1]))
    return {".".join(path.name.split(".")[:2]): path.resolve() for path in found}


def pip_folders(files: list[Path]) -> Iterator[Path]:
    """The folders of this machine that its pip configuration names; what an index lists is beside it."""
    for file in files:
        config = ConfigParser(interpolation=None)
        config.read(file, encoding="utf-8")
        for section in config.sections():
            for word in " ".join(config[section].values()).split():
                folder = Path(word.removeprefix("file://"))
                if folder.is_absolute() and folder.is_dir():
                    yield folder.parent if folder.name == "simple" else folder


@contextmanager
def empty_machine(folder: Path, base: Path, bound: list[Path]) -> Iterator[Any]:
    """An empty machine that is gone afterwards: a function that runs a shell's command in it."""
    place = Path(tempfile.mkdtemp(dir=folder))
    for name in ("upper", "work", "root"):
        (place / name).mkdir()
    configured = [path for path in (Path(each).expanduser() for each in PIP_FILES) if path.exists()]
    kept = [f"{name}={value}" for name, value in os.environ.items() if TAKEN.match(name)]
    home = str(Path.home())
    environ = {
        "PATH": os.environ["PATH"],
        "BASE": str(base),
        "UPPER": str(place / "upper"),
        "WORK": str(place / "work"),
        "BOUND": " ".join(map(str, dict.fromkeys([*bound, *pip_folders(configured)]))),
        "COPIED": " ".join([*FILES, *map(str, configured)]),
    }

    def run(command: str, **variables: str) -> Outcome:
        path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        own = [f"{name}={value}" for name, value in {"HOME": home, "PATH": path, **variables}.items()]
        entering = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", ENTER, "enter", place / "root"]
        began = time.monotonic()
        done = subprocess.run(
            [*entering, *kept, *own, "bash", "-euc", command],
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
        return Outcome(done.returncode, time.monotonic() - began, done.stdout)

    try:
        yield run
    finally:
        shutil.rmtree(place, ignore_errors=True)


def try_python(folder: Path, clone: Path, name: str, tree: Path | None, *, first: bool) -> bool:
    """Run both commands or the first, each in a machine of its own, and print their rows; whether they worked."""
    base = make_base(folder, SUITES[name])
    program = f"python{name}" if tree is None else f"{tree}/bin/python{name}"
    worked = True
    for command in readme(clone)[: 1 if first else 2]:
        setting_up = f"git clone -q {clone} ~/clone; {program} -m venv ~/venv; cd ~/clone; . ~/venv/bin/activate"
        bound = [clone, *([] if tree is None else [tree])]
        with empty_machine(folder, base, bound) as run:
            made = run(f"git config --global safe.directory '*'; {setting_up}; python --version")
            version = made.last.removeprefix("Python ")
            done = run(f"cd ~/clone; . ~/venv/bin/activate; {command}") if made.code == 0 else made
        (folder / f"{name}-{command.split()[-1]}.log").write_text(done.text, encoding="utf-8")
        worked = worked and done.code == 0
        print(f"| {version} | `{command}` | {done.code} | {done.seconds:.0f} | {done.megabytes:.0f} | {done.last} |")
        if first:
            print(f"  {done.packages} packages installed; what the program prints:")
            print(done.text.partition("Successfully installed")[2].partition("\n")[2])
        for reason, number in done.skips():
            print(f"  skipped {number}: {reason}")
        for failure in re.findall(r"^(?:FAILED|ERROR) .*", done.text, re.MULTILINE):
            print(f"  {failure}")
        sys.stdout.flush()
    return worked


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clone", type=Path)
    parser.add_argument("--only", nargs="+", choices=SUITES, default=list(SUITES), metavar="VERSION")
    parser.add_argument("--first", action="store_true", help="only the first command")
    parser.add_argument("--tree", action="append", default=[], metavar="VERSION=FOLDER")
    parser.add_argument("--folder", type=Path, help="where bases and logs stay (default: a temporary folder)")
    options = parser.parse_args()
    given = {name: Path(path).resolve() for name, _, path in (each.partition("=") for each in options.tree)}
    folder = Path(tempfile.mkdtemp()) if options.folder is None else options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    worked = []
    try:
        print("| Python | command | exit code | seconds | MB | its last line |\n| --- | --- | --: | --: | --: | --- |")
        for name in options.only:
            tree = given.get(name) or (trees().get(name) if name == "3.12" else None)
            if name == "3.12" and tree is None:
                print(f"| {name} | | | | | not tried: Debian has none, and no --tree was given |")
                continue
            worked.append(try_python(folder, options.clone.resolve(), name, tree, first=options.first))
    finally:
        if options.folder is None:
            shutil.rmtree(folder, ignore_errors=True)
    return int(not all(worked))


if __name__ == "__main__":
    sys.exit(main())
