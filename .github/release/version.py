"""The version of the project in every place that names it: `python -I .github/release/version.py
[NEW]`.

The truth is in pyproject.toml. Without NEW, this prints it, and each place that has another one
with exit code 1. With NEW, such as 1.2.3, it writes NEW everywhere; the changelog's entry is
written by hand.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VERSION = r"\d+\.\d+\.\d+"
FILES = {
    "pyproject.toml": rf'^version = "({VERSION})"$',
    "core/sealpipe/version.py": rf'^__version__ = "({VERSION})"$',
    "containers/Dockerfile": rf"^ARG VERSION=({VERSION})$",
}
"""Files that name it once, each with the line that does."""
SHOWN = rf"(?:\bsealpipe(?:-git)?:|\bsealpipe (?={VERSION}, Python))({VERSION})\b"
"""How pages and recipes name it: as the image's tag, and in what a command prints."""
PAGES = ("README.md", "docs/**/*", "actions/**/*.md", "containers/**/*")
KINDS = (".md", ".yml", ".yaml", ".kts", ".toml", "Jenkinsfile")


def find_places(root: Path = ROOT) -> Iterator[tuple[Path, str]]:
    """Yield each file that names the version, with the pattern that finds it."""
    for name, pattern in FILES.items():
        yield root / name, pattern
    for pattern in PAGES:
        for file in sorted(root.glob(pattern)):
            if (
                file.is_file()
                and file.name.endswith(KINDS)
                and file.relative_to(root).as_posix() not in FILES
            ):
                yield file, SHOWN


def read_version(root: Path = ROOT) -> str:
    """Return the version of pyproject.toml."""
    (version,) = re.findall(
        FILES["pyproject.toml"], (root / "pyproject.toml").read_text(encoding="utf-8"), re.M
    )
    return str(version)


def find_others(root: Path = ROOT) -> list[str]:
    """Return each place that names another version, or that does not name it as it should."""
    version, found = read_version(root), []
    for file, pattern in find_places(root):
        name, text = file.relative_to(root).as_posix(), file.read_text(encoding="utf-8")
        versions = re.findall(pattern, text, re.M)
        if name in FILES and len(versions) != 1:
            found.append(f"{name}: names it {len(versions)} times, not once")
        found += [f"{name}: {each}" for each in versions if each != version]
    return found


def write_version(new: str, root: Path = ROOT) -> None:
    """Write the new version to every place."""
    for file, pattern in find_places(root):
        before = file.read_text(encoding="utf-8")
        after = re.sub(pattern, lambda match: match[0].replace(match[1], new), before, flags=re.M)
        if after != before:
            file.write_text(after, encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("new", nargs="?", metavar="NEW")
    new = parser.parse_args().new
    if new is not None:
        if not re.fullmatch(VERSION, new, re.ASCII):
            parser.error("NEW is three numbers: 1.2.3")
        write_version(new)
    others = find_others()
    print("\n".join([read_version(), *others]))
    return int(bool(others))


if __name__ == "__main__":
    sys.exit(main())
