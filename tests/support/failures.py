"""What may go wrong at a store, as the command line tells it: as many reasons and next steps as
there are failures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

from sealpipe.network import plugin_network
from sealpipe.testing.contract import FaultyServer
from sealpipe_rehearsal.running_service import RunningService
from support.ports import silent_port
from support.terminal import Terminal, created
from support.wires import Intercepting

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
    """One thing that fails: the reference or the channel, and the environment in which it does.

    `timeout` is how many seconds a server may be silent: short only where it is.
    """

    reference: str
    environ: Mapping[str, str] = field(default_factory=dict)
    timeout: float = plugin_network.TIMEOUT


def without(user: Terminal, distribution: str, module: str) -> dict[str, str]:
    """The environment in which a package is not installed.

    A command in it is a process of its own.
    """
    user.file(
        f"without-{module}/sitecustomize.py",
        WITHOUT.format(distribution=distribution, module=module),
    )
    return {"PYTHONPATH": str(user.here / f"without-{module}")}


def share_words(reference: str) -> Sequence[str]:
    """The command that reads one reference."""
    return "share", "-f", f"P={reference}"


def network_failures(
    stack: ExitStack, folder: Path, reference: str, at: Mapping[str, str], address: str, port: int
) -> dict[str, Failure]:
    """Five on the way to an HTTP server on this port: `address` is the variable that names it."""
    silent, busy = FaultyServer("silent"), FaultyServer("429")
    stack.callback(silent.stop)
    stack.callback(busy.stop)
    busy.retry_after = 0
    host = "store.example"
    proxy = stack.enter_context(Intercepting(folder, {host: port}))
    behind = {**at, address: f"https://{host}"}
    return {
        "unreachable": Failure(reference, {**at, address: f"http://127.0.0.1:{silent_port()}"}),
        "timeout": Failure(reference, {**at, address: silent.url}, timeout=0.5),
        "rate limit": Failure(reference, {**at, address: busy.url}),
        "a proxy's login": Failure(
            reference,
            {**behind, "HTTPS_PROXY": proxy.url(""), "SEALPIPE_CA_FILE": str(proxy.ca_file)},
        ),
        "unknown CA": Failure(reference, {**behind, "HTTPS_PROXY": proxy.url()}),
    }


def assert_told_apart(
    failures: Mapping[str, Failure],
    user: Terminal,
    service: RunningService,
    *,
    secrets: Iterable[str],
    words: Callable[[str], Sequence[str]] = share_words,
) -> None:
    """Each ends with 14, names what failed and the next step, no two alike; no secret is shown,
    nothing is created.
    """
    told: dict[str, tuple[str, str]] = {}
    for name, failure in failures.items():
        with patch.object(plugin_network, "TIMEOUT", failure.timeout):
            done = user.sealpipe(*words(failure.reference), "--output", "json", **failure.environ)
        assert (done.code, done.out) == (14, ""), (name, done)
        locator = failure.reference.partition("#")[0]
        asked, _, params = locator.partition("?")
        assert asked in done.err, (name, done.err)
        assert [value for value in secrets if value in done.err] == [], (name, done.err)
        told[name] = (
            done.error["message"].replace(asked, "").replace(f"?{params}", ""),
            done.error["remedy"],
        )
    reasons, remedies = ({each[part] for each in told.values()} for part in (0, 1))
    assert len(reasons) == len(remedies) == len(failures), told
    assert "" not in remedies, told
    assert created(service) == []
