"""Buildkite: masks, outputs, annotations and tokens, all by its agent's program.

Values are only on its stdin.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Final

from sealpipe.plugin import Level, PluginError, Secret, UnsupportedError, select_maskable_lines
from sealpipe_plugins.ci import JobCI, describe_short_lines, write_text
from sealpipe_plugins.job_programs import is_missing, request_token, run_job_program

_STYLES: Final[dict[Level, str]] = {"error": "error", "warning": "warning", "notice": "info"}
"""The styles of annotations."""


class BuildkiteCI(JobCI):
    """A job of Buildkite."""

    def mask(self, values: Iterable[Secret]) -> None:
        """Have the agent redact values and each of their lines, if this one can.

        Otherwise a note says that it cannot.

        --print says that the value is captured, so a job without the agent's program (in a
        container) gets it, too.
        """
        lines, short = select_maskable_lines(value.reveal() for value in values)
        reason = describe_short_lines(short) if short else ""
        if lines:
            content = json.dumps({str(number): line for number, line in enumerate(lines)})
            reason = self._run(self.job.mask_program.split(), content) or reason
        if reason:
            write_text(f"sealpipe: not masked in this log: {reason}\n")

    def set_output(self, name: str, value: str) -> None:
        """Set meta-data of the build, which all its jobs can read.

        An empty value is `-`: Buildkite stores none.
        """
        argv = self.job.output.format(name=re.sub(r"[^A-Za-z0-9_.-]", "_", name)).split()
        if is_missing(self.context, argv[0]):
            raise UnsupportedError(f"{argv[0]} is not on PATH", remedy=self.job.oidc_setup)
        if reason := self._run(argv, value if value.strip() else "-"):
            raise PluginError(f"the output cannot be set: {reason}")

    def summary(self, markdown: str) -> None:
        """Append to the build's annotation, if there is a program for it."""
        self._annotate("info", markdown.rstrip("\n") + "\n")

    def annotate(self, level: Level, message: str) -> None:
        """Append a paragraph to an annotation of the build.

        The message is text, so it is escaped in Markdown.
        """
        self._annotate(_STYLES[level], escape_markdown(message) + "\n\n")

    def oidc_token(self, audience: str | None = None) -> Secret:
        """Have the agent request a token."""
        argv = [*self.job.oidc.split(), *([] if audience is None else [f"--audience={audience}"])]
        return request_token(self.context, argv, self.job.oidc_setup)

    def _annotate(self, style: str, markdown: str) -> None:
        argv = [
            "buildkite-agent",
            "annotate",
            "--append",
            f"--style={style}",
            f"--context=sealpipe-{style}",
        ]
        self._run(argv, markdown)

    def _run(self, argv: list[str], content: str) -> str:
        """Run the agent's program with a standard input; return why it failed, or nothing."""
        return run_job_program(self.context, argv, content.encode("utf-8", "replace")).reason


def escape_markdown(text: str) -> str:
    """Return text as Markdown that shows it: one line, all its punctuation escaped."""
    return re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", " ".join(text.split()))
