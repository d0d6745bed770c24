"""An action's work, whatever happens with its outputs set."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path

from sealpipe_action import telling
from sealpipe_action.collecting import collect
from sealpipe_action.expiring import expire
from sealpipe_action.inputs import InputError, one_of
from sealpipe_action.making import request, share
from sealpipe_action.step import Step

ACTIONS: Mapping[str, Callable[[Step], int]] = {
    "share": share,
    "request": request,
    "collect": collect,
    "expire": expire,
}


def main(action: str) -> int:
    """The step's exit code: sealpipe's own."""
    step = None
    try:
        step = Step(action, os.environ)
        code = _run(step)
    except InputError as error:
        code = _refused(step, error)
    except Exception as error:  # noqa: BLE001 - its text could hold a value; the outputs are set all the same
        place = traceback.extract_tb(error.__traceback__)[-1]
        bug = f"internal error: {type(error).__name__} at {Path(place.filename).name}:{place.lineno}"
        code = _refused(
            step, InputError(bug, "this is a bug in sealpipe: please report this line, which contains no secret", 1)
        )
    return code if step is None else _finished(step, code)


def _finished(step: Step, code: int) -> int:
    try:
        step.finish()
    except InputError as error:
        told = _refused(None, error)
        return code or told
    return code


def _run(step: Step) -> int:
    allowed = one_of("on-missing-key", step.given["on-missing-key"], ("fail", "skip"))
    why = step.without_key()
    if why and allowed == "skip":
        telling.annotate("notice", f"skipped: {why}")
        return step.ended(0, "skipped")
    if why:
        raise InputError(why, "on-missing-key: skip lets such a run pass")
    return ACTIONS[step.action](step)


def _refused(step: Step | None, error: InputError) -> int:
    telling.annotate("error", error.message + (f" ({error.remedy})" if error.remedy else ""))
    return error.code if step is None else step.ended(error.code, "failed")
