"""`batch`: plan a batch, run it, or decide about rows.

Outputs are numbers; the summary has the rows.

A rehearsal only plans, from an empty database: everything else sends or stores.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from sealpipe_action import inputs, runner_output
from sealpipe_action.inputs import InputError
from sealpipe_action.step import Step

COMMANDS: Mapping[str, tuple[str, ...]] = {
    "run": ("only", "for", "now", "plan", "detailed-exit-code"),
    "plan": ("out",),
    "adopt": (),
    "collect": ("only",),
    "remind": ("only",),
    "reissue": ("only",),
    "cancel": ("only",),
}
"""Commands, and the inputs that each has besides those that all have."""
_BY_NAME = ("collect", "remind", "reissue", "cancel")
"""Commands that take the name of a batch and the keys of rows, not a file."""
_OF_ALL = ("collect",)
"""Those that are safe without a key: for all rows that they apply to."""
_CHANGING = ("create", "remind", "collect", "reissue")
"""Actions of a plan that a run carries out."""
_QUIET = ("wait", "done")
"""Actions of a plan that are only counted."""
_OVER = ("done", "expired", "cancelled")
"""States in which nothing more comes."""
_SHOWN = 200
"""Rows in the summary."""
TROUBLED = 18
PENDING = 15


def batch(step: Step) -> int:
    """Run `sealpipe batch COMMAND`; return its exit code."""
    command = inputs.check_choice("command", step.values["command"], tuple(COMMANDS))
    _check_inputs(step, command)
    if not step.is_on("addresses"):
        step.processes.clean = runner_output.hide_addresses
    return _plan(step) if command == "plan" or step.rehearsing else _change(step, command)


def _check_inputs(step: Step, command: str) -> None:
    if not step.values["file"]:
        raise InputError("the input file is empty", "give the path of the batch file")
    own = {name for names in COMMANDS.values() for name in names}
    for name in sorted(own - {*COMMANDS[command]}):
        if step.values[name] not in ("", "false"):
            raise InputError(f"the input {name} does not apply to {command}", "remove it")
    if (
        command in _BY_NAME
        and command not in _OF_ALL
        and not inputs.split_lines(step.values["only"])
    ):
        raise InputError(f"{command} has no row", "name the keys of rows in only, one per line")


def _plan(step: Step) -> int:
    result = step.sealpipe("batch", "plan", *_options(step, ("out",)), "--", step.values["file"])
    for plan in result.rows():
        counts = Counter(str(row["action"]) for row in plan["rows"])
        changes = sum(counts[action] for action in _CHANGING)
        step.outputs |= {
            "counts": json.dumps(counts),
            "changes": str(changes),
            "plan": step.values["out"],
        }
        rows = [
            row
            for row in plan["rows"]
            if row["action"] not in _QUIET or row["is_changed"] or row["is_gone"]
        ]
        cells = [(row["key"], row["action"], _join(row["detail"], row["remedy"])) for row in rows]
        _summarize(step, f"plan of {plan['name']}", counts, ("row", "action", "why"), cells)
    return step.end(result.code, "planned")


def _change(step: Step, command: str) -> int:
    """Run a command that changes something, then read how the batch stands: its rows show what to
    do.
    """
    words, options = [step.values["file"]], COMMANDS[command]
    name = ""
    if command in _BY_NAME:
        # Tells the name, changes nothing.
        planned = step.sealpipe("batch", "plan", *_options(step, ()), "--", *words)
        if planned.code:
            return step.end(planned.code, "failed")
        name = planned.rows()[0]["name"]
        words, options = [name, *inputs.split_lines(step.values["only"])], ()
    result = step.sealpipe("batch", command, *_options(step, options), "--", *words)
    for row in result.rows():
        name = row.get("name", name)
        changes = [change for each in row.get("rows", ()) for change in each["changes"]]
        made = row.get("changes") or row.get("adopted") or changes
        told = {change["key"] for change in made}
        for each in [*made, *(each for each in row.get("troubled", ()) if each["key"] not in told)]:
            runner_output.log(step.processes.clean(_describe(each, command)))
        step.outputs["changes"] = str(len(made))
    waits = False
    if name and result.code in (0, PENDING, TROUBLED):
        status = step.sealpipe("batch", "status", *_options(step, ()), "--", name)
        for report in status.rows():
            step.outputs["counts"] = json.dumps(report["counts"])
            waits = any(number for state, number in report["counts"].items() if state not in _OVER)
            cells = [_state_cells(row) for row in report["rows"]]
            _summarize(
                step, f"batch {name}", report["counts"], ("row", "state", "next", "problem"), cells
            )
    outcome = "adopted" if command == "adopt" else "pending" if waits else "done"
    return step.end(result.code, outcome)


def _options(step: Step, names: Sequence[str]) -> list[str]:
    """Return the options for a command that has these of the inputs in COMMANDS."""
    others = {name for own in COMMANDS.values() for name in own} - {*names}
    values = {**step.values, **dict.fromkeys(others, "")}
    return [*inputs.build_options("batch", values, rehearsing=step.rehearsing), "--output=json"]


def _describe(change: Mapping[str, Any], command: str) -> str:
    """Return a change, an adopted row, or a row that is still in trouble as a line."""
    what = (
        change.get("what")
        or change.get("state")
        or ("adopted, blocked" if change.get("is_blocked") else command)
    )
    return ": ".join(
        filter(None, (str(change["key"]), what, _join(change.get("problem"), change.get("remedy"))))
    )


def _state_cells(row: Mapping[str, Any]) -> tuple[str, str, str, str]:
    after = ", ".join(filter(None, (row["next_step"], row["next_at"])))
    return row["key"], row["state"], after or row["outcome"], _join(row["problem"], row["remedy"])


def _join(*parts: str | None) -> str:
    return "; ".join(part for part in parts if part)


def _summarize(
    step: Step,
    title: str,
    counts: Mapping[str, int],
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
) -> None:
    numbers = [(state, str(number)) for state, number in counts.items()]
    shown = [[step.processes.clean(cell) for cell in row] for row in rows[:_SHOWN]]
    more = f", the first {_SHOWN} of {len(rows)}" if len(rows) > _SHOWN else ""
    step.summary = runner_output.summary_table(f"sealpipe {title}", numbers)
    if shown:
        step.summary += runner_output.summary_rows(f"Rows{more}", head, shown)
