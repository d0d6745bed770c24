"""`unseal`: open the sealed link of another job, mask it, and only then write it."""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

from sealpipe.ci_commands import is_stderr_readable
from sealpipe_action import inputs, runner_output
from sealpipe_action.inputs import InputError
from sealpipe_action.step import Step, read_text_file

_VARIABLE = re.compile(r"(?!SEALPIPE_|GITHUB_|RUNNER_|ACTIONS_)(?:[A-Z][A-Z0-9_]*_)?LINK")
"""Names that no program reads as its own: a variable for all later steps must not be PATH or
LD_PRELOAD.
"""


def unseal(step: Step) -> int:
    """Open the sealed link. It becomes an output, a file, or a variable only after it is masked."""
    sealed, variable = step.values["sealed-link"].strip(), step.values["variable"]
    _check_inputs(step, sealed, variable)
    folder = tempfile.mkdtemp(prefix="sealpipe-", dir=step.environ.get("RUNNER_TEMP") or None)
    try:
        file = Path(step.values["link-file"] or Path(folder, "link"))
        arguments = ["unseal", *step.options(), *step.bind_options(), f"--link-file={file}"]
        # On stdin: every process of the machine can read what a program is started with.
        result = step.sealpipe(*arguments, "--", "-", stdin=sealed)
        if result.code == 0:
            _set_link(step, read_text_file(str(file), "link-file").rstrip("\n"), variable)
        return step.end(result.code, "opened")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _check_inputs(step: Step, sealed: str, variable: str) -> None:
    if not sealed and not step.rehearsing:
        raise InputError(
            "the input sealed-link is empty",
            (
                "pass the output sealed-link of the job that shared: it needs seal-link: true "
                "there, and this job needs it"
            ),
        )
    if "#" in sealed:
        raise InputError(
            "the input sealed-link is a link, which the log now shows: expire its share",
            "pass it sealed",
        )
    if variable and not _VARIABLE.fullmatch(variable):
        raise InputError(
            "the input variable is not a name that is safe for a link",
            "use capital letters, digits and _, ending in LINK, such as HANDOVER_LINK",
        )
    if variable and not step.environ.get("GITHUB_ENV"):
        raise InputError(
            "the input variable has no effect: GITHUB_ENV is not set", "use the output link"
        )
    if not is_stderr_readable():
        raise InputError(
            "the link cannot be masked because stderr is a file", "do not redirect stderr"
        )


def _set_link(step: Step, link: str, variable: str) -> None:
    runner_output.mask_link(link)
    step.outputs |= {
        "link": link,
        "short-code": inputs.encode_code(urlsplit(link).path.rpartition("/")[2]),
    }
    if variable:
        runner_output.set_variable(step.environ, variable, link)
    rows = [
        ("written to", ", ".join(filter(None, ("output link", variable, step.values["link-file"]))))
    ]
    step.summary = runner_output.summary_table(
        f"sealpipe unsealed: {step.outputs['short-code']}", rows
    )
