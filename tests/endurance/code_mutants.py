"""How many mutants of our own code the suite kills: a seeded sample, each run against the tests
that cover its line.

    python tests/endurance/code_mutants.py COMMAND

    cover FOLDER [TEST ...]                               run the first tier once: what covers what
    draw FOLDER [--seed N] [--count N]                    which mutants a sample has
    sample FOLDER [--seed N] [--count N] [--again FILE]   run the mutants

FOLDER must be a clone of this repository without changes, with a virtual environment `venv` in it
that has the extra `dev`, cosmic-ray and pytest-cov: the mutants are written into its files. Two
clones can share the work (`--part 1/2`). `cover` writes FOLDER/cover.json. `sample` draws lines
that tests cover (the same seed draws the same mutants of the same commit), but no mutant of a
function's annotation, which nothing evaluates, runs for each the
quickest tests that cover the line, with 60 s of CPU at most, and adds a JSON line a mutant to
FOLDER/mutants.jsonl: operator, module, line, outcome (`killed`, `survived`, `timeout`; `unmade`
where cosmic-ray failed) and the difference. A sample that was stopped continues where it was.
`draw` runs nothing, and writes the same rows without an outcome to FOLDER/drawn.jsonl. `--again`
runs the mutants of such a file once more, by their source text: on a newer commit, where they still
apply.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import json
import os
import random
import resource
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

PACKAGES = ("core/sealpipe", "plugins/sealpipe_plugins")
LEFT_OUT = ("core/sealpipe/testing/",)
"""The contract kit is tests."""
WITH_ARGUMENTS = ("core/VariableInserter", "core/VariableReplacer")
"""Operators that want to be told a variable."""
CPU_SECONDS, SECONDS = 60, 600
"""What the tests of a mutant have of the processor, however busy it is, and in all."""
TESTS_SECONDS = 30.0
"""Sum of the durations of the tests that are run on one mutant."""
KILLED, TIMEOUT, SURVIVED, UNMADE, DRAWN = "killed", "timeout", "survived", "unmade", "drawn"


class Covered(NamedTuple):
    """What covers a line, and how long each test takes in seconds."""

    tests: Mapping[str, Mapping[str, list[int]]]
    """By module and line (as text, for JSON): indexes of `names`."""
    names: Sequence[str]
    seconds: Sequence[float]


class Mutation(NamedTuple):
    """A mutant before it is made: cosmic-ray's operator, and which of its occurrences in the
    module.
    """

    module: str
    line: int
    operator: str
    occurrence: int


def cover(folder: Path, tests_to_run: Sequence[str]) -> None:
    """Run the first tier, or these tests, with coverage of each, and write down what covers
    what.
    """
    durations = folder / "durations.json"
    plugin = folder / "keep_durations.py"
    plugin.write_text(_KEEP_DURATIONS.format(path=str(durations)), encoding="utf-8")
    sources = [f"--cov={each}" for each in PACKAGES]
    words = [
        "-q",
        "-n",
        "auto",
        "-p",
        "keep_durations",
        *sources,
        "--cov-context=test",
        "--cov-report=",
        *tests_to_run,
    ]
    _pytest(folder, words, is_limited=False)
    seconds: dict[str, float] = json.loads(durations.read_text(encoding="utf-8"))
    names = sorted(seconds)
    index = {name: number for number, name in enumerate(names)}
    tests: dict[str, dict[str, list[int]]] = {}
    for module, line, test in _read_coverage(folder / ".coverage"):
        name = test.rpartition("|")[0]
        if name in index and not module.startswith(LEFT_OUT):
            tests.setdefault(module, {}).setdefault(str(line), []).append(index[name])
    found = {"names": names, "seconds": [seconds[name] for name in names], "tests": tests}
    (folder / "cover.json").write_text(json.dumps(found), encoding="utf-8")
    print(f"{len(names)} tests, {sum(map(len, tests.values()))} lines of {len(tests)} modules")


_KEEP_DURATIONS = """\
import json

def pytest_terminal_summary(terminalreporter):
    seconds = {{}}
    for report in terminalreporter.getreports("passed") + terminalreporter.getreports(""):
        seconds[report.nodeid] = seconds.get(report.nodeid, 0.0) + report.duration
    with open({path!r}, "w", encoding="utf-8") as file:
        json.dump(seconds, file)
