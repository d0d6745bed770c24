"""Hostile submissions through the real command line: a service on a socket, processes, pipes, a
terminal, a CI job.
"""

from __future__ import annotations

import json
import os
import pty
import subprocess
import termios
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress

from cli.collect.hostile_files import files_in
from cli.collect.hostile_output import as_json, fields_in, harmless, keeps_to_itself
from cli.collect.submitter import Asked, ask
from sealpipe import ci_systems
from sealpipe.wire.encoding import decode_base64url
from sealpipe_rehearsal.people import LinkRefusedError
from support.commands import SEALPIPE
from support.github_log import Masker, command, read_lines
from support.hostile import CANARY, USER, Hostile, sealed
from support.job import Job
from support.terminal import PATIENCE

WAYS = ("text", "json", "terminal", "github", "folder", "dotenv")


class Commands:
    """`sealpipe collect` of requests that were answered so."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self.figures: Counter[str] = Counter()
        self._members: list[str] = []

    def play(self, sent: Sequence[Hostile], way: str) -> None:
        """All of them to one request, and collected one way. Raises AssertionError."""
        asked = ask(self._job)
        public_key = decode_base64url(asked.receipt.public_key)
        for each in sent:
            try:
                asked.send(sealed(each, public_key) or "x")
            except LinkRefusedError:
                assert each.spoilt  # the service takes base64 only
        wanted = [list(each.fields) for each in sent if each.fields is not None]
        self._members = [
            text
            for each in sent
            if each.fields is not None
            for text in _texts(_loaded(each.payload))
        ]
        getattr(self, f"_{way}")(asked, wanted)
        self.figures[f"collect: {way}"] += 1
        self.figures["submissions"] += len(sent)

    def _text(self, asked: Asked, wanted: Sequence[list[tuple[str, str, str]]]) -> None:
        out, err = self._run("collect", asked.code, "--pick", "each")
        keeps_to_itself(err)
        # The service's order is its own: no line is added, and what has nothing to be escaped
        # stands there.
        lines = harmless(out).split("\n")[:-1]
        assert len(lines) == sum(map(len, wanted)) + max(len(wanted) - 1, 0)

    def _json(self, asked: Asked, wanted: Sequence[list[tuple[str, str, str]]]) -> None:
        out, err = self._run("collect", asked.code, "--pick", "each", "--output", "json")
        keeps_to_itself(err)
        found = [fields_in(row) for row in as_json(out)["submissions"]]
        assert sorted(found) == sorted(wanted)

    def _terminal(self, asked: Asked, wanted: Sequence[list[tuple[str, str, str]]]) -> None:
        shown = self._on_a_terminal("collect", asked.code, "--pick", "each")
        harmless(shown)
        assert shown.count(b"\n") >= sum(map(len, wanted))

    def _github(self, asked: Asked, wanted: Sequence[list[tuple[str, str, str]]]) -> None:
        """Of what a runner takes for commands, there are masks of what was typed, and words of our
        own.
        """
        out, err = self._run(
            "collect",
            asked.file(f"{asked.code}.json"),
            "--pick",
            "each",
            "--print",
            GITHUB_ACTIONS="true",
            CI="true",
        )
        harmless(out)
        values = [value for fields in wanted for _, value, _ in fields]
        typed = "\n".join(form for value in (*values, *self._members) for form in _forms(value))
        mask = Masker()
        for line in read_lines(err.decode()):
            found = command(line)
            if found is None:
                keeps_to_itself(line.encode() + b"\n")
            elif found.name == "add-mask":
                assert found.data in typed, line
                mask.add(found.data)
            else:
                assert found.name in ("warning", "error"), line
                keeps_to_itself(found.data.encode() + b"\n")
        # The prompt `user` is of type text, and so no secret.
        shown = [line for line in map(mask, read_lines(out.decode())) if CANARY in line]
        assert all(line.startswith(f"{USER}: ") for line in shown), shown

    def _folder(self, asked: Asked, wanted: Sequence[list[tuple[str, str, str]]]) -> None:
        here = self._job.terminal.here
        before = files_in(here)
        words = (
            "collect",
            asked.file(f"{asked.code}.json"),
            "--pick",
            "each",
            "--dir",
            f"out-{asked.code}",
        )
        for how in ("text", "json"):
            out, err = self._run(*words, "--output", how)
            keeps_to_itself(err)
            keeps_to_itself(out.replace(b"\t", b" ")) if how == "text" else as_json(out)
        added = files_in(here).keys() - before.keys() - {f"{asked.code}.json"}
        names = [name.split("/") for name in added]
        assert all(len(name) == 3 and name[0] == f"out-{asked.code}" for name in names), added
        taken = [fields for fields in wanted if len(fields) <= 1000]
        assert len(names) == sum(len(fields) + 1 for fields in taken)

    def _dotenv(self, asked: Asked, wanted: Sequence[list[tuple[str, str, str]]]) -> None:
        del wanted
        here = self._job.terminal.here
        before = files_in(here)
        target = f"dotenv:{asked.code}-{{submission}}.env#PASSWORD=staging_password,USER_NAME=user"
        out, err = self._run(
            "collect", asked.file(f"{asked.code}.json"), "--pick", "each", "--to", target
        )
        keeps_to_itself(err)
        if out:
            harmless(out, tabs=3)
        added = files_in(here).keys() - before.keys() - {f"{asked.code}.json"}
        assert all(name.startswith(f"{asked.code}-") and name.endswith(".env") for name in added), (
            added
        )
        assert out.count(b"\n") == len(added)

    def _run(self, *words: str, **environ: str) -> tuple[bytes, bytes]:
        done = subprocess.run(
            [*SEALPIPE, *words],
            env=self._job.terminal.with_environ(environ),
            cwd=self._job.terminal.here,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode in (0, 12, 13, 14, 15, 16, 17), done
        assert b"Traceback" not in done.stderr, done.stderr
        return done.stdout, done.stderr

    def _on_a_terminal(self, *words: str) -> bytes:
        """Both streams, on a terminal that changes nothing of them."""
        ours, theirs = pty.openpty()
        about = termios.tcgetattr(theirs)
        about[1] &= ~termios.OPOST
        termios.tcsetattr(theirs, termios.TCSANOW, about)
        process = subprocess.Popen(
            [*SEALPIPE, *words],
            env=self._job.terminal.with_environ({}),
            cwd=self._job.terminal.here,
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)
        shown = b""
        with suppress(OSError):  # EIO: the other end is closed
            while data := os.read(ours, 65536):
                shown += data
        os.close(ours)
        process.wait(PATIENCE)
        return shown


def _forms(value: str) -> tuple[str, str, str]:
    """A value as it is, and as it may stand on stdout."""
    shown = "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in value)
    return value, ci_systems.escape_inline(shown), ci_systems.escape_json(json.dumps(value))


def _loaded(payload: bytes) -> object:
    """A submission, its numbers as they are written."""
    return json.loads(payload, parse_int=str, parse_float=str)


def _texts(value: object) -> Iterator[str]:
    """All that stands in it, in members that nobody knows, too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)
