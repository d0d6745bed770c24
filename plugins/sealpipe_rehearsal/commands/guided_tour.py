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
from sealpipe.wire.fields import revealed
from sealpipe_rehearsal.commands.child_process import environment
from sealpipe_rehearsal.running_service import RunningService
from sealpipe_rehearsal.service.log import LoggedRequest

VARIABLE = "DB_PASSWORD"


def tour(running: RunningService, *, as_json: bool) -> int:
    """Do the main job once, by the command line a user would type; 0 where the recipient saw what was sent."""
    password = secrets.token_urlsafe(18)
    render.print_note(f"1. A service of the specification runs on {running.origin}, with a fresh API key.")
    render.print_note(f"2. {VARIABLE} holds a password made up for this tour. Now, through real HTTP:")
    render.print_note(
        f"   $ sealpipe share -f 'Password=env:{VARIABLE}' -f 'User=text:deploy' --title 'Staging database'"
    )
    share = _share(running, password)
    _print_faults(running)
    if isinstance(share, int):
        render.print_note(f"3. The share ended with exit code {share}: what a pipeline would have seen.")
        return share
    render.print_note(
        f"3. The link was made here, from the short code {share['short_code']} and a key that was never sent."
    )
    fields = running.recipient().open_link(share["link"])
    fields_seen = {field.key: revealed(field) for field in fields}
    post = next(request for request in running.seen() if request.method == "POST")
    _check(running, password, share, fields_seen)
    render.print_note("4. The recipient opened the link. What each of them could see:")
    if as_json:
        render.print_json({"link": share["link"], "service_saw": _sent_members(post), "recipient_saw": fields_seen})
        return 0
    render.print_result(_in_columns(_service_saw(post), _recipient_saw(fields_seen)))
    render.print_note("The password was in no byte that the service received. Next: sealpipe share --help")
    return 0


def _share(running: RunningService, password: str) -> dict[str, Any] | int:
    """What the command printed, or the exit code where it failed: with a fault plan, that is its right."""
    with tempfile.TemporaryDirectory(prefix="sealpipe-rehearsal-") as folder:
        environ = environment(running, os.environ, Path(folder)) | {VARIABLE: password}
        command = [sys.executable, "-m", "sealpipe", "share", "--output", "json"]
        command += ["-f", f"Password=env:{VARIABLE}", "-f", "User=text:deploy", "--title", "Staging database"]
        done = subprocess.run(command, env=environ, stdout=subprocess.PIPE, check=False)  # noqa: S603 - our own
    if done.returncode != 0:
        return done.returncode
    share: dict[str, Any] = json.loads(done.stdout)
    return share


def _print_faults(running: RunningService) -> None:
    """Which faults of a plan struck, and what came of them at the service."""
    progress = running.faults()
    injected = [f"{each.row} ({_times(each.applied)})" for each in progress if each.applied]
    if injected:
        render.print_note(f"   What struck: {', '.join(injected)}.")
    if progress:
        attempts = sum(request.method == "POST" and request.target == "/v1/shares" for request in running.seen())
        share = len(running.service.store.rows("SELECT number FROM shares", {}))
        outcome = {0: "there is no share", 1: "there is one share"}.get(share, f"there are {share} shares")
        render.print_note(f"   The service was asked for the share {_times(attempts)}; {outcome}.")


def _times(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{number} times")


def _check(running: RunningService, password: str, share: dict[str, Any], fields_seen: dict[str, str]) -> None:
    """The tour is a proof, not a show: it fails where the promise does not hold."""
    if fields_seen != {"Password": password, "User": "deploy"}:
        raise SealpipeError("the recipient did not see what was sent")
    fragment = share["link"].partition("#")[2]
    for request in running.seen():
        if any(text.encode() in bytes(request) for text in (password, fragment, fragment[1:])):
            raise SealpipeError("the service saw what it must not see")


def _sent_members(post: LoggedRequest) -> dict[str, str]:
    sent = {"authorization": dict(post.headers).get("authorization", "").partition(".")[0] + ".(auth secret)"}
    return sent | {name: _short(str(value)) for name, value in json.loads(post.body).items()}


def _short(text: str) -> str:
    return text if len(text) <= 44 else text[:41] + "..."


def _service_saw(post: LoggedRequest) -> list[str]:
    return [
        "THE SERVICE",
        f"{post.method} {post.target}",
        *(f"{name}: {value}" for name, value in _sent_members(post).items()),
    ]


def _recipient_saw(fields_seen: dict[str, str]) -> list[str]:
    return ["THE RECIPIENT", "", *(f"{label}: {value}" for label, value in fields_seen.items())]


def _in_columns(left: list[str], right: list[str]) -> str:
    height = max(len(left), len(right))
    rows = zip(left + [""] * (height - len(left)), right + [""] * (height - len(right)), strict=True)
    return "".join(f"{row[0][:72]:<74}| {row[1]}".rstrip() + "\n" for row in rows)
