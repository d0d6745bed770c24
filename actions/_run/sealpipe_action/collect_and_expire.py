"""`collect`: store submissions or set them as one output.

`expire`: expire shares and requests; nothing is purged.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sealpipe.ci_commands import is_stderr_readable
from sealpipe_action import inputs, runner_output
from sealpipe_action.inputs import InputError, MapEntry
from sealpipe_action.step import Step, log_dry_run, read_text_file

PENDING = 15
UNUSABLE = 13
MISSING = 6
KINDS = ("shares", "requests")


def collect(step: Step) -> int:
    """Collect submissions. The request expires only after everything is stored or set as an
    output.
    """
    requests, entries = (
        inputs.split_lines(step.values["requests"]),
        inputs.parse_map(step.values["map"]),
    )
    on_pending = inputs.check_choice(
        "on-pending", step.values["on-pending"], ("fail", "warn", "skip")
    )
    after = inputs.check_choice("after", step.values["after"], ("keep", "expire"))
    _check_inputs(step, requests, entries)
    arguments = ["collect", *step.options()]
    # We read stdout and mask the values before they become an output.
    arguments += ["--print"] if entries else []
    if step.is_on("dry-run") or (step.rehearsing and not entries):
        result = step.sealpipe(*arguments, "--", *requests)
        log_dry_run(result)
        return step.end(result.code, "dry-run")
    # With an output, the request may expire only after the output is set, not when the values are
    # on stdout.
    arguments += ["--output=json", f"--after={'keep' if entries else after}", "--", *requests]
    if step.rehearsing:  # the prompts of the request that it makes up
        step.processes.environ["SEALPIPE_REQUEST_ASK"] = "\n".join(each.prompt for each in entries)
    result = step.sealpipe(*arguments, expected=() if on_pending == "fail" else (PENDING,))
    rows, code = result.rows(), result.code
    step.outputs["count"] = str(sum(row.get("count", 0) for row in rows))
    step.summary = "".join(_summary(row) for row in rows)
    if code == PENDING and on_pending != "fail":
        message = result.error.get("message", "no submission yet")
        runner_output.annotate("warning" if on_pending == "warn" else "notice", str(message))
        step.end(0, "pending")
        return 0
    if code == 0 and entries:
        _set_values(step, select_values(entries, rows, read_prompts(requests)), entries)
        if after == "expire" and not step.rehearsing:
            options = [*_service_options(step), "--output=json", "--", _short_code(rows[0])]
            code = step.sealpipe("requests", "expire", *options).code
    return step.end(code, "collected")


def _check_inputs(step: Step, requests: Sequence[str], entries: Sequence[MapEntry]) -> None:
    stored = step.values["to"] or step.values["dir"]
    variable = next(
        (
            name
            for name in ("SEALPIPE_COLLECT_TO", "SEALPIPE_COLLECT_DIR")
            if step.environ.get(name)
        ),
        "",
    )
    if not requests:
        raise InputError("the input requests is empty", "give a short code or a receipt file")
    if entries and stored:
        raise InputError(
            "map cannot be combined with to or dir",
            "use two steps: stored submissions can be collected again",
        )
    if entries and variable:
        raise InputError(
            f"map cannot be combined with the variable {variable}", "remove one of them"
        )
    if entries and (len(requests) > 1 or step.values["pick"] == "each"):
        raise InputError("map needs one submission of one request", "use a step for each request")
    if not entries and not stored and not step.is_on("dry-run"):
        raise InputError("submissions have no destination", "use to, dir or map")


def read_prompts(requests: Sequence[str]) -> dict[str, str]:
    """Return each id's prompt, from the receipt; empty if the request is given as a short code."""
    if len(requests) != 1 or not (requests[0].endswith(".json") or "/" in requests[0]):
        return {}
    try:
        rows_of_prompts = json.loads(read_text_file(requests[0], "requests"))["prompts"]
        return {row["id"]: row["text"] for row in rows_of_prompts}
    except (ValueError, KeyError, TypeError):
        return {}


def select_values(
    entries: Sequence[MapEntry], rows: Sequence[Mapping[str, Any]], prompts: Mapping[str, str]
) -> dict[str, str]:
    """Return the values that `map` names. Raises InputError if a prompt has no value or several."""
    selected_values: dict[str, str] = {}
    fields = [field for row in rows for each in row["submissions"] for field in each["fields"]]
    for each in entries:
        label = prompts.get(each.prompt, each.prompt)
        values = [field["value"] for field in fields if field["key"] == label]
        if len(values) != 1:
            problem = "there is no value for" if not values else "there are several values for"
            remedy = "use the prompt or id of the request"
            raise InputError(f"{problem} the prompt of {each.name}", remedy, UNUSABLE)
        selected_values[each.name] = values[0]
    return selected_values


def _set_values(step: Step, values: Mapping[str, str], entries: Sequence[MapEntry]) -> None:
    secrets = [values[each.name] for each in entries if not each.plain]
    text = json.dumps(values, ensure_ascii=False)
    if secrets:
        if not is_stderr_readable():
            raise InputError("values cannot be masked because stderr is a file", "use to or dir")
        # Masked one by one, as JSON, and as the whole output: the runner does not pass a masked
        # output to other jobs.
        runner_output.mask(
            [*secrets, *(json.dumps(each, ensure_ascii=False)[1:-1] for each in secrets), text]
        )
    step.set_outputs({"values": text})


def _service_options(step: Step) -> list[str]:
    """Return the options that select the service, for a second command."""
    return inputs.build_options(
        "expire", {**dict.fromkeys(("shares", "requests", "missing-ok"), ""), **step.values}
    )


def _short_code(row: Mapping[str, Any]) -> str:
    return str(row["short_code"])


def _summary(row: Mapping[str, Any]) -> str:
    stored = ", ".join(str(each.get("target", "")) for each in row.get("stored", []))
    rows = [
        ("status", str(row.get("status", ""))),
        ("submissions", str(row.get("count", ""))),
        ("stored in", stored),
    ]
    return runner_output.summary_table(f"sealpipe collected: {_short_code(row)}", rows)


def expire(step: Step) -> int:
    """Expire every share and request; return the exit code of the first failure."""
    entries = [(kind, code) for kind in KINDS for code in inputs.split_lines(step.values[kind])]
    if not entries:
        runner_output.annotate("notice", "nothing to expire: no code was given")
        return step.end(0, "nothing")
    codes_by_state: dict[str, list[str]] = {"expired": [], "missing": []}
    exit_codes: list[int] = []
    for kind, code in entries:
        arguments = [kind, "expire", *step.options(), "--output=json", "--", code]
        result = step.sealpipe(*arguments, expected=(MISSING,) if step.is_on("missing-ok") else ())
        exit_code = result.code
        if exit_code == 0:
            codes_by_state["expired"] += [
                inputs.encode_code(str(row["short_code"])) for row in result.rows()
            ]
        elif exit_code == MISSING:
            codes_by_state["missing"].append(
                code if inputs.is_encoded(code) else inputs.encode_code(code)
            )
        exit_codes.append(0 if exit_code == MISSING and step.is_on("missing-ok") else exit_code)
        if step.processes.interrupted:
            break
    step.outputs |= {name: "\n".join(codes) for name, codes in codes_by_state.items()}
    rows = [(name, ", ".join(codes)) for name, codes in codes_by_state.items()]
    step.summary = runner_output.summary_table("sealpipe expire", rows)
    return step.end(
        next((code for code in exit_codes if code), 0),
        "expired" if codes_by_state["expired"] else "missing",
    )
