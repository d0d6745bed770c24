"""The tour of `sealpipe rehearse`: share one secret, open its link, and show what each side saw."""

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
from sealpipe_rehearsal.log import LoggedRequest
from sealpipe_rehearsal.running_service import RunningService
from sealpipe_service.plans import DEFAULT_ACCOUNT

VARIABLE = "DB_PASSWORD"


def tour(running: RunningService, *, as_json: bool, views: int = 1) -> tuple[int, str | None]:
    """Run the tour with the command line a user would type.

    Returns the exit code, and the link if there is one.
    """
    command = [
        "-f",
        f"Password=env:{VARIABLE}",
        "-f",
        "User=text:deploy",
        "--title",
        "Staging database",
    ]
    command += ["--views", str(views)] if views > 1 else []
    password = secrets.token_urlsafe(18)
    render.print_note(
        f"1. A local copy of the service runs on {running.origin}, with a fresh API key."
    )
    render.print_note(f"2. {VARIABLE} holds a random password. Now share it, over real HTTP:")
    render.print_note(f"   $ sealpipe share {' '.join(map(_quote, command))}")
    share = _share(running, password, command)
    _print_faults(running)
    if isinstance(share, int):
        render.print_note(
            f"3. The command ended with exit code {share}, as it would in a pipeline."
        )
        return share, None
    render.print_note(
        f"3. The link was built locally, from the short code {share['short_code']} and a "
        "key that was never sent."
    )
    fields = running.recipient().open_link(share["link"])
    fields_seen = {field.key: revealed(field) for field in fields}
    post = next(request for request in running.seen() if request.method == "POST")
    _check(running, password, share, fields_seen)
    render.print_note("4. The recipient opened the link. What each side could see:")
    if as_json:
        render.print_json(
            {
                "link": share["link"],
                "service_saw": _sent_members(post),
                "recipient_saw": fields_seen,
            }
        )
        return 0, share["link"]
    render.print_result(
        _in_columns(_list_service_view(post), _list_recipient_view(share["link"], fields_seen))
    )
    render.print_note(
        "No byte that the service received contained the password. Next: sealpipe share --help"
    )
    return 0, share["link"]


def _quote(word: str) -> str:
    return word if word.startswith("-") or word.isdigit() else f"'{word}'"


def _share(running: RunningService, password: str, words: list[str]) -> dict[str, Any] | int:
    """Return what the command printed, or its exit code if it failed, as under a fault plan."""
    with tempfile.TemporaryDirectory(prefix="sealpipe-rehearsal-") as folder:
        environ = environment(running, os.environ, Path(folder)) | {VARIABLE: password}
        command = [sys.executable, "-m", "sealpipe", "share", "--output", "json", *words]
        done = subprocess.run(  # noqa: S603 - our own
            command, env=environ, stdout=subprocess.PIPE, check=False
        )
    if done.returncode != 0:
        return done.returncode
    share: dict[str, Any] = json.loads(done.stdout)
    return share


def _print_faults(running: RunningService) -> None:
    """Report the injected faults and what the service holds after them."""
    progress = running.faults()
    injected = [f"{each.row} ({_times(each.applied)})" for each in progress if each.applied]
    if injected:
        render.print_note(f"   Injected faults: {', '.join(injected)}.")
    if progress:
        attempts = sum(
            request.method == "POST" and request.target == "/v1/shares"
            for request in running.seen()
        )
        shares = sum(running.service.store.stats(DEFAULT_ACCOUNT)[:2])
        calls, held = _times(attempts), render.count(shares, "share")
        render.print_note(
            f"   The service was asked {calls} to create the share and now holds {held}."
        )


def _times(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{number} times")


def _check(
    running: RunningService, password: str, share: dict[str, Any], fields_seen: dict[str, str]
) -> None:
    """Fail if one of the promises does not hold."""
    if fields_seen != {"Password": password, "User": "deploy"}:
        raise SealpipeError("the recipient did not see what was sent")
    fragment = share["link"].partition("#")[2]
    for request in running.seen():
        if any(text.encode() in bytes(request) for text in (password, fragment, fragment[1:])):
            raise SealpipeError("the service received the password or the key")


def _sent_members(post: LoggedRequest) -> dict[str, str]:
    sent = {
        "authorization": dict(post.headers).get("authorization", "").partition(".")[0]
        + ".(auth secret)"
    }
    return sent | {name: _short(str(value)) for name, value in json.loads(post.body).items()}


def _short(text: str) -> str:
    return text if len(text) <= 44 else text[:41] + "..."


def _list_service_view(post: LoggedRequest) -> list[str]:
    return [
        "THE SERVICE",
        f"{post.method} {post.target}",
        *(f"{name}: {value}" for name, value in _sent_members(post).items()),
    ]


def _list_recipient_view(link: str, fields_seen: dict[str, str]) -> list[str]:
    return ["THE RECIPIENT", link, *(f"{label}: {value}" for label, value in fields_seen.items())]


def _in_columns(left: list[str], right: list[str]) -> str:
    height = max(len(left), len(right))
    rows = zip(
        left + [""] * (height - len(left)), right + [""] * (height - len(right)), strict=True
    )
    return "".join(f"{row[0][:72]:<74}| {row[1]}".rstrip() + "\n" for row in rows)
