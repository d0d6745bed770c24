"""The tour: one secret from the environment into a share and out of its link, with both sides' views beside it."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from sealpipe.cli import render
from sealpipe.errors import SealpipeError
from sealpipe.wire.field import revealed
from sealpipe_rehearsal.commands.child_process import environment
from sealpipe_rehearsal.running_service import Running
from sealpipe_rehearsal.service.log import Seen

VARIABLE = "DB_PASSWORD"


def tour(running: Running, *, as_json: bool) -> int:
    """Do the main job once, by the command line a user would type; 0 where the recipient saw what was sent."""
    password = secrets.token_urlsafe(18)
    render.print_note(f"1. A service of the specification runs on {running.origin}, with a fresh API key.")
    render.print_note(f"2. {VARIABLE} holds a password made up for this tour. Now, through real HTTP:")
    render.print_note(
        f"   $ sealpipe share -f 'Password=env:{VARIABLE}' -f 'User=text:deploy' --title 'Staging database'"
    )
    made = _share(running, password)
    _tell_faults(running)
    if isinstance(made, int):
        render.print_note(f"3. The share ended with exit code {made}: what a pipeline would have seen.")
        return made
    render.print_note(
        f"3. The link was made here, from the short code {made['short_code']} and a key that was never sent."
    )
    fields = running.recipient().open_link(made["link"])
    seen = {field.key: revealed(field) for field in fields}
    posted = next(request for request in running.seen() if request.method == "POST")
    _check(running, password, made, seen)
    render.print_note("4. The recipient opened the link. What each of them could see:")
    if as_json:
        render.print_json({"link": made["link"], "service_saw": _members(posted), "recipient_saw": seen})
        return 0
    render.print_result(_beside(_service_saw(posted), _recipient_saw(seen)))
    render.print_note("The password was in no byte that the service received. Next: sealpipe share --help")
    return 0


def _share(running: Running, password: str) -> dict[str, Any] | int:
    """What the command printed, or the exit code where it failed: with a fault plan, that is its right."""
    with tempfile.TemporaryDirectory(prefix="sealpipe-rehearsal-") as folder:
        environ = environment(running, os.environ, Path(folder)) | {VARIABLE: password}
        command = [sys.executable, "-m", "sealpipe", "share", "--output", "json"]
        command += ["-f", f"Password=env:{VARIABLE}", "-f", "User=text:deploy", "--title", "Staging database"]
        done = subprocess.run(command, env=environ, stdout=subprocess.PIPE, check=False)  # noqa: S603 - our own
    if done.returncode != 0:
        return done.returncode
    made: dict[str, Any] = json.loads(done.stdout)
    return made


def _tell_faults(running: Running) -> None:
    """Which faults of a plan struck, and what came of them at the service."""
    progress = running.faults()
    struck = [f"{each.row} ({_times(each.applied)})" for each in progress if each.applied]
    if struck:
        render.print_note(f"   What struck: {', '.join(struck)}.")
    if progress:
        asked = sum(request.method == "POST" and request.target == "/v1/shares" for request in running.seen())
        made = len(running.service.store.rows("SELECT number FROM shares", {}))
        there = {0: "there is no share", 1: "there is one share"}.get(made, f"there are {made} shares")
        render.print_note(f"   The service was asked for the share {_times(asked)}; {there}.")


def _times(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{number} times")


def _check(running: Running, password: str, made: dict[str, Any], seen: dict[str, str]) -> None:
    """The tour is a proof, not a show: it fails where the promise does not hold."""
    if seen != {"Password": password, "User": "deploy"}:
        raise SealpipeError("the recipient did not see what was sent")
    fragment = made["link"].partition("#")[2]
    for request in running.seen():
        if any(text.encode() in bytes(request) for text in (password, fragment, fragment[1:])):
            raise SealpipeError("the service saw what it must not see")


def _members(posted: Seen) -> dict[str, str]:
    sent = {"authorization": dict(posted.headers).get("authorization", "").partition(".")[0] + ".(auth secret)"}
    return sent | {name: _short(str(value)) for name, value in json.loads(posted.body).items()}


def _short(text: str) -> str:
    return text if len(text) <= 44 else text[:41] + "..."


def _service_saw(posted: Seen) -> list[str]:
    return [
        "THE SERVICE",
        f"{posted.method} {posted.target}",
        *(f"{n}: {v}" for n, v in _members(posted).items()),
    ]


def _recipient_saw(seen: dict[str, str]) -> list[str]:
    return ["THE RECIPIENT", "", *(f"{label}: {value}" for label, value in seen.items())]


def _beside(left: list[str], right: list[str]) -> str:
    height = max(len(left), len(right))
    rows = zip(left + [""] * (height - len(left)), right + [""] * (height - len(right)), strict=True)
    return "".join(f"{row[0][:72]:<74}| {row[1]}".rstrip() + "\n" for row in rows)
