"""Scenarios of the command line: text files of commands, with all that each prints.

docs/CONTRIBUTING.md tells how to write one. Every line is a step, or belongs to the step above it:

    $ [NAME=VALUE ...] PROGRAM WORDS [< FILE]   runs a program; `sealpipe` in this process
    > TEXT     a line of its stdout             2> TEXT    a line of its stderr
    exit N     its exit code, if it is not 0    | TEXT     a line of the file that the step writes

Steps that are no commands: `env NAME=VALUE`, `unset NAME ...`, `file NAME [MODE]`; at the service
`key [OPTION=VALUE ...]`, `account OPTION=VALUE ...`, `fault [NAME OPTION=VALUE ...]`, `advance
SECONDS` and `sent` (the requests since the last `sent`); people with a browser `open LINK
[PASSCODE]` and `submit LINK LABEL=VALUE ...`.

`$SERVICE` and `$PORT` are the service's address and port, `$NOBODY` is a port where nobody listens,
`$HOME` and `$HERE` are the user's folders.
"""

from __future__ import annotations

import difflib
import json
import re
import shlex
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sealpipe_rehearsal.people import LinkRefusedError
from sealpipe_rehearsal.running_service import RunningService
from support.ports import silent_port
from support.terminal import Done, Terminal, opened

_WORD = "[A-Za-z0-9_-]"
_BASE = "https?://[a-z0-9.:]+/(?:s/)?"
KINDS = {
    "collect_link": rf"{_BASE}r/{_WORD}{{12}}",
    "link": rf"{_BASE}{_WORD}{{12}}#1{_WORD}{{43}}",
    "sealed_link": rf"sealpipe-link\.{_WORD}+\.{_WORD}+",
    "credential": rf"svc_sk_live_{_WORD}{{16}}\.{_WORD}{{43}}\.{_WORD}{{43}}",
    "public_key": rf"\bB{_WORD}{{86}}\b",
    "marker": rf"(?:{_WORD}{{12}}|x)\.[0-9a-f]{{12,32}}",
    "digest": r"\b[0-9a-f]{32,64}\b",
    "id": r"\b[0-9a-f]{12}\b",
    "code": rf"{_WORD}{{12}}",
}
"""What varies, as `<kind>` or `<kind2>`: what stands there is `$kind` or `$kind2` from then on."""
LOOSE = {
    "time": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ",
    "date": r"\d{4}-\d\d-\d\d",
    "number": r"\d+",
    "...": r"(?:(?!canary)[^\n\0])*",
}
"""What varies and is not remembered. A line `...` is any number of lines."""
_PLACE = re.compile(rf"<(?:({'|'.join(KINDS)})\d*|{'|'.join(map(re.escape, LOOSE))})>")


@dataclass
class Step:
    """A step: where its lines begin and end, and what they say."""

    begin: int
    end: int
    text: str
    lines: dict[str, list[str]] = field(default_factory=lambda: {"|": [], ">": [], "2>": []})
    code: int = 0


def parse(text: str) -> list[Step]:
    """The steps of a file. Its first line is the title."""
    assert text.startswith("# "), "the first line is the title: # TITLE"
    steps: list[Step] = []
    for number, line in enumerate(text.splitlines(), 1):
        mark, _, rest = line.partition(" ")
        if mark in ("|", ">", "2>"):
            steps[-1].lines[mark].append(rest)
            steps[-1].end = number
        elif mark == "exit":
            steps[-1].code, steps[-1].end = int(rest), number
        elif mark not in ("", "#"):
            steps.append(Step(number, number, line))
    return steps


