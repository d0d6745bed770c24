"""The hooks' time on many large files, beside a bare script with the same expressions, and beside
detect-secrets.

    python tests/plugins/precommit/measure.py [--files 500] [--megabytes 5] [--sample 10]

CPU seconds of whole processes. detect-secrets reads line by line in Python: it is given a sample of
the files.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from sealpipe_plugins.precommit.rules import HOOKS

BARE = """\
import re, sys
from sealpipe_plugins.precommit.rules import compile_rules
patterns = [start.pattern for each in compile_rules(sys.argv[1]) for start in each.starts]
for name in sys.argv[2:]:
    with open(name, "rb") as file:
        content = file.read()
    for pattern in patterns:
        for match in pattern.finditer(content):
            print(name, match.start())
"""


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--files", type=int, default=500)
    parser.add_argument("--megabytes", type=int, default=5)
    parser.add_argument("--sample", type=int, default=10)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sealpipe-hooks-") as folder:
        files = list(_files(Path(folder), chosen.files, chosen.megabytes))
        print("| hook | of | ours | theirs | ratio |\n| --- | --- | --: | --: | --: |")
        for hook in HOOKS:
            ours = _cpu([sys.executable, "-m", "sealpipe_plugins.precommit.main", hook, *files])
            bare = _cpu([sys.executable, "-c", BARE, hook, *files])
            print(
                f"| `{hook}` | {len(files)} files; a bare script | {ours:.1f} s | "
                f"{bare:.1f} s | {ours / bare:.2f} |"
            )
        some = files[: chosen.sample]
        ours = sum(
            _cpu([sys.executable, "-m", "sealpipe_plugins.precommit.main", hook, *some])
            for hook in HOOKS
        )
        theirs = _cpu([sys.executable, "-m", "detect_secrets.pre_commit_hook", *some])
        print(
            f"| all three | {len(some)} files; detect-secrets | {ours:.1f} s | "
            f"{theirs:.1f} s | {ours / theirs:.3f} |"
        )


def _files(folder: Path, number: int, megabytes: int) -> list[str]:
    """Text as in a repository: words, paths, addresses, hashes; nothing that a rule finds."""
    chance = random.Random(1)  # noqa: S311 - only text
    words = [
        "return",
        "https://example.org/a/b",
        "seed(",
        "self.value",
        "{",
        "}",
        "=",
        "#10",
        "import",
        "/usr/lib",
    ]
    lines = [
        " ".join(chance.choices(words, k=8))
        + (f" {chance.getrandbits(256):064x}" if not line % 7 else "")
        for line in range(20_000)
    ]
    names = []
    for name in range(number):
        chance.shuffle(lines)
        block = ("\n".join(lines) + "\n").encode()
        content = (block * (megabytes * 1_000_000 // len(block) + 1))[: megabytes * 1_000_000]
        (folder / f"{name}.txt").write_bytes(content)
        names.append(str(folder / f"{name}.txt"))
    return names


def _cpu(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode or done.stdout:
        raise SystemExit(
            f"{command[:4]} ended with {done.returncode}: {(done.stdout + done.stderr)[-500:]}"
        )
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    os.environ["PYTHONWARNINGS"] = "ignore"
    main()
