"""One step of an action: its inputs, its sealpipe commands, its outputs and summary."""

from __future__ import annotations

import os
from collections.abc import Container, Mapping
from pathlib import Path

from sealpipe_action import inputs, runner_output
from sealpipe_action.inputs import InputError
from sealpipe_action.manifest import PREFIX
from sealpipe_action.process import ProcessResult, ProcessRunner

OUTCOMES: Mapping[int, str] = {
    9: "unknown",
    11: "undelivered",
    15: "pending",
    16: "expired",
    18: "troubled",
    130: "interrupted",
    143: "interrupted",
}
"""The outcome for an exit code; any other than 0 is `failed`."""


class Step:
    """`values` are the inputs by name. `outputs` are set at the end, even after a failure."""

    def __init__(self, action: str, environ: Mapping[str, str]) -> None:
        self.action = action
        self.values = inputs.read_inputs(action, environ)
        self.executable = environ.get(f"{PREFIX}SEALPIPE") or "sealpipe"
        # sealpipe must not see our variables; PYTHON* variables of an earlier step could inject
        # code
        self.environ = {
            name: value
            for name, value in environ.items()
            if not name.startswith((PREFIX, "PYTHON"))
        }
        self.processes = ProcessRunner(self.environ)
        self.rehearsing = self.values.get("rehearse") == "true"
        self.outputs: dict[str, str] = {"executable": self.executable}
        self.summary = ""

    def is_on(self, name: str) -> bool:
        """Return whether a switch is true."""
        return self.values.get(name) == "true"

    def sealpipe(
        self, *arguments: str, stdin: str = "", expected: Container[int] = ()
    ) -> ProcessResult:
        """Run sealpipe, in a rehearsal against a local service.

        Raises InputError if it cannot be run.
        """
        prefix = [self.executable, "rehearse", "--job", "--"] if self.rehearsing else []
        try:
            return self.processes.run(
                [*prefix, self.executable, *arguments], stdin=stdin, expected=expected
            )
        except OSError as error:
            raise InputError(
                f"{self.executable} cannot be run: {os.strerror(error.errno or 0)}"
            ) from None

    def options(self) -> list[str]:
        """Return the command-line options for the inputs."""
        return inputs.build_options(self.action, self.values, rehearsing=self.rehearsing)

    def bind_options(self) -> list[str]:
        """Return the option for the text that a sealed link is bound to: by default this run, none
        for `none`.
        """
        bind = self.values["bind"].strip()
        if bind:
            return [] if bind == "none" else [f"--bind={bind}"]
        run = [self.environ.get(name, "") for name in ("GITHUB_REPOSITORY", "GITHUB_RUN_ID")]
        if not all(run):
            raise InputError(
                "bind has no default: GITHUB_REPOSITORY or GITHUB_RUN_ID is not set",
                "set the input bind",
            )
        return [f"--bind=github:{':'.join(run)}"]

    def annotate_ignored_inputs(self) -> None:
        """Name the inputs that are set but ignored in a rehearsal."""
        ignored = inputs.ignored_in_rehearsal(self.action, self.values)
        if ignored:
            runner_output.annotate(
                "notice",
                f"ignored in a rehearsal, which sends and stores nothing: {', '.join(ignored)}",
            )

    def end(self, code: int, outcome: str) -> int:
        """Set the outputs outcome and error-code; return the exit code."""
        outcome_name = outcome if code == 0 else OUTCOMES.get(code, "failed")
        self.outputs |= {"outcome": outcome_name, "error-code": str(code) if code else ""}
        return code

    def set_outputs(self, outputs: Mapping[str, str]) -> None:
        """Set outputs now, all or none. Raises InputError if one cannot be set."""
        try:
            runner_output.set_outputs(self.environ, outputs)
        except OSError as error:
            reason = os.strerror(error.errno or 0)
            raise InputError(
                f"GITHUB_OUTPUT cannot be written: {reason}",
                "everything that the log reports as done is done",
                11,
            ) from None
        except ValueError as error:
            raise InputError(
                f"the output {error} is larger than the runner accepts",
                "store it instead: use to or dir",
            ) from None

    def finish(self) -> None:
        """Set the remaining outputs and write the summary."""
        self.set_outputs(self.outputs)
        try:
            if (
                self.summary
                and self.is_on("summary")
                and not runner_output.add_summary(self.environ, self.summary)
            ):
                runner_output.annotate("notice", "no summary: it is larger than the runner accepts")
        except OSError as error:
            runner_output.annotate("warning", f"no summary: {os.strerror(error.errno or 0)}")


def read_text_file(path: str, name: str) -> str:
    """Read the file that an input names. Raises InputError if it cannot be read."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"{name}: {path} cannot be read: {os.strerror(error.errno or 0)}"
        ) from None
    except UnicodeDecodeError:
        raise InputError(f"{name}: {path} is not UTF-8 text") from None


def log_dry_run(result: ProcessResult) -> None:
    """Log the plan of a dry run; sealpipe has already escaped it, and separates its cells by
    tabs.
    """
    for line in result.out.splitlines():
        runner_output.log(line.replace("\t", "  "))
