"""`sealpipe copy`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from typing import Any

from sealpipe.cli import render
from sealpipe.cli.local import find_state_folder, open_context, work_locally
from sealpipe.copy import steps
from sealpipe.copy.options import CopyJob, plan_copy
from sealpipe.copy.steps import CopiedValues, CopyPlan, CopyResult
from sealpipe.errors import StateError
from sealpipe.policy import LocalContext
from sealpipe.state.copies import CopyRecord, open_copy_record
from sealpipe.state.files import identify_pipeline


def copy(**values: Any) -> None:
    """Run `sealpipe copy`."""
    job = plan_copy(values["references"], values["to"], values["mode"])
    context = open_context(values)
    as_json = values["output"] == "json"
    if values["dry_run"]:
        plan = work_locally(context, lambda: steps.plan_dry_run(context, job))
        _print_plan(plan, as_json=as_json)
        return
    result = work_locally(context, partial(_copy, context, job, values))
    with closing(result):
        _print_result(result, as_json=as_json)
        result.finish()  # a rerun of one that was killed before this makes no new value


def _copy(context: LocalContext, job: CopyJob, values: dict[str, Any]) -> CopyResult:
    def open_record(name: str) -> CopyRecord:
        record = open_copy_record(find_state_folder(values, "copies"), name)
        if record is None:
            raise StateError(
                "the same copy is running in another process", remedy="wait until it has ended"
            )
        return record

    return steps.copy(context, job, open_record, identify_pipeline(os.environ))


def _print_plan(plan: CopyPlan, *, as_json: bool) -> None:
    if as_json:
        fields = [{"key": label, "type": kind} for label, kind in plan.labels]
        targets = [
            {"target": target, "keys": _list_keys(keys), "description": words}
            for target, keys, words in plan.writes
        ]
        render.print_json(
            {"dry_run": True, "fields": fields, "targets": targets, "remarks": plan.remarks}
        )
        return
    lines = [f"field {render.escape(label)} ({kind})" for label, kind in plan.labels]
    lines += [f"would {render.escape(words)}" for _, _, words in plan.writes]
    lines += [render.escape(remark) for remark in plan.remarks]
    render.print_lines(lines)


def _print_result(result: CopyResult, *, as_json: bool) -> None:
    for remark in () if result.taken_back else result.remarks:
        render.print_note(f"sealpipe: {remark}")
    for warning in result.warnings:
        render.print_note(f"sealpipe: {warning}")
    if result.taken_back:
        render.print_note(
            "no new value was made: an earlier run of this copy had stored one in "
            f"{render.escape(', '.join(result.taken_back))}"
        )
    if as_json:
        render.print_json(
            {
                "fields": [{"key": label, "type": kind} for label, kind in result.labels],
                "stored": [_describe(each) for each in result.written],
                "taken_back": result.taken_back,
            }
        )
        return
    render.print_table(
        ("TARGET", "STATE"),
        [(_name(each), _find_state(each)) for each in result.written],
    )


def _describe(written: CopiedValues) -> dict[str, object]:
    return {
        "target": written.target,
        "keys": _list_keys(written.keys),
        "already": written.already,
        "known": written.known,
    }


def _name(written: CopiedValues) -> str:
    keys = ",".join(_list_keys(written.keys))
    return f"{written.target}#{keys}" if keys else written.target


def _find_state(written: CopiedValues) -> str:
    if written.already:
        return "already there"
    return "stored" if written.known else "stored, not read back"


def _list_keys(keys: Sequence[str]) -> list[str]:
    return [key for key in keys if key]
