"""Real commands, each killed by a real signal at a few system calls, and finished by `resume` or by
running it again.

Every step, in one process: test_every_step.py beside it. Every system call: tests/endurance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import pytest

from cli.kills.collecting import Sweep as CollectSweep
from cli.kills.copying import Copying
from cli.kills.delivering import Delivering
from cli.kills.requesting import KEYS, Asking
from cli.rotating import Rotating
from cli.sweep import MATTER, Sweep, spread
from sealpipe_rehearsal.running_service import RunningService
from support.job import Job
from support.openbao import Bao, InVault
from support.places import InFile
from support.strace import only

FEW = 6
P = TypeVar("P")


def kill_at(kill: Callable[[P, Path], Any], points: Sequence[P], place: Path) -> list[Any]:
    """Kill at some of the points, the first and the last among them.

    Nothing is wrong afterwards.
    """
    chosen = spread(points, FEW)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda pair: kill(pair[1], place / str(pair[0])), enumerate(chosen)))
    assert {
        str(point): each.wrong() for point, each in zip(chosen, found, strict=True) if each.wrong()
    } == {}
    assert found[-1].code == 0, "it went all the way to a command that outlives it"
    return found


@pytest.mark.parametrize(
    ("signal", "code", "job", "resuming"),
    [
        ("SIGKILL", -9, Job, False),
        ("SIGTERM", 143, Job, False),
        ("SIGTERM", 143, Rotating, False),
        ("SIGKILL", -9, Job, True),
        ("SIGINT", 130, Job, True),
    ],
    ids=["share", "share, SIGTERM", "share that is stored, SIGTERM", "resume", "resume, SIGINT"],
)
def test_share_and_resume(
    signal: str,
    code: int,
    job: type[Job],
    service: RunningService,
    tmp_path: Path,
    *,
    resuming: bool,
) -> None:
    sweep = Sweep(service, resuming=resuming, signal=signal, job=job)
    found = kill_at(sweep.kill_at, only(sweep.points(tmp_path / "undisturbed"), MATTER), tmp_path)
    assert (found[0].code, found[0].shares) == (code, int(resuming))


def test_request(service: RunningService, tmp_path: Path) -> None:
    sweep = Asking(service, KEYS["a fresh key"])
    assert (
        kill_at(sweep.kill_at, sweep.points(tmp_path / "undisturbed"), tmp_path)[0].requests == []
    )


def test_delivery(service: RunningService, tmp_path: Path) -> None:
    sweep = Delivering(service, to_file=False)
    assert (
        kill_at(sweep.kill_at, sweep.points(tmp_path / "undisturbed"), tmp_path)[0].messages == []
    )


def test_collect(service: RunningService, tmp_path: Path) -> None:
    sweep = CollectSweep(service, lambda job: InFile(job.terminal.here))
    assert kill_at(sweep.kill_at, sweep.points(tmp_path / "undisturbed"), tmp_path)[0].code == -9


def test_collect_at_a_request_to_the_service_or_to_vault(
    service: RunningService, bao: Bao, tmp_path: Path
) -> None:
    sweep = CollectSweep(service, lambda _: InVault(bao), elsewhere=True, number=1)
    calls = sweep.calls(tmp_path / "counted")
    assert {call.text.partition(":")[0] for call in calls[:-1]} == {"service", "vault"}
    assert kill_at(sweep.kill_at, calls, tmp_path)[0].code == -9


@pytest.mark.parametrize(("signal", "code"), [("SIGKILL", -9), ("SIGTERM", 143)])
def test_copy(signal: str, code: int, service: RunningService, tmp_path: Path) -> None:
    sweep = Copying(service, job=Job, signal=signal)
    found = kill_at(sweep.kill_at, sweep.points(tmp_path / "undisturbed"), tmp_path)
    assert found[0].code == code
