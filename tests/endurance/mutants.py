"""Break the rehearsal service's rules one by one, and see that tests notice: the table is tests/rehearsal/mutants.toml.

    python tests/endurance/mutants.py [--client] [--only NAME ...] [--discover N]

Each rule is broken in the process that the tests run in, and every test that the table names for it must fail there
(and pass while nothing is broken). --client: only the tests of our own client. --discover N: run all tests of the
files given after `--` on each, until N have failed, and print which did; what nobody notices is an error.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rehearsal.mutating import CHOSEN, CLIENT, DISCOVER, PACKAGE, RESULTS, TESTS, Mutant, mutants


def run(
    chosen: Iterable[Mutant], *, client: bool = False, discover: int = 0, files: Sequence[str] = ()
) -> dict[str, set[str]]:
    """Which tests failed, by mutant; under "" those that failed with nothing broken. One pytest for all of them."""
    chosen = list(chosen)
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results.json"
        environ = {
            **os.environ,
            "PYTHONPATH": str(TESTS),
            CHOSEN: json.dumps([mutant.name for mutant in chosen]),
            RESULTS: str(results),
            CLIENT: "1" if client else "",
            DISCOVER: str(discover or ""),
        }
        named = {test.partition("::")[0] for mutant in chosen for test in mutant.tests(client=client)}
        paths = list(files) or sorted(str(TESTS / path) for path in named)
        options = ["-n0", "-q", "-p", "rehearsal.mutating", "-p", "no:cacheprovider"]
        words = [sys.executable, "-m", "pytest", *options, *paths]
        done = subprocess.run(words, cwd=TESTS.parent, env=environ, capture_output=True, text=True, check=False)
        if not results.exists():
            raise RuntimeError(f"pytest ended with {done.returncode}:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
        return {name: set(tests) for name, tests in json.loads(results.read_text()).items()}


def unnoticed(chosen: Iterable[Mutant], failing: dict[str, set[str]], *, client: bool = False) -> dict[str, list[str]]:
    """By mutant, the tests that were to notice it and did not; and under "" those that failed on the sound service."""
    found = {m.name: [test for test in m.tests(client=client) if test not in failing[m.name]] for m in chosen}
    found = {name: tests for name, tests in found.items() if tests}
    return found | ({"": sorted(failing[""])} if failing[""] else {})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--client", action="store_true")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--discover", type=int, default=0, metavar="N")
    parser.add_argument("files", nargs="*")
    options = parser.parse_args()
    chosen = [each for each in mutants() if not options.only or each.name in options.only]
    if options.client and not options.discover:
        chosen = [each for each in chosen if each.client]
    began = time.monotonic()
    failing = run(chosen, client=options.client, discover=options.discover, files=options.files)
    seconds = time.monotonic() - began
    if options.discover:
        for name, tests in failing.items():
            print(f"{name or '(nothing broken)'}: {', '.join(sorted(tests)) or 'NOBODY NOTICES'}")
        silent = [each.name for each in chosen if not failing[each.name]]
        print(f"\n{len(chosen)} broken rules in {seconds:.0f} s: {len(silent)} that nobody notices")
        return int(bool(silent))
    wrong = unnoticed(chosen, failing, client=options.client)
    for name, tests in wrong.items():
        print(f"{name or 'FAILS WITH NOTHING BROKEN'}: {', '.join(tests)}")
    modules = len({each.module for each in chosen})
    runs = sum(len(each.tests(client=options.client)) for each in chosen)
    print(
        f"{len(chosen)} broken rules in {modules} modules of {PACKAGE}, {runs} tests to notice them, {seconds:.0f} s:"
    )
    print(f"  {len(chosen) - len(wrong)} noticed by every test that is to notice, {len(wrong)} not")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
