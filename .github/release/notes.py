"""The changelog's entry of a version, as the notes of its release: `python -I
.github/release/notes.py 1.2.3`.

Exit code 1 if the changelog does not have the form that is written at its top, or no dated entry of
that version. Relative links become links to the page at the version's tag.
"""

from __future__ import annotations

import argparse
import re
import sys
from datetime import date
from itertools import pairwise
from pathlib import Path

FILE = Path(__file__).resolve().parents[2] / "docs/CHANGELOG.md"
KINDS = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")
HEADING = re.compile(
    r"## (?:\[(?P<linked>[^]]+)\]|(?P<plain>[^ ]+))(?: - (?P<date>\d{4}-\d{2}-\d{2}))?"
)


def split_entries(text: str) -> dict[str, tuple[str | None, str]]:
    """Return each version's date and text, newest first; `Unreleased` has no date."""
    body = re.split(r"^(?=## )", re.sub(r"^\[[^]]+\]: .*\n?", "", text, flags=re.M), flags=re.M)
    entries: dict[str, tuple[str | None, str]] = {}
    for part in body[1:]:
        heading, _, rest = part.partition("\n")
        match = HEADING.fullmatch(heading)
        name = heading if match is None else match["linked"] or match["plain"]
        entries[name] = (None if match is None else match["date"], rest.strip())
    return entries


def find_faults(text: str) -> list[str]:
    """Return what is not of the form that is written at the top of the changelog."""
    entries, faults = split_entries(text), []
    headings = re.findall(r"^## (.*)$", text, re.M)
    if headings[:1] != ["[Unreleased]"]:
        faults.append("the first entry is not [Unreleased]")
    if len(headings) != len(entries):
        faults.append("a version has two entries")
    links = dict(re.findall(r"^\[([^]]+)\]: (\S+)$", text, re.M))
    linked = {
        match["linked"]
        for each in headings
        if (match := HEADING.fullmatch(f"## {each}")) and match["linked"]
    }
    faults += [
        f"[{name}] has no link, or its link no entry" for name in sorted(linked ^ links.keys())
    ]
    versions = [name for name in entries if name != "Unreleased"]
    for name in versions:
        moment, rest = entries[name]
        if not re.fullmatch(r"\d+\.\d+\.\d+", name) or moment is None:
            faults.append(f"{name!r} is not a version with its date")
        elif not _is_date(moment):
            faults.append(f"{name} is of {moment}")
        if not re.search(r"^### ", rest, re.M):
            faults.append(f"{name} says nothing")
    for newer, older in pairwise(versions):
        if _key(newer) <= _key(older):
            faults.append(f"{newer} stands above {older}")
    for name, (_, rest) in entries.items():
        kinds = re.findall(r"^###+ (.*)$", rest, re.M)
        if kinds != [each for each in KINDS if each in kinds]:
            faults.append(
                f"{name} has {', '.join(kinds)}: not each kind once, in the order "
                f"{', '.join(KINDS)}"
            )
        for kind, part in zip(kinds, re.split(r"^### .*$", rest, flags=re.M)[1:], strict=True):
            if not re.match(r"\n\n- \S", part) or re.search(r"^(?!- |  \S|$)", part, re.M):
                faults.append(f"{name}, {kind}: not a list")
    return faults


def make_notes(text: str, version: str, pages: str) -> str:
    """Return the entry of a version; its relative links begin with `pages`.

    KeyError if there is no dated one.
    """
    moment, rest = split_entries(text)[version]
    if moment is None:
        raise KeyError(version)
    return re.sub(r"\]\((?!https?://)", f"]({pages}/", rest) + "\n"


def _is_date(text: str) -> bool:
    try:
        return bool(date.fromisoformat(text))
    except ValueError:
        return False


def _key(version: str) -> list[int]:
    return [int(each) for each in re.findall(r"\d+", version)]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("version")
    parser.add_argument(
        "--pages", default="docs", metavar="URL", help="the address of docs/ at the tag"
    )
    options = parser.parse_args()
    text = FILE.read_text(encoding="utf-8")
    if faults := find_faults(text):
        print("\n".join(faults), file=sys.stderr)
        return 1
    try:
        print(make_notes(text, options.version, options.pages), end="")
    except KeyError:
        print(f"docs/CHANGELOG.md has no dated entry of {options.version}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
