"""Kill `sealpipe collect --pick each --after expire` with SIGKILL at every step, then collect again
until it is done.

A step is a system call from its first connection on, or a request over HTTP to the service or to
the backend, before it gets there and after it was carried out. Each is tried twice: the rerun is on
the same machine, and on another one that knows nothing of the first. In the end each submission
stands in its place once, whole, the request has ended with no more than one DELETE that ever
arrived, the service has every submission still, and no file lies about. Prints a table of figures;
ends with 1 where the promise broke.

    python tests/endurance/collect_sweep.py [--into file,vault] [--every-call | --requests]

Of system calls those that read or change something (cli/kills/collecting.py), with --every-call
all, with --requests none. Wants strace.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from cli.kills.collecting import MATTER, Killed, Makes, Step, Sweep
from sealpipe_rehearsal.server import start
from support import places
from support.aws import InAwsSm, InAwsSsm, moto
from support.fake_github import FakeGitHub, InGitHub
from support.fake_gitlab import FakeGitLab, InGitLab
from support.kubernetes import Cluster, InKubernetes, emulator
from support.openbao import InVault, dev_server
from support.parts import secret_service


@contextmanager
def _cluster() -> Iterator[places.Place]:
    with emulator() as url, Cluster(url) as cluster:
        yield InKubernetes(cluster)


@contextmanager
def _hub() -> Iterator[FakeGitHub]:
    with FakeGitHub() as hub:
        # All runs share one repository; GitHub has 100 in each.
        hub.vaults.places["acme", "app"].limit = 10**6
        yield hub


@contextmanager
def _keyring() -> Iterator[places.Place]:
    with tempfile.TemporaryDirectory() as home, secret_service(Path(home)) as session:
        yield places.InKeyring(session)


def _always(stack: ExitStack, name: str) -> Makes:
    """A backend that runs as long as the run."""
    if name in ("file", "dir", "dotenv"):
        kind = {"file": places.InFile, "dir": places.InDir, "dotenv": places.InDotenv}[name]
        return lambda job: kind(job.terminal.here)
    made: Mapping[str, Callable[[], places.Place]] = {
        "vault": lambda: InVault(stack.enter_context(dev_server())),
        "aws-sm": lambda: InAwsSm(stack.enter_context(moto())),
        "aws-ssm": lambda: InAwsSsm(stack.enter_context(moto())),
        "k8s": lambda: stack.enter_context(_cluster()),
        "github-secret": lambda: InGitHub(stack.enter_context(_hub())),
        "gitlab-variable": lambda: InGitLab(stack.enter_context(FakeGitLab())),
        "keyring": lambda: stack.enter_context(_keyring()),
    }
    place = made[name]()
    return lambda _: place


ALL = "file,dir,dotenv,vault,aws-sm,aws-ssm,k8s,github-secret,gitlab-variable,keyring"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--into", default=ALL, help=f"some of {ALL}")
    parser.add_argument(
        "--every-call", action="store_true", help="not only those that read or change something"
    )
    parser.add_argument("--requests", action="store_true", help="only the requests over HTTP")
    parser.add_argument("--answers", type=int, default=2, help="submissions of each request")
    parser.add_argument("--at-once", type=int, default=4)
    options = parser.parse_args()
    everything: list[Killed] = []
    began = time.monotonic()
    print(
        (
            f"{'into':16} {'calls':>6} {'requests':>8} {'kills':>6} {'stored before':>13} "
            f"{'by the rerun':>12}"
        ),
        end="",
    )
    print(f" {'an hour later':>13} {'with replace':>12} {'broken':>6} {'s':>5}")
    for name in options.into.split(","):
        with tempfile.TemporaryDirectory() as folder, start() as service, ExitStack() as stack:
            sweep = Sweep(service, _always(stack, name), number=options.answers)
            everything += one(name, sweep, Path(folder), options)
    wrong = [each for each in everything if each.wrong()]
    print(
        f"\n{len(everything)} kills in {time.monotonic() - began:.0f} s: {len(wrong)} "
        "broke the promise"
    )
    return int(bool(wrong))


def one(name: str, sweep: Sweep, place: Path, options: argparse.Namespace) -> list[Killed]:
    """All kills of one backend; a line of the table."""
    began = time.monotonic()
    names = () if options.every_call else MATTER
    found = [] if options.requests else sweep.points(place / "traced", names)
    calls = sweep.calls(place / "counted")
    steps: list[tuple[Step, bool]] = [
        (step, elsewhere) for step in [*found, *calls] for elsewhere in (False, True)
    ]

    def kill(number: int) -> Killed:
        step, elsewhere = steps[number]
        return replace(sweep, elsewhere=elsewhere).kill_at(step, place / str(number))

    with ThreadPoolExecutor(options.at_once) as pool:
        results = list(pool.map(kill, range(len(steps))))
    wrong = [each for each in results if each.wrong()]
    seconds = time.monotonic() - began
    whole = Counter(each.whole for each in results)
    print(
        f"{name:16} {len(found):6} {len(calls):8} {len(results):6} {whole[True]:13} "
        f"{whole[False]:12} "
        f"{sum(9 in each.reruns for each in results):13} "
        f"{sum(14 in each.reruns for each in results):12} "
        f"{len(wrong):6} {seconds:5.0f}",
        flush=True,
    )
    for each in wrong:
        print(f"  WRONG {each.step} ({each.step.text[:80]}): {each.wrong()}\n{each.said}")
    return results


if __name__ == "__main__":
    sys.exit(main())
