"""The real gnome-keyring, in a D-Bus session of its own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from support.parts import program

BACKEND = "keyring.backends.SecretService.Keyring"


@contextmanager
def secret_service(home: Path) -> Iterator[Mapping[str, str]]:
    """A bus, and an unlocked keyring on it: the variables by which both are found."""
    (home / "run").mkdir(mode=0o700)
    environ = {"PATH": os.environ["PATH"], "HOME": str(home), "XDG_RUNTIME_DIR": str(home / "run")}
    bus = subprocess.Popen(
        [program("dbus-daemon"), "--session", "--nofork", "--print-address"],
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert bus.stdout is not None
    environ["DBUS_SESSION_BUS_ADDRESS"] = bus.stdout.readline().strip()
    command = [program("gnome-keyring-daemon"), "--unlock", "--components=secrets"]
    with bus:
        try:
            # It goes to the background once it is on the bus, and ends with the bus.
            subprocess.run(command, env=environ, input=b"secret", stdout=subprocess.DEVNULL, check=True)
            yield environ
        finally:
            bus.terminate()
