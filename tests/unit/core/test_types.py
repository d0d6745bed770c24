"""What mypy sees of our packages in a user's script: a misspelled name is an error, and no right
one is Any.
"""

from __future__ import annotations

import ast
import asyncio
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sealpipe import Secret, aresolve, resolve

Check = Callable[[str], list[str]]

FACES = {
    "sealpipe": (
        "AsyncClient, Client, Field, Outbox, Secret, UsageError, aresolve, resolve",
        "Clinet",
    ),
    "sealpipe.plugin": (
        "CISystem, Source, SourceInfo, hookimpl, make_annotation, write_stderr",
        "Sourcce",
    ),
    "sealpipe_rehearsal": ("LinkRefusedError, Rehearsal", "Rehersal"),
}
"""Each package whose names are imported on first use: some of them, and one misspelled."""


@pytest.fixture(scope="module")
def check(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Check:
    """Run `mypy --strict` on a script of a user, in a folder of its own, and return what it
    says.
    """
    folder = tmp_path_factory.mktemp("a user's")
    # Of the suite's own runs only the first reads all of sealpipe; all do without pytest's cache
    # (-p no:cacheprovider).
    kept = getattr(pytestconfig, "cache", None)
    cache = folder / "cache" if kept is None else kept.mkdir("mypy")

    def run(script: str) -> list[str]:
        (folder / "script.py").write_text(script)
        command = [
            sys.executable,
            "-m",
            "mypy",
            "--strict",
            "--no-error-summary",
            "--cache-dir",
            str(cache),
        ]
        done = subprocess.run(
            [*command, "script.py"], cwd=folder, capture_output=True, text=True, check=False
        )
        assert done.stderr == ""
        return [line.removeprefix("script.py:") for line in done.stdout.splitlines()]

    return run


def revealed(lines: list[str]) -> list[str]:
    return re.findall(r'Revealed type is "(.*)"', "\n".join(lines))


def test_a_misspelled_name_is_an_error_and_a_right_one_has_a_type(check: Check) -> None:
    script, misspelled = "", []
    for face, (names, wrong) in FACES.items():
        script += f"from {face} import {names}\n"
        script += "".join(f"reveal_type({name})\n" for name in names.split(", "))
        script += f"from {face} import {wrong}\n"
        misspelled.append((face, wrong))
    lines = check(script)
    shown = revealed(lines)
    assert len(shown) == sum(len(names.split(", ")) for names, _ in FACES.values())
    assert "Any" not in shown
    errors = [line for line in lines if " error: " in line]
    assert [re.findall(r'Module "(.*)" has no attribute "(\w*)"', line) for line in errors] == [
        [each] for each in misspelled
    ]


READ = """
from sealpipe import AsyncClient, Client, Field, Secret, aresolve, resolve

def read(client: Client) -> list[Field]:
    reveal_type(resolve(["env:A"])[0].value)
    reveal_type(client.collect("aB3").submissions[0].fields[0].value)
    reveal_type(client.collect_each(["aB3"])[0].submissions[0].fields[0].value)
    mixed = [Field("User", "ada"), Field("Password", Secret("x"))]
    client.share(mixed)
    client.share(resolve(["env:A"]))
    client.share([*mixed, *resolve(["env:A"]), "env:B"])
    return mixed

async def aread(client: AsyncClient) -> None:
    reveal_type((await aresolve(["env:A"]))[0].value)
    reveal_type((await client.collect("aB3")).submissions[0].fields[0].value)
    reveal_type((await client.collect_each(["aB3"]))[0].submissions[0].fields[0].value)
"""


def test_what_came_from_a_store_or_a_submission_is_a_secret_by_its_type(check: Check) -> None:
    lines = check(READ)
    assert revealed(lines) == ["sealpipe.secret.Secret"] * 6
    assert [line for line in lines if " error: " in line] == []


def test_so_it_is_when_it_runs_also_for_what_a_source_calls_public() -> None:
    for (field,) in (resolve(["text:deploy-bot"]), asyncio.run(aresolve(["text:deploy-bot"]))):
        assert isinstance(field.value, Secret)
        assert (field.value.reveal(), field.type) == ("deploy-bot", "text")


def test_what_a_user_puts_into_a_field_is_text_or_a_secret(check: Check) -> None:
    lines = check(
        'from sealpipe import Field\nreveal_type(Field("User", "ada").value)\n'
        'Field("User", b"ada")\n'
    )
    assert revealed(lines) == ["str | sealpipe.secret.Secret"]
    assert [line for line in lines if " error: " in line and "[arg-type]" not in line] == []
    assert len(lines) == 2


def test_no_package_has_every_name_for_type_checkers() -> None:
    root = Path(__file__).parents[3]
    seen = [
        path.relative_to(root).as_posix()
        for folder in ("core", "plugins")
        for path in (root / folder).rglob("*.py")
        for statement in ast.parse(path.read_bytes()).body
        if isinstance(statement, ast.FunctionDef) and statement.name == "__getattr__"
    ]
    assert seen == [], (
        "put it under `if not TYPE_CHECKING`: mypy would take every misspelled name for its result"
    )
