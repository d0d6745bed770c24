"""Break the rehearsal service's rules one by one, and see that tests notice: the table is
tests/service/mutants.toml.

    python tests/endurance/mutants.py [--client] [--only NAME ...] [--discover N]

Each rule is broken in the process that the tests run in, and every test that the table names for it
must fail there (and pass while nothing is broken). --client: only the tests of our own client.
--discover N: run all tests of the files given after `--` on each, until N have failed, and print
which did; what nobody notices is an error.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from service.mutating import PACKAGES, mutants, run, unnoticed


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
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
        f"{len(chosen)} broken rules in {modules} modules of {' and '.join(PACKAGES)}, "
        f"{runs} tests to notice them, {seconds:.0f} s:"
    )
    print(f"  {len(chosen) - len(wrong)} noticed by every test that is to notice, {len(wrong)} not")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
