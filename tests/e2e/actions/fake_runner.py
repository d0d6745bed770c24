"""A fake of a job on a GitHub runner: it runs the composite steps of an action.yml for real, with
bash.

Written from CI-FACTS and the runner's published source: `with:` and `env:` are printed first,
commands are read from stdout and stderr, files are parsed after each step, declared outputs are set
after a failure, too, a job output that holds a masked value is dropped, the summary is scrubbed, a
cancelled step gets SIGINT and then SIGTERM.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from support.github_log import SUMMARY_LIMIT, Command, Masker, command, pairs, read_lines

FILES = ("GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STATE", "GITHUB_STEP_SUMMARY")
PATIENCE = 90
INNER = {"folder", "extras"}
"""Outputs of inner steps that are for the steps after them: where the checkout is, and what these
tests' set-up got.
"""


@dataclass
class Ended:
    """A step that used an action: the exit code that ended it, what it handed on, and what its
    inner steps did.
    """

    code: int
    outputs: dict[str, str]
    pairs: list[tuple[str, str]] = field(default_factory=list)
    """What the inner steps wrote into GITHUB_OUTPUT."""
    commands: list[Command] = field(default_factory=list)
    raw: str = ""
    """What they wrote to stdout and stderr, before any masking."""

    def annotations(self, level: str) -> list[str]:
        return [each.data for each in self.commands if each.name == level]


class FakeRunner:
    """One job. `log` is what everybody sees, `summary` what the run's page shows."""

    def __init__(
        self,
        place: Path,
        environ: Mapping[str, str],
        hidden: Mapping[str, str] | None = None,
        *,
        debug: bool = False,
    ) -> None:
        self.place, self.debug = place, debug
        self.temp, self.workspace = place / "_temp", place / "work"
        for folder in (self.temp, self.workspace):
            folder.mkdir(parents=True, exist_ok=True)
        self.secrets = dict(hidden or {})
        self.mask = Masker()
        for value in self.secrets.values():
            self.mask.add(value)
        self.log: list[str] = []
        self.summary = ""
        self.exported: dict[str, str] = {}
        self.environ = {
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_REPOSITORY": "acme/app",
            "GITHUB_RUN_ID": "77",
            "GITHUB_RUN_ATTEMPT": "1",
            "GITHUB_JOB": "deploy",
            "GITHUB_WORKSPACE": str(self.workspace),
            "RUNNER_TEMP": str(self.temp),
            "RUNNER_OS": "Linux",
            **({"RUNNER_DEBUG": "1"} if debug else {}),
            **environ,
        }
        self._cancel: tuple[Callable[[], bool], float] | None = None

    @property
    def text(self) -> str:
        return "\n".join(self.log)

    def cancel(self, when: Callable[[], bool], *, patience: float = 7.5) -> None:
        """Cancel the job once `when` is true: SIGINT to the step's process, and after `patience` s
        SIGTERM.
        """
        self._cancel = (when, patience)

    def uses(
        self, action: Path, given: Mapping[str, str], env: Mapping[str, str] | None = None
    ) -> Ended:
        """A step with `uses:`, `with:` and `env:`."""
        manifest: dict[str, Any] = yaml.safe_load(
            (action / "action.yml").read_text(encoding="utf-8")
        )
        assert manifest["runs"]["using"] == "composite"
        self._print(f"Run ./{action.name}", given, env or {})
        unknown = set(given) - set(manifest["inputs"])
        if unknown:
            self._say(f"##[warning]Unexpected input(s) {sorted(unknown)}")
        values = {
            name: str(each.get("default", "")) for name, each in manifest["inputs"].items()
        } | dict(given)
        context: dict[str, Any] = {
            "inputs": values,
            "steps": {},
            "github": {"action_path": str(action)},
        }
        ended = Ended(0, {})
        for step in manifest["runs"]["steps"]:
            self._step(step, context, action, env or {}, ended)
            if ended.code:
                break
        ended.outputs = {
            name: evaluated(str(each["value"]), context)
            for name, each in manifest["outputs"].items()
        }
        self._debug(ended.outputs)
        return ended

    def job_outputs(self, wanted: Mapping[str, str]) -> dict[str, str]:
        """What the next job gets of them: nothing that is empty, nothing that holds a masked
        value.
        """
        kept = {}
        for name, value in wanted.items():
            if value and self.mask(value) != value:
                self._say(f"##[warning]Skip output '{name}' since it may contain secret.")
            elif value:
                kept[name] = value
        return kept

    def _step(
        self,
        step: Mapping[str, Any],
        context: dict[str, Any],
        action: Path,
        env: Mapping[str, str],
        ended: Ended,
    ) -> None:
        assert step["shell"] == "bash"
        if not holds(step.get("if", ""), context):
            return
        own = {name: evaluated(str(value), context) for name, value in step.get("env", {}).items()}
        script = self.temp / f"{secrets.token_hex(8)}.sh"
        script.write_text(evaluated(step["run"], context), encoding="utf-8")
        self._print(f"Run {step['run'].splitlines()[0]}", {}, {**env, **own})
        files = {
            name: self.temp / "_runner_file_commands" / f"{name}_{secrets.token_hex(8)}"
            for name in FILES
        }
        for file in files.values():
            file.parent.mkdir(exist_ok=True)
            file.touch()
        environ = {**self.environ, **self.exported, **env, **own}
        environ |= {
            "GITHUB_ACTION_PATH": str(action),
            **{name: str(file) for name, file in files.items()},
        }
        ended.code = self._run(
            ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", str(script)], environ, ended
        )
        read = {name: file.read_text(encoding="utf-8") for name, file in files.items()}
        outputs = pairs(read["GITHUB_OUTPUT"])
        self._debug(dict(outputs))
        ended.pairs += outputs
        context["steps"].setdefault(step["id"], {})["outputs"] = dict(outputs)
        self.exported |= dict(pairs(read["GITHUB_ENV"]))
        assert read["GITHUB_PATH"] == read["GITHUB_STATE"] == ""
        if len(read["GITHUB_STEP_SUMMARY"]) <= SUMMARY_LIMIT:
            self.summary += "".join(
                f"{self.mask(line)}\n" for line in read["GITHUB_STEP_SUMMARY"].splitlines()
            )

    def _run(self, argv: list[str], environ: Mapping[str, str], ended: Ended) -> int:
        process = subprocess.Popen(
            argv,
            env=dict(environ),
            cwd=self.workspace,
            stdin=subprocess.DEVNULL,
            stdout=-1,
            stderr=-1,
        )
        over = threading.Event()
        canceller = threading.Thread(target=self._watch, args=(process, over), daemon=True)
        canceller.start()
        with selectors.DefaultSelector() as streams:
            rest = {}
            for stream in (process.stdout, process.stderr):
                assert stream is not None
                streams.register(stream, selectors.EVENT_READ)
                rest[stream] = b""
            while rest:
                for key, _ in streams.select(PATIENCE):
                    stream = key.fileobj
                    data = os.read(key.fd, 65536)
                    whole, mark, left = (
                        (rest[stream] + data).rpartition(b"\n")
                        if data
                        else (rest[stream], b"", b"")
                    )
                    rest[stream] = left
                    self._read((whole + mark).decode("utf-8", "replace"), ended)
                    if not data:
                        streams.unregister(stream)
                        del rest[stream]
                        stream.close()
        code = process.wait(PATIENCE)
        over.set()
        canceller.join()
        return code if code >= 0 else 128 - code

    def _watch(self, process: subprocess.Popen[bytes], over: threading.Event) -> None:
        if self._cancel is None:
            return
        when, patience = self._cancel
        deadline = time.monotonic() + PATIENCE
        while not when() and time.monotonic() < deadline:
            if over.wait(0.02):
                return
        for number, seconds in (
            (signal.SIGINT, patience),
            (signal.SIGTERM, 2.5),
            (signal.SIGKILL, PATIENCE),
        ):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, number)
            if over.wait(seconds):
                return

    def _read(self, text: str, ended: Ended) -> None:
        ended.raw += text
        for line in read_lines(text):
            found = command(line)
            if found is None:
                self._say(line)
                continue
            ended.commands.append(found)
            if found.name == "add-mask":
                self.mask.add(found.data)
            elif found.name in ("error", "warning", "notice"):
                self._say(f"##[{found.name}]{found.data}")
            elif found.name != "debug" or self.debug:
                self._say(line)

    def _print(self, title: str, given: Mapping[str, str], env: Mapping[str, str]) -> None:
        self._say(f"##[group]{title}")
        for head, values in (("with:", given), ("env:", env)):
            for number, (name, value) in enumerate(values.items()):
                self._say(f"{head}\n  {name}: {value}" if number == 0 else f"  {name}: {value}")
        self._say("##[endgroup]")

    def _debug(self, outputs: Mapping[str, str]) -> None:
        for name, value in outputs.items() if self.debug else ():
            self._say(f"##[debug]{name}='{value}'")

    def _say(self, line: str) -> None:
        self.log.append(self.mask(line))


def holds(condition: str, context: Mapping[str, Any]) -> bool:
    """Whether a step runs: `NAME == 'TEXT'`, or no condition."""
    left, equals, right = condition.partition(" == ")
    return not equals or evaluated(f"${{{{ {left} }}}}", context) == right.strip("'")


def evaluated(text: str, context: Mapping[str, Any]) -> str:
    """Text with its `${{ }}` filled in: names with dots, quoted words, and || between them."""

    def one(term: str) -> str:
        if term.startswith("'"):
            return term[1:-1]
        found: Any = context
        for part in term.split("."):
            found = found.get(part, {}) if isinstance(found, Mapping) else {}
        return found if isinstance(found, str) else ""

    def whole(match: re.Match[str]) -> str:
        terms = [one(term.strip()) for term in match[1].split("||")]
        return next((term for term in terms if term), "")

    return re.sub(r"\$\{\{(.*?)\}\}", whole, text)
