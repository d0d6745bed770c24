"""Bitbucket Pipelines: outputs for later steps. The rest is in the table of CI systems."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from sealpipe.plugin import UnsupportedError
from sealpipe_plugins.ci import JobCI, format_assignment, name_variable

_FILE: Final = "the step's variables"


class BitbucketCI(JobCI):
    """A step of Bitbucket Pipelines.

    It masks only secured variables, and those are known before it starts.
    """

    def set_output(self, name: str, value: str) -> None:
        """Append `NAME=VALUE` to the step's file.

        Later steps get it if the step lists it in `output-variables`.
        """
        file = self.context.environ.get(self.job.output)
        if not file:
            raise UnsupportedError(
                f"{self.job.output} is not set here", remedy="run it in a step of a pipeline"
            )
        line = format_assignment(name_variable(name, _FILE), value, _FILE)
        with Path(file).open("ab") as stream:
            stream.write(line + b"\n")
