"""Runs the user's command against a fresh service."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sealpipe.cli import render
from sealpipe.plugin.context import drop_own_variables
from sealpipe.run.program import refuse_command

if TYPE_CHECKING:
    from sealpipe_rehearsal.running_service import RunningService
    from sealpipe_rehearsal.uvicorn_server import Address


def run_command(running: RunningService, command: Sequence[str], *, is_job: bool = False) -> int:
    """Run a command with SEALPIPE_* pointing at the service.

    Return its exit code, or 128+N after signal N.

    A command of a CI job gets all that it needs: see `prepare_job`.
    """
    with tempfile.TemporaryDirectory(prefix="sealpipe-rehearsal-") as folder:
        environ = environment(running, os.environ, Path(folder))
        if is_job:
            from sealpipe_rehearsal.commands.ci_job import prepare_job

            command, environ = prepare_job(running, command, os.environ, environ, Path(folder))
        with _delay_signals() as signals:
            try:
                process = subprocess.Popen(command, env=environ)  # noqa: S603
            except OSError as error:
                refuse_command(command[0], error)
        code = _wait_for(process, signals)
    return code if code >= 0 else 128 - code


def environment(
    running: RunningService, environ: Mapping[str, str], folder: Path
) -> dict[str, str]:
    """Return the environment with the user's SEALPIPE_* replaced: nothing reaches the service."""
    inherited = drop_own_variables(environ)
    config = folder / "config.toml"
    config.touch(mode=0o600)
    return inherited | {
        "SEALPIPE_API_KEY": running.create_key().reveal(),
        "SEALPIPE_BASE_URL": running.base_url,
        "SEALPIPE_LINK_BASE_URL": running.link_base_url,
        "SEALPIPE_CONFIG": str(config),
        "SEALPIPE_STATE_DIR": str(folder / "state"),
    }


def keep_serving(running: RunningService) -> None:
    """Keep serving until interrupted, and print how to reach the service."""
    render.print_note(f"still serving on {running.origin}; interrupt to stop")
    print_exports(running.address)
    threading.Event().wait()


def print_exports(address: Address) -> None:
    """Print the lines that point a shell at a service."""
    render.print_note(f"  export SEALPIPE_BASE_URL={address.base_url}")
    render.print_note(f"  export SEALPIPE_LINK_BASE_URL={address.link_base_url}")
    create = f"sealpipe rehearsal key create --port {address.port} --scope all"
    render.print_note(f'  export SEALPIPE_API_KEY="$({create})"')


@contextmanager
def _delay_signals() -> Iterator[list[int]]:
    """Collect signals and raise them again later: a signal during Popen would orphan the child."""
    signals: list[int] = []
    previous = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        for number, handler in previous.items():
            if handler is not signal.SIG_IGN:  # the child inherits this
                signal.signal(number, lambda number, _: signals.append(number))
        yield signals
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _wait_for(process: subprocess.Popen[bytes], signals: Sequence[int]) -> int:
    """Wait for the child. Signals to us are passed on to it; it may take its time to end."""
    try:
        for number in signals:
            signal.raise_signal(number)
        return process.wait()
    except BaseException as error:
        process.send_signal(getattr(error, "number", signal.SIGTERM))
        process.wait()
        raise