class Scenario:
    """A file that is run by a user at a service."""

    def __init__(self, path: Path, user: Terminal, service: RunningService) -> None:
        self._path, self._user, self._service = path, user, service
        self.values = {
            "SERVICE": service.origin,
            "PORT": str(service.address.port),
            "NOBODY": str(silent_port()),
        }
        self.values |= {"HERE": str(user.here), "HOME": str(user.home)}
        self._use(user.environ["SEALPIPE_API_KEY"])
        self._told = 0

    def run(self) -> None:
        """Run every step, and compare all that it does with what the file says."""
        for step in parse(self._path.read_text("utf-8")):
            done = self.take(step)
            assert self.matches(step, done), self._difference(step, done)

    def take(self, step: Step) -> Done:
        """Do what a step says."""
        words = [self._filled(word) for word in shlex.split(step.text)]
        try:
            done = self._run(words[1:]) if words[0] == "$" else self._act(words, step.lines["|"])
        except LinkRefusedError as refused:
            return Done(refused.exit_code, "", f"{refused}\n")
        return Done(
            done.code,
            *(re.sub(r"(?<=[^\n])\Z", "<no newline>\n", text) for text in (done.out, done.err)),
        )

    def _run(self, words: list[str]) -> Done:
        environ: dict[str, str | None] = {}
        while re.match(r"[A-Z]\w*=", words[0]):
            name, _, environ[name] = words.pop(0).partition("=")
        stdin = b""
        if words[-2:-1] == ["<"]:
            *words, _, file = words
            stdin = (self._user.here / file).read_bytes()
        if words[0] == "sealpipe":
            return self._user.sealpipe(*words[1:], stdin=stdin, **environ)
        return self._user.run(words, stdin=stdin, environ=environ)

    def _act(self, words: list[str], body: list[str]) -> Done:
        """Do a step that is no command; it may print something all the same."""
        user, service, out = self._user, self._service, ""
        match words:
            case ["env", *changes]:
                user.environ |= _options(changes)
            case ["unset", *names]:
                user.environ = user.with_environ(dict.fromkeys(names))
            case ["file", name, *mode]:
                text = "".join(f"{self._filled(line)}\n" for line in body)
                user.file(name, text, int(mode[0], 8) if mode else 0o600)
            case ["key", *options]:
                self._use(service.create_key(**_typed(options)).reveal())
            case ["account", *options]:
                service.set_account(**_typed(options))
            case ["fault", *row]:
                service.set_faults(*([{"fault": row[0], **_typed(row[1:])}] if row else []))
            case ["advance", seconds]:
                service.advance(float(seconds))
            case ["sent"]:
                seen = [
                    f"{each.method} {each.target}\n"
                    for each in service.seen()
                    if each.target.startswith("/v1/")
                ]
                out, self._told = "".join(seen[self._told :]), len(seen)
            case ["open", link, *passcode]:
                out = "".join(
                    f"{label}: {value}\n"
                    for label, value in opened(service, link, *passcode).items()
                )
            case ["submit", link, *values]:
                out = f"{service.submitter().submit(link, _options(values))}\n"
            case _:
                raise AssertionError(f"there is no step {words[0]!r} of {len(words)} words")
        return Done(0, out, "")

    def _use(self, credential: str) -> None:
        self._user.environ["SEALPIPE_API_KEY"] = credential
        self.values |= zip(
            ("KEY_ID", "AUTH", "CUSTODY"), credential.partition("_live_")[2].split("."), strict=True
        )

    def _filled(self, text: str) -> str:
        return re.sub(r"\$(\w+)", lambda found: self.values.get(found[1], found[0]), text)

    def matches(self, step: Step, done: Done) -> bool:
        """Whether a step did what stands in the file; if so, what varies is known from now on."""
        names: set[str] = set()
        pattern = "\0".join(
            "".join(self._pattern(line, names) for line in step.lines[mark]) for mark in (">", "2>")
        )
        found = re.fullmatch(pattern, f"{done.out}\0{done.err}")
        if found is not None:
            self.values |= found.groupdict()
        return found is not None and step.code == done.code

    def _pattern(self, line: str, names: set[str]) -> str:
        """The regular expression of a line. `names` are the groups that there are."""
        if line == "...":
            return r"(?:(?!.*canary)[^\n\0]*\n)*?"
        at, pattern = 0, ""
        for found in _PLACE.finditer(line):
            name, kind = found[0].strip("<>"), found[1]
            group = (
                LOOSE[name]
                if not kind
                else f"(?P={name})"
                if name in names
                else f"(?P<{name}>{KINDS[kind]})"
            )
            pattern, at = (
                pattern + re.escape(self._filled(line[at : found.start()])) + group,
                found.end(),
            )
            names |= {name} if kind else set()
        return pattern + re.escape(self._filled(line[at:])) + "\n"

    def _difference(self, step: Step, done: Done) -> str:
        """Where a step stands, and its lines: one that fits a line that came is shown as that."""
        came = [
            f"{mark} {line}"
            for mark, text in ((">", done.out), ("2>", done.err))
            for line in text.splitlines()
        ]
        wanted = [f"{mark} {line}" for mark in (">", "2>") for line in step.lines[mark]]
        for number, line in enumerate(wanted):
            fits = (each for each in came if re.fullmatch(self._pattern(line, set()), f"{each}\n"))
            wanted[number] = next(fits, self._filled(line))
        wanted, came = [*wanted, f"exit {step.code}"], [*came, f"exit {done.code}"]
        shown = difflib.unified_diff(wanted, came, "expected", "got", n=9, lineterm="")
        return "\n".join([f"{self._path}:{step.begin}: {step.text}", *shown])


def _options(words: list[str]) -> dict[str, str]:
    return dict(word.split("=", 1) for word in words)


def _typed(words: list[str]) -> dict[str, Any]:
    """Options whose values are JSON, scopes parted by commas, or text."""
    found: dict[str, Any] = dict(_options(words))
    for name, value in found.items():
        with suppress(json.JSONDecodeError):
            found[name] = value.split(",") if name == "scopes" else json.loads(value)
    return found
