"""Examples with what they print, from the scenarios of tests/cli/scenarios: every line of them is
run by a test.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from unit.docs.generator.tree import root

SCENARIOS = Path(__file__).resolve().parents[3] / "cli/scenarios"
LINES_AT_MOST = 12

SHOWN: Mapping[str, tuple[str, str]] = {
    "audit verify": ("audit", "sealpipe audit verify log"),
    "batch cancel": ("batch-requests", "sealpipe batch cancel vendors-2026-q4 carol"),
    "batch collect": ("batch-collect", "sealpipe batch collect vendors-2026-q4"),
    "batch link": ("batch-requests", "sealpipe batch link vendors-2026-q4 acme"),
    "batch list": ("batch-requests", "sealpipe batch list"),
    "batch plan": ("batch-requests", "sealpipe batch plan vendors.toml --out approved.json"),
    "batch purge": ("batch-requests", "sealpipe batch purge vendors-2026-q4"),
    "batch rekey": ("batch-requests", "sealpipe batch rekey vendors-2026-q4"),
    "batch report": ("batch-requests", "sealpipe batch report vendors-2026-q4 --html"),
    "batch run": ("batch-shares", "sealpipe batch run keys.toml"),
    "batch status": ("batch-requests", "sealpipe batch status vendors-2026-q4"),
    "collect": ("collect", "sealpipe collect r.json --dir out"),
    "copy": ("copy", "sealpipe copy Password=gen:password"),
    "custody new": ("custody", "sealpipe custody new"),
    "custody public-key": ("custody", "sealpipe custody public-key"),
    "doctor": ("doctor", "sealpipe doctor"),
    "mcp policy init": ("mcp-policy", "sealpipe mcp policy init"),
    "mcp policy test": ("mcp-policy", "sealpipe mcp policy test check"),
    "plugins": ("plugins", "sealpipe plugins"),
    "read": ("read", "sealpipe read file:pem"),
    "rehearsal account": ("rehearsal-keys", "sealpipe rehearsal account --port $PORT"),
    "rehearsal answer": ("rehearsal-people", "sealpipe rehearsal answer $collect_link"),
    "rehearsal key create": ("rehearsal-keys", "sealpipe rehearsal key create"),
    "rehearsal key list": ("rehearsal-keys", "sealpipe rehearsal key list"),
    "rehearsal open": ("rehearsal-people", "sealpipe rehearsal open"),
    "rehearsal key revoke": ("rehearsal-keys", "sealpipe rehearsal key revoke"),
    "rehearsal webhook add": ("rehearsal-keys", "sealpipe rehearsal webhook add"),
    "rehearsal webhook list": ("rehearsal-keys", "sealpipe rehearsal webhook list"),
    "rehearse": ("rehearse", "sealpipe rehearse -- sealpipe share"),
    "request": ("collect", "sealpipe request -a"),
    "requests expire": ("previous-key", "sealpipe requests expire $code"),
    "requests link": ("reminders", "sealpipe requests link acme.json"),
    "requests list": ("collect", "sealpipe requests list"),
    "requests purge": ("requests", "sealpipe requests purge $code"),
    "requests remind": ("reminders", "sealpipe requests remind acme.json"),
    "requests show": ("requests", "sealpipe requests show $code"),
    "requests submissions": ("requests", "sealpipe requests submissions $code"),
    "resume": ("exit-09-unknown", "sealpipe resume $id"),
    "run": ("run", "sealpipe run -e PGPASSWORD=env:DB_PASSWORD"),
    "server account list": ("server", "sealpipe server account list"),
    "server database check": ("server", "sealpipe server database check"),
    "server init": ("server", "sealpipe server init --public-url https://secrets.example.com"),
    "server key create": (
        "server",
        "sealpipe server key create --account ci --custody-public-key BGsX0",
    ),
    "server mail list": ("server", "sealpipe server mail list"),
    "server webhook list": ("server", "sealpipe server webhook list"),
    "share": ("smoke", "sealpipe share -f"),
    "shares expire": ("expire-several", "sealpipe shares expire --name"),
    "shares list": ("names", "sealpipe shares list"),
    "shares show": ("shares", "sealpipe shares show"),
    "stats": ("stats", "sealpipe stats"),
    "tools call": ("tools", "sealpipe tools call list_shares"),
    "tools list": ("tools", "sealpipe tools list"),
    "unseal": ("unseal", "sealpipe unseal $sealed_link"),
}
"""For each command a scenario, and how the line begins that is shown: the first that ends with 0
and prints.
"""


class Step(NamedTuple):
    """A command of a scenario: its line, the lines that it prints, and its exit code."""

    line: str
    printed: tuple[str, ...]
    code: int


@cache
def steps(scenario: Path) -> tuple[Step, ...]:
    """Return the commands of a scenario."""
    found = [Step("", (), 0)]
    for line in scenario.read_text(encoding="utf-8").splitlines():
        mark, _, rest = line.partition(" ")
        last = found[-1]
        if mark == "$":
            found.append(Step(rest, (), 0))
        elif mark in (">", "2>") and last.line:
            found[-1] = last._replace(printed=(*last.printed, rest))
        elif mark == "exit":
            found[-1] = last._replace(code=int(rest))
        elif mark not in ("|", "", "#"):
            found.append(Step("", (), 0))
    return tuple(step for step in found if step.line)


def show(command: str) -> str:
    """Return a command's example as the text of a terminal; empty if it has none."""
    if command not in SHOWN:
        return ""
    scenario, beginning = SHOWN[command]
    found = [each for each in steps(SCENARIOS / f"{scenario}.txt") if not each.code]
    begun = [each for each in found if each.line.removeprefix("env ").startswith(beginning)]
    step = next((each for each in begun if each.printed), begun[0])
    printed = [line.replace("<no newline>", "") for line in step.printed[:LINES_AT_MOST]]
    more = ["..."] if len(step.printed) > LINES_AT_MOST else []
    # In double quotes, the reader's shell would replace what the command's own shell is to replace.
    line = re.sub(r'"([^"]*\$[A-Z][^"]*)"', r"'\1'", step.line.removeprefix("env "))
    return "\n".join(_PLACE.sub(_name_place, each) for each in [f"$ {line}", *printed, *more])


def _name_place(place: re.Match[str]) -> str:
    return (place[1] or place[2] or "...").upper().rstrip("0123456789")


_PLACE = re.compile(r"<(?:\.\.\.|(\w+))>|\$([a-z_]+\d*|HERE|HOME|PORT|SERVICE|KEY_ID)\b")


def observed() -> Iterator[tuple[str, int]]:
    """Yield every command of the scenarios with the exit code that it ends with, if that is its
    own.
    """
    for file in sorted(SCENARIOS.glob("*.txt")):
        for step in steps(file):
            words = shlex.split(step.line)
            if "sealpipe" in words and step.code < 128:
                yield _find_name(words[words.index("sealpipe") + 1 :]), step.code


def _find_name(words: list[str]) -> str:
    node = root()
    for word in words:
        child = next((each for each in node.children if each.name == f"{node.name} {word}"), None)
        if child is None:
            break
        node = child
    return node.name
