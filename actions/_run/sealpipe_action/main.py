"""Runs an action. Outputs are set even after a failure."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path

from sealpipe_action import runner_output
from sealpipe_action.batch import batch
from sealpipe_action.collect_and_expire import collect, expire
from sealpipe_action.inputs import InputError
from sealpipe_action.share_and_request import request, share
from sealpipe_action.step import Step
from sealpipe_action.unseal import unseal

ACTIONS: Mapping[str, Callable[[Step], int]] = {
    "share": share,
    "request": request,
    "collect": collect,
    "expire": expire,
    "unseal": unseal,
    "batch": batch,
}


def main(action: str) -> int:
    """Run the action; return sealpipe's exit code."""
    step = None
    try:
        step = Step(action, os.environ)
        code = _run(step)
    except InputError as error:
        code = _report(step, error)
    except Exception as error:  # noqa: BLE001 - the error's text could hold a secret; outputs are set even then
        frame = traceback.extract_tb(error.__traceback__)[-1]
        bug = (
            f"internal error: {type(error).__name__} at {Path(frame.filename).name}:{frame.lineno}"
        )
        code = _report(
            step,
            InputError(
                bug,
                "this is a bug in sealpipe: please report this line, which contains no secret",
                1,
            ),
        )
    return code if step is None else _finish(step, code)


def _finish(step: Step, code: int) -> int:
    try:
        step.finish()
    except InputError as error:
        error_code = _report(None, error)
        return code or error_code
    return code


def _run(step: Step) -> int:
    if step.rehearsing:
        step.annotate_ignored_inputs()
    return ACTIONS[step.action](step)


def _report(step: Step | None, error: InputError) -> int:
    runner_output.annotate("error", error.message + (f" ({error.remedy})" if error.remedy else ""))
    return error.code if step is None else step.end(error.code, "failed")