"""


def _read_coverage(path: Path) -> Iterator[tuple[str, int, str]]:
    from coverage import CoverageData  # cosmic-ray and coverage are in the clone's environment only

    data = CoverageData(str(path))
    data.read()
    for file in data.measured_files():
        module = os.path.relpath(file, path.parent)
        for line, contexts in data.contexts_by_lineno(file).items():
            for context in contexts:
                yield module, line, context


def mutations(folder: Path, covered: Covered) -> Iterator[Mutation]:
    """Every mutant of a covered line, in a fixed order."""
    from cosmic_ray.ast import ast_nodes, get_ast_from_path
    from cosmic_ray.plugins import get_operator, operator_names

    for module in sorted(covered.tests):
        nodes = list(ast_nodes(get_ast_from_path(folder / module)))
        annotations = list(find_annotations((folder / module).read_text(encoding="utf-8")))
        for name in sorted(operator_names()):
            if name in WITH_ARGUMENTS:
                continue
            operator = get_operator(name)()
            places = (place for node in nodes for place in operator.mutation_positions(node))
            for occurrence, (start, _) in enumerate(places):
                is_annotation = any(first <= start < end for first, end in annotations)
                if str(start[0]) in covered.tests[module] and not is_annotation:
                    yield Mutation(module, start[0], name, occurrence)


def find_annotations(source: str) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Begin and end, as line and column, of the annotations of functions and of their variables.

    `from __future__ import annotations` stands in each module: nothing evaluates them. Those of
    classes are left, for pydantic and dataclasses read them.
    """
    functions = [
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    for function in functions:
        inside = [node for statement in function.body for node in ast.walk(statement)]
        annotated = [*ast.walk(function.args), *inside]
        for node in (function.returns, *(getattr(each, "annotation", None) for each in annotated)):
            if node is not None:
                yield (
                    (node.lineno, node.col_offset),
                    (node.end_lineno or node.lineno, node.end_col_offset or 0),
                )


def draw(found: Iterable[Mutation], seed: int, count: int) -> list[Mutation]:
    """Draw `count` lines, and of each line one mutant: a line with many operators counts no more
    than others.
    """
    by_line: dict[tuple[str, int], list[Mutation]] = {}
    for each in found:
        by_line.setdefault((each.module, each.line), []).append(each)
    chance = random.Random(seed)  # noqa: S311 - drawn again by the same seed
    lines = chance.sample(sorted(by_line), min(count, len(by_line)))
    return [chance.choice(by_line[line]) for line in lines]


def choose_tests(covered: Covered, module: str, line: int) -> list[str]:
    """The quickest tests that cover the line: all that fit into TESTS_SECONDS, one at least."""
    indexes = sorted(covered.tests[module][str(line)], key=lambda number: covered.seconds[number])
    chosen: list[str] = []
    total = 0.0
    for number in indexes:
        total += covered.seconds[number]
        if chosen and total > TESTS_SECONDS:
            break
        chosen.append(covered.names[number])
    return chosen


def _choose(what: str, covered: Covered, mutation: Mutation) -> list[str] | None:
    return choose_tests(covered, mutation.module, mutation.line) if what == "sample" else None


def judge(folder: Path, tests: Sequence[str]) -> str:
    """Run the tests in the clone as it is now."""
    listed = folder / "tests.txt"
    listed.write_text("".join(f"{name}\n" for name in tests), encoding="utf-8")
    words = ["-q", "-x", "-n", "0", "-p", "no:cacheprovider", f"@{listed}"]
    status = _pytest(folder, words, is_limited=True)
    return {None: TIMEOUT, -signal.SIGXCPU: TIMEOUT, 0: SURVIVED}.get(status, KILLED)


def _pytest(folder: Path, words: Sequence[str], *, is_limited: bool) -> int | None:
    """Return the exit code; None for a timeout."""
    path = f"{folder / 'venv/bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    source = os.pathsep.join(str(folder / each) for each in ("", "core", "plugins", "actions/_run"))
    environ = {**os.environ, "PATH": path, "PYTHONPATH": source}
    command = [folder / "venv/bin/python", "-m", "pytest", *words]
    with subprocess.Popen(
        command, cwd=folder, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as process:  # fmt: skip
        if is_limited:
            limit = (CPU_SECONDS, CPU_SECONDS + 5)
            resource.prlimit(process.pid, resource.RLIMIT_CPU, limit)
        try:
            return process.wait(SECONDS if is_limited else None)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            return None


def run_mutation(folder: Path, mutation: Mutation, tests: Sequence[str] | None) -> dict[str, Any]:
    """Make the mutant, run its tests, and put the module back.

    The row for mutants.jsonl. None: run nothing.
    """
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    path = folder / mutation.module
    before = path.read_text(encoding="utf-8")
    try:
        after = mutate_code(before, get_operator(mutation.operator)(), mutation.occurrence)
    except AttributeError:  # cosmic-ray cannot make a few of those that it lists
        return {"outcome": UNMADE, "difference": [], "tests": 0} | mutation._asdict()
    return _run_text(path, before, after or before, tests) | mutation._asdict()


def _run_text(path: Path, before: str, after: str, tests: Sequence[str] | None) -> dict[str, Any]:
    difference = [
        line
        for line in difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0)
        if line[:1] in "+-" and line[:3] not in ("+++", "---")
    ]
    if tests is None:
        return {"outcome": DRAWN, "difference": difference, "tests": 0}
    try:
        _write(path, after)
        outcome = judge(next(each for each in path.parents if (each / "venv").is_dir()), tests)
    finally:
        _write(path, before)
    return {"outcome": outcome, "difference": difference, "tests": len(tests)}


def _write(path: Path, text: str) -> None:
    """Change a module, and let no bytecode of another text pass for its own.

    Python compares time, in whole seconds, and size.
    """
    time = int(path.stat().st_mtime) + 1
    path.write_text(text, encoding="utf-8")
    os.utime(path, (time, time))


def run_again(folder: Path, row: Mapping[str, Any], covered: Covered) -> dict[str, Any] | None:
    """Run an earlier mutant by its text.

    None where its line no longer exists, or stands in several places.
    """
    removed = "\n".join(line[1:] for line in row["difference"] if line.startswith("-"))
    added = "\n".join(line[1:] for line in row["difference"] if line.startswith("+"))
    found = [
        (module, text)
        for module in covered.tests
        if removed
        and (text := (folder / module).read_text(encoding="utf-8")).count(f"\n{removed}\n") == 1
    ]
    if len(found) != 1:
        return None
    module, text = found[0]
    line = text[: text.index(f"\n{removed}\n")].count("\n") + 2
    if str(line) not in covered.tests[module]:
        return None
    after = text.replace(f"\n{removed}\n", f"\n{added}\n" if added else "\n")
    row = {**row, "module": module, "line": line}
    return row | _run_text(folder / module, text, after, choose_tests(covered, module, line))


def _read_done(folder: Path) -> set[tuple[object, ...]]:
    """Read which mutants an earlier run has tried."""
    file = folder / "mutants.jsonl"
    rows = map(json.loads, file.read_text(encoding="utf-8").splitlines()) if file.exists() else ()
    return {tuple(row[name] for name in Mutation._fields) for row in rows}


def main(words: Sequence[str]) -> int:
    """Do what the words say; print a line a mutant and the sum."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("cover", "draw", "sample"))
    parser.add_argument("folder", type=lambda text: Path(text).resolve())
    parser.add_argument("tests", nargs="*")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--part", default="1/1")
    parser.add_argument("--again", type=Path)
    options = parser.parse_args(words)
    sys.path[:0] = map(str, (options.folder / "venv/lib").glob("python*/site-packages"))
    if options.what == "cover":
        cover(options.folder, options.tests)
        return 0
    covered = Covered(**json.loads((options.folder / "cover.json").read_text(encoding="utf-8")))
    part, parts = map(int, options.part.split("/"))
    counts: dict[str, int] = {}
    todo: Iterable[dict[str, Any] | None]
    if options.again:
        earlier = [
            json.loads(line) for line in options.again.read_text(encoding="utf-8").splitlines()
        ]
        todo = (run_again(options.folder, row, covered) for row in earlier[part - 1 :: parts])
    else:
        done = _read_done(options.folder) if options.what == "sample" else set()
        drawn = draw(mutations(options.folder, covered), options.seed, options.count)[
            part - 1 :: parts
        ]
        drawn = [each for each in drawn if tuple(each) not in done]
        todo = (
            run_mutation(options.folder, each, _choose(options.what, covered, each))
            for each in drawn
        )
    name = "drawn.jsonl" if options.what == "draw" else "mutants.jsonl"
    with (options.folder / name).open("a", encoding="utf-8") as file:
        for row in todo:
            outcome = row["outcome"] if row else "gone"
            counts[outcome] = counts.get(outcome, 0) + 1
            if row:
                print(outcome, f"{row['module']}:{row['line']}", row["operator"], flush=True)
                file.write(f"{json.dumps(row)}\n")
                file.flush()
    print(counts)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
