"""Blocks of code in the docs name their language, their syntax is right, and tutorials type only
what they printed.
"""

from __future__ import annotations

import ast
import csv
import json
import re
import subprocess
import textwrap
import tomllib
from collections.abc import Callable, Iterator

import pytest
import yaml

from support.parts import ROOT

PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("actions/*/README.md")])
FENCE = re.compile(
    (
        r"^(?P<indent> "
        r"*)(?P<fence>`{3,})(?P<language>.*)\n(?P<code>(?:.*\n)*?)(?P=indent)(?P=fence) *$"
    ),
    re.M,
)


def check_csv(code: str) -> None:
    """Every row has the columns of the first."""
    assert len({len(row) for row in csv.reader(code.splitlines())}) == 1


def check_json(code: str) -> None:
    """One document, or one on each line."""
    try:
        json.loads(code)
    except ValueError:
        for line in code.splitlines():
            json.loads(line)


def check_yaml(code: str) -> None:
    """Documents, with tags such as GitLab's `!reference`."""
    list(yaml.compose_all(code, yaml.SafeLoader))


def check_python(code: str) -> None:
    """Statements, or the signature of a function or a class."""
    try:
        ast.parse(code)
    except SyntaxError:
        signature = re.sub(r"^(async )?(?!class )(?:\w+\.)*", r"\1def ", code.strip())
        ast.parse(f"{signature}: ...")


def commands_of(session: str) -> str:
    """Return what is typed in a session: the lines after `$ `, and those that go on after a
    backslash.
    """
    typed, goes_on = "", False
    for line in session.splitlines():
        if goes_on or line.startswith("$ "):
            typed += f"{line.removeprefix('$ ')}\n"
            goes_on = line.endswith("\\")
    return typed


CHECKS: dict[str, Callable[[str], object]] = {
    "csv": check_csv,
    "json": check_json,
    "python": check_python,
    "toml": tomllib.loads,
    "yaml": check_yaml,
}
SHELL: dict[str, Callable[[str], str]] = {"sh": str, "console": commands_of}
"""bash reads these, all of them in one process."""
OTHERS = {"dockerfile", "groovy", "hcl", "kotlin", "nginx", "sql", "text"}
"""Their syntax is not read here: the pages show files that other tests run, or parts of them."""


def blocks_in(text: str) -> Iterator[tuple[str, str, int]]:
    """Yield language, code and line of each block."""
    for found in FENCE.finditer(text):
        code = textwrap.dedent(found["code"])
        yield found["language"].strip(), code, text.count("\n", 0, found.start()) + 1


def shell_problems(scripts: dict[str, str]) -> list[str]:
    """Return what bash finds wrong with the syntax of scripts, by their names."""
    read = "".join(
        f"bash -n <<'END OF BLOCK' 2>&1 | sed 's|^|{name}: |'\n{code}\nEND OF BLOCK\n"
        for name, code in scripts.items()
    )
    done = subprocess.run(
        ["bash", "-s"], input=read, stdout=subprocess.PIPE, text=True, check=True, timeout=60
    )
    return done.stdout.splitlines()


def problems_in(text: str) -> list[str]:
    """Return what is wrong with the blocks of a page."""
    problems, scripts = [], {}
    for language, code, line in blocks_in(text):
        if language in SHELL:
            scripts[f"line {line}"] = SHELL[language](code)
        elif language in CHECKS:
            try:
                CHECKS[language](code)
            except (AssertionError, SyntaxError, ValueError, yaml.YAMLError) as error:
                problems.append(f"line {line}: {language}: {error}")
        elif language not in OTHERS:
            problems.append(f"line {line}: {language or 'no language'}")
    return problems + shell_problems(scripts)


def test_every_block_has_a_language_and_its_syntax() -> None:
    found = {page: problems_in(page.read_text(encoding="utf-8")) for page in PAGES}
    assert {page: problems for page, problems in found.items() if problems} == {}


@pytest.mark.parametrize(
    ("language", "code"),
    [
        ("", "sealpipe"),
        ("pyton", "1"),
        ("csv", "a,b\n1"),
        ("json", "{"),
        ("python", "1 +"),
        ("sh", "if true"),
        ("console", "$ echo 'one\nwhat it printed"),
        ("toml", "a ="),
        ("yaml", "a: [1"),
    ],
)
def test_a_wrong_block_is_noticed(language: str, code: str) -> None:
    page = "# Page\n\n1. A block:\n\n   ```{}\n{}\n   ```\n"
    (problem, *_) = problems_in(page.format(language, textwrap.indent(code, "   ")))
    assert problem.startswith("line 5: ")


SHORT_CODE = re.compile(r"(?<![\w-])[\w-]{12}(?![\w-])", re.ASCII)
WITH_CODES = (
    "assistant",
    "first-batch",
    "first-request",
    "first-share",
    "gitlab",
    "vault-to-mailbox",
)


@pytest.mark.parametrize("name", WITH_CODES)
def test_a_tutorial_types_no_short_code_that_it_has_not_printed(name: str) -> None:
    printed: set[str] = set()
    typed: list[str] = []
    for line in (ROOT / f"docs/tutorial/{name}.md").read_text(encoding="utf-8").splitlines():
        codes = [word for word in SHORT_CODE.findall(line) if word.upper() != word != word.lower()]
        if line.startswith("$ "):
            typed += codes
            assert printed.issuperset(codes), line
        else:
            printed.update(codes)
    assert typed
