"""The real gnome-keyring in a D-Bus session of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.parts import KEYRING_ANSWERS, not_installed, program

CANARY = "Canary-c611"

# What happens inside of the session: lines of JSON tell it. `tell` fetches a reference as sealpipe
# does.
INSIDE = f"""
import contextlib, json, sys
import keyring, secretstorage
from support.backends import opened
from sealpipe.errors import PluginError
from sealpipe.sources.resolve import resolve
from sealpipe.reference import parse_field
from sealpipe.registry import Registry

CANARY = {CANARY!r}
registry = Registry()

def say(*words):
    print(json.dumps(words), flush=True)

def tell(text):
    try:
        (field,) = resolve([parse_field(text)], lambda: registry)
        say(field.key, opened(field).decode())
    except PluginError as error:
        say(type(error).__name__, error.message, error.locator, bool(error.remedy))

def collection():
    return secretstorage.Collection(secretstorage.dbus_init())
"""


UNLOCKED = f"""\
{{
printf secret | gnome-keyring-daemon --unlock || exit 1
{KEYRING_ANSWERS}}}"""


@dataclass
class Session:
    """What was told, and all that was written to stderr: by the bus, the keyring and us."""

    told: list[Any]
    errors: str


def session(
    place: Path,
    code: str,
    *,
    start: str = UNLOCKED,
    under: Sequence[str] = ("dbus-run-session", "--"),
) -> Session:
    """Run a program in a new D-Bus session, with an unlocked keyring that nobody has used."""
    for name in ("dbus-run-session", "gnome-keyring-daemon"):
        program(name)
    try:
        import keyring  # noqa: F401
    except ImportError:
        not_installed("keyring")
    home, script = place / "home", place / "inside.py"
    (home / "run").mkdir(mode=0o700, parents=True, exist_ok=True)
    script.write_text(INSIDE + code)
    environ = {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": str(home),
        "XDG_RUNTIME_DIR": str(home / "run"),
        "PYTHONPATH": str(Path(__file__).resolve().parents[2]),
    }
    words = f'{start} >&2 && exec "$0" "$1"' if under else 'exec "$0" "$1"'
    done = subprocess.run(
        [*under, "sh", "-c", words, sys.executable, str(script)],
        env=environ,
        capture_output=True,
        timeout=60,
        check=False,
    )
    errors = done.stderr.decode()
    assert done.returncode == 0, errors
    # a keyring that the bus starts writes to the same pipe
    told = [line for line in done.stdout.decode().splitlines() if line.startswith("[")]
    return Session([json.loads(line) for line in told], errors)
