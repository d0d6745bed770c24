"""Makes the lock files that setup.sh installs from: `python -I actions/_setup/lock.py [--upgrade]`.

It needs uv and a package index. Locked versions stay unless they no longer satisfy the
requirements; `--upgrade` takes the newest. locks/all.txt is sealpipe with every extra; base.txt
what it always needs; EXTRA.txt what one extra adds; build.txt the build backend; .github/audit.txt
the tool that audits a release; .github/docs.txt what builds the site. They are valid for Linux and
macOS and for every supported Python, and name no index. Each line of an extra's file is also in
all.txt, word for word, so any of them can be combined.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
LOCKS = HERE / "locks"
PYTHON = "3.11"
"""The oldest Python: a universal lock is valid from this version on."""
NO_LOCK = ("all", "dev", "dev-all", "docs")
AUDIT = ROOT / ".github/audit.txt"
"""pip-audit, for the release workflow only."""
DOCS = ROOT / ".github/docs.txt"
"""The extra `docs` by itself, for the workflow that publishes the site."""
HEAD = "# Made by `python -I actions/_setup/lock.py`: {}.\n"
ROW = re.compile(r"^[A-Za-z0-9][^\n]*(?:\n[ \t][^\n]*)*", re.MULTILINE)
"""A requirement and its continuation lines: the hashes."""


def project() -> dict[str, Any]:
    """pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def extras() -> list[str]:
    """Return the extras that have a lock file."""
    return sorted(set(project()["project"]["optional-dependencies"]) - {*NO_LOCK})


def rows(text: str) -> dict[str, str]:
    """Return the requirements of a lock file with their hashes, by name and marker (a name may have
    several).
    """
    return {
        re.sub(r"==[^ ;\\]+|[ \\\n].*", "", row, flags=re.DOTALL) + _marker(row): row
        for row in ROW.findall(text)
    }


def main() -> None:
    """Write all of them, or none: if one cannot be made, uv has printed the reason."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--upgrade", action="store_true", help="take the newest in place of what is locked"
    )
    upgrade = parser.parse_args().upgrade
    names = extras()
    options = [word for name in names for word in ("--extra", name)]
    whole = _compile("pyproject.toml", LOCKS / "all.txt", options, upgrade=upgrade)
    base = _select_rows("pyproject.toml", [], whole)
    found = {
        "all": ("sealpipe with every extra", whole),
        "base": ("what sealpipe always needs", base),
    }
    for name in names:
        more = _select_rows("pyproject.toml", ["--extra", name], whole)
        found[name] = (
            f"what the extra {name} adds",
            {key: row for key, row in more.items() if key not in base},
        )
    with tempfile.TemporaryDirectory() as folder:
        backend, auditor = Path(folder, "build.in"), Path(folder, "audit.in")
        backend.write_text("\n".join(project()["build-system"]["requires"]), encoding="utf-8")
        auditor.write_text("pip-audit>=2.9\n", encoding="utf-8")
        found["build"] = (
            "the build backend",
            _compile(backend, LOCKS / "build.txt", [], upgrade=upgrade),
        )
        audit = _compile(auditor, AUDIT, [], upgrade=upgrade)
        builder = Path(folder, "docs.in")
        builder.write_text(
            "\n".join(project()["project"]["optional-dependencies"]["docs"]), encoding="utf-8"
        )
        docs = _compile(builder, DOCS, [], upgrade=upgrade)
    for file in set(LOCKS.glob("*.txt")) - {LOCKS / f"{name}.txt" for name in found}:
        file.unlink()
    files = {LOCKS / f"{name}.txt": contents for name, contents in found.items()} | {
        AUDIT: ("what audits a release", audit),
        DOCS: ("what builds the documentation's site", docs),
    }
    for file, (what, locked) in files.items():
        text = HEAD.format(what) + "".join(f"{row}\n" for row in locked.values())
        file.write_text(text, encoding="utf-8")
        print(f"{file.stem}: {len(locked)}")  # noqa: T201 - a script


def _marker(row: str) -> str:
    found = re.search(r" ;[^\\\n]*", row)
    return found[0].rstrip() if found else ""


def _compile(
    source: str | Path, before: Path, options: Iterable[str], *, upgrade: bool
) -> dict[str, str]:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "lock.txt")
        if before.exists():
            shutil.copy(before, out)
        _uv(
            source,
            "--generate-hashes",
            *(["--upgrade"] if upgrade else []),
            *options,
            "--output-file",
            out,
        )
        return rows(out.read_text(encoding="utf-8"))


def _select_rows(source: str, options: Iterable[str], whole: dict[str, str]) -> dict[str, str]:
    """Return the rows of the full lock that one part needs."""
    pins = "\n".join(row.partition(" \\")[0] for row in whole.values())
    with tempfile.TemporaryDirectory() as folder:
        constraints = Path(folder, "pins.txt")
        constraints.write_text(pins, encoding="utf-8")
        part = {
            row.partition("==")[0]
            for row in rows(_uv(source, *options, "--constraints", constraints)).values()
        }
    return {key: row for key, row in whole.items() if row.partition("==")[0] in part}


def _uv(source: str | Path, *arguments: str | Path) -> str:
    uv = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent)) or "uv"
    quiet = [
        "--quiet",
        "--no-header",
        "--no-annotate",
        "--no-emit-index-url",
        "--no-emit-find-links",
        "--no-config",
    ]
    command = [
        uv,
        "pip",
        "compile",
        source,
        "--universal",
        "--python-version",
        PYTHON,
        *quiet,
        *arguments,
    ]
    # Only the index that uv uses by default or that its own variables name: the locks must match
    # what is published.
    environ = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PIP_", "SEALPIPE_"))
    }
    done = subprocess.run(  # noqa: S603
        command, cwd=ROOT, env=environ, stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout


if __name__ == "__main__":
    main()
