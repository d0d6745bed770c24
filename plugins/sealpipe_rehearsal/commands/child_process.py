"""Running somebody's command against a fresh service."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from sealpipe.cli import render
from sealpipe.errors import UsageError
from sealpipe_rehearsal.running_service import RunningService


def run_command(running: RunningService, command: Sequence[str]) -> int:
    """Run the command with SEALPIPE_* pointing at the service; its exit code, 128+N where signal N ended it."""
    with tempfile.TemporaryDirectory(prefix="sealpipe-rehearsal-") as folder:
        environ = environment(running, os.environ, Path(folder))
        with _delay_signals() as signals:
            try:
                process = subprocess.Popen(command, env=environ)  # noqa: S603 - the user's own command, no shell
            except OSError as error:
                raise UsageError(f"{render.escape(command[0])} cannot be run: {error.strerror}") from None
        code = _wait_for(process, signals)
    return code if code >= 0 else 128 - code


def environment(running: RunningService, environ: Mapping[str, str], folder: Path) -> dict[str, str]:
    """The environment with SEALPIPE_* of the user's replaced: nothing of a rehearsal reaches the real service."""
    inherited = {name: value for name, value in environ.items() if not name.startswith("SEALPIPE_")}
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
    """Keep serving until interrupted, and tell how to reach it."""
    render.print_note(f"still serving on {running.origin}; interrupt to end it")
    render.print_note(f"  export SEALPIPE_BASE_URL={running.base_url}")
    render.print_note(f"  export SEALPIPE_LINK_BASE_URL={running.link_base_url}")
    create = f"sealpipe rehearsal key create --port {running.address.port} --scope all"
    render.print_note(f'  export SEALPIPE_API_KEY="$({create})"')
    threading.Event().wait()


@contextmanager
def _delay_signals() -> Iterator[list[int]]:
    """Signals that arrive meanwhile, to be raised again: one in the midst of Popen would leave its child to nobody."""
    signals: list[int] = []
    previous = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        for number, handler in previous.items():
            if handler is not signal.SIG_IGN:  # the child inherits that
                signal.signal(number, lambda number, _: signals.append(number))
        yield signals
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _wait_for(process: subprocess.Popen[bytes], signals: Sequence[int]) -> int:
    """Wait for it; what interrupts us interrupts it, too, and it is given the time to end by itself."""
    try:
        for number in signals:
            signal.raise_signal(number)
        return process.wait()
    except BaseException as error:
        process.send_signal(getattr(error, "number", signal.SIGTERM))
        process.wait()
        raise
