"""Builds what a release has: `python -I .github/release/build.py OUT`, with hatchling in this
environment.

OUT gets the sdist, the wheel and SHA256SUMS. The same commit makes the same bytes anywhere: times
are those of SOURCE_DATE_EPOCH, or of the commit. The wheel is built from the tree, and again from
the sdist in another folder; exit code 1 if they differ.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tarfile
import tempfile
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def read_epoch(tree: Path) -> str:
    """Return SOURCE_DATE_EPOCH, or the time of the tree's commit, in seconds since 1970."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    command = ["git", "-C", str(tree), "log", "-1", "--format=%ct"]
    return (
        given or subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    )


def build(tree: Path, out: Path, epoch: str, *targets: str) -> None:
    """Build sdist or wheel of a tree into a folder."""
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(out)]
    for target in targets:
        command += ["-t", target]
    environ = {**os.environ, "SOURCE_DATE_EPOCH": epoch}
    subprocess.run(command, cwd=tree, env=environ, check=True, stdout=subprocess.DEVNULL)


def build_from_sdist(sdist: Path, epoch: str) -> bytes:
    """Return the wheel that the unpacked sdist makes."""
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(sdist) as archive:
            archive.extractall(folder, filter="data")
        (tree,) = Path(folder).iterdir()
        build(tree, Path(folder, "out"), epoch, "wheel")
        (wheel,) = Path(folder, "out").glob("*.whl")
        return wheel.read_bytes()


def list_hashes(folder: Path) -> str:
    """Return the lines of SHA256SUMS for every file of a folder but that one."""
    files = sorted(file for file in folder.iterdir() if file.name != "SHA256SUMS")
    return "".join(f"{sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument(
        "--tree", type=Path, default=ROOT, help="what is built (default: this checkout)"
    )
    options = parser.parse_args()
    out, tree = options.out.resolve(), options.tree.resolve()
    out.mkdir(parents=True, exist_ok=True)
    epoch = read_epoch(tree)
    build(tree, out, epoch, "sdist", "wheel")
    (sdist,), (wheel,) = out.glob("*.tar.gz"), out.glob("*.whl")
    if build_from_sdist(sdist, epoch) != wheel.read_bytes():
        print(f"{wheel.name} from {sdist.name} is not the one from the tree", file=sys.stderr)
        return 1
    hashes = list_hashes(out)
    (out / "SHA256SUMS").write_text(hashes, encoding="utf-8")
    print(hashes, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
