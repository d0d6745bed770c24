"""One step of an action: what was given, sealpipe in it, and what it hands on."""

from __future__ import annotations

import os
from collections.abc import Container, Mapping
from pathlib import Path

from sealpipe_action import files, inputs, telling
from sealpipe_action.child import Children, Done
from sealpipe_action.inputs import InputError
from sealpipe_action.table import PREFIX

OUTCOMES: Mapping[int, str] = {
    9: "unknown",
    11: "undelivered",
    15: "pending",
    16: "expired",
    130: "interrupted",
    143: "interrupted",
}
"""What an exit code says of the outcome; any other but 0 is `failed`."""

_KEYS = ("SEALPIPE_API_KEY", "SEALPIPE_API_KEY_FILE")


class Step:
    """`given` are the inputs; outputs are collected in `outputs` and set at the end, after a failure, too."""

    def __init__(self, action: str, environ: Mapping[str, str]) -> None:
        self.action = action
        self.given = inputs.given(action, environ)
        self.executable = environ.get(f"{PREFIX}SEALPIPE") or "sealpipe"
        # Ours mean nothing to sealpipe; PYTHON* of an earlier step would be code in it.
        self.environ = {name: value for name, value in environ.items() if not name.startswith((PREFIX, "PYTHON"))}
        self.children = Children(self.environ)
        self.rehearsing = self.given.get("rehearse") == "true"
        self.outputs: dict[str, str] = {"executable": self.executable}
        self.summary = ""

    def on(self, name: str) -> bool:
        """Whether a switch is on."""
        return self.given.get(name) == "true"

    def sealpipe(self, *words: str, expected: Container[int] = ()) -> Done:
        """Run it; against a service of its own where this is a rehearsal. InputError where it cannot be run."""
        around = [self.executable, "rehearse", "--"] if self.rehearsing else []
        try:
            return self.children.run([*around, self.executable, *words], expected=expected)
        except OSError as error:
            raise InputError(f"{self.executable} cannot be run: {os.strerror(error.errno or 0)}") from None

    def options(self) -> list[str]:
        """The options for what was given."""
        return inputs.words(self.action, self.given, rehearsing=self.rehearsing)

    def without_key(self) -> str:
        """Why there is no credential; empty where there is one, or may be (in a config file)."""
        if self.rehearsing or self.given["api-key-file"] or any(self.environ.get(name) for name in _KEYS):
            return ""
        home = self.environ.get("XDG_CONFIG_HOME") or f"{self.environ.get('HOME', '')}/.config"
        if self.environ.get("SEALPIPE_CONFIG") or Path(home, "sealpipe", "config.toml").is_file():
            return ""
        if "SEALPIPE_API_KEY" not in self.environ:
            return "the step has no credential: give it env: SEALPIPE_API_KEY"
        return (
            "SEALPIPE_API_KEY is empty: runs from forks and of Dependabot get empty secrets; else there is no secret "
            "of that name"
        )

    def ended(self, code: int, outcome: str) -> int:
        """Note how it ended. The step's exit code."""
        known = outcome if code == 0 else OUTCOMES.get(code, "failed")
        self.outputs |= {"outcome": known, "error-code": str(code) if code else ""}
        return code

    def hand_on(self, outputs: Mapping[str, str]) -> None:
        """Set outputs, now. InputError where one cannot be set; then none is."""
        try:
            files.set_outputs(self.environ, outputs)
        except OSError as error:
            why = os.strerror(error.errno or 0)
            raise InputError(
                f"GITHUB_OUTPUT cannot be written: {why}", "what the log says was done is done", 11
            ) from None
        except ValueError as error:
            raise InputError(f"the output {error} is larger than the runner takes", "store it: use to or dir") from None

    def finish(self) -> None:
        """Set what is left to set, and the summary."""
        self.hand_on(self.outputs)
        try:
            if self.summary and self.on("summary") and not files.add_summary(self.environ, self.summary):
                telling.annotate("notice", "there is no summary: it is larger than the runner takes")
        except OSError as error:
            telling.annotate("warning", f"there is no summary: {os.strerror(error.errno or 0)}")


def text_of(path: str, name: str) -> str:
    """The text of a file that an input names. InputError where it cannot be read."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{name}: {path} cannot be read: {os.strerror(error.errno or 0)}") from None
    except UnicodeDecodeError:
        raise InputError(f"{name}: {path} is not UTF-8 text") from None


def tell(done: Done) -> None:
    """What a dry run would do, in the log: sealpipe has made it harmless."""
    for line in done.out.splitlines():
        telling.note(line)
