"""What may go wrong at a store, as the command line tells it: as many reasons and next steps as there are failures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sealpipe_rehearsal.running_service import RunningService
from support.terminal import Terminal, created

WITHOUT = """
import importlib.metadata as metadata
import sys
real = metadata.version
def version(name):
    if name == {distribution!r}:
        raise metadata.PackageNotFoundError(name)
    return real(name)
metadata.version = version
sys.modules[{module!r}] = None
"""


@dataclass(frozen=True)
class Failure:
    """One thing that fails: the reference or the channel, and the environment in which it does."""

    reference: str
    environ: Mapping[str, str] = field(default_factory=dict)


def without(user: Terminal, distribution: str, module: str) -> dict[str, str]:
    """The environment in which a package is not installed. A command in it is a process of its own."""
    user.file(f"without-{module}/sitecustomize.py", WITHOUT.format(distribution=distribution, module=module))
    return {"PYTHONPATH": str(user.here / f"without-{module}")}


def share_words(reference: str) -> Sequence[str]:
    """The command that reads one reference."""
    return "share", "-f", f"P={reference}"


def assert_told_apart(
    failures: Mapping[str, Failure],
    user: Terminal,
    service: RunningService,
    *,
    secrets: Iterable[str],
    words: Callable[[str], Sequence[str]] = share_words,
) -> None:
    """Each ends with 14, names what failed and the next step, no two alike; no secret is shown, nothing is created."""
    told: dict[str, tuple[str, str]] = {}
    for name, failure in failures.items():
        done = user.sealpipe(*words(failure.reference), "--output", "json", **failure.environ)
        assert (done.code, done.out) == (14, ""), (name, done)
        locator = failure.reference.partition("#")[0]
        asked, _, params = locator.partition("?")
        assert asked in done.err, (name, done.err)
        assert [value for value in secrets if value in done.err] == [], (name, done.err)
        told[name] = (done.error["message"].replace(asked, "").replace(f"?{params}", ""), done.error["remedy"])
    reasons, remedies = ({each[part] for each in told.values()} for part in (0, 1))
    assert len(reasons) == len(remedies) == len(failures), told
    assert "" not in remedies, told
    assert created(service) == []
