"""`collect`: answers are stored, or become one output under names of the workflow's own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sealpipe.ci_systems import runner_reads_stderr
from sealpipe_action import inputs, telling
from sealpipe_action.inputs import InputError, Wanted
from sealpipe_action.step import Step, tell, text_of

PENDING = 15
UNUSABLE = 13


def collect(step: Step) -> int:
    """Collect, and end the request only once everything is where it belongs."""
    requests, wanted = inputs.lines(step.given["requests"]), inputs.mapping(step.given["map"])
    on_pending = inputs.one_of("on-pending", step.given["on-pending"], ("fail", "warn", "skip"))
    after = inputs.one_of("after", step.given["after"], ("keep", "expire"))
    _check(step, requests, wanted)
    words = ["collect", *step.options()]
    # What goes to stdout is read by us, and masked as an output.
    words += ["--print"] if wanted else []
    if step.on("dry-run"):
        done = step.sealpipe(*words, "--", *requests)
        tell(done)
        return step.ended(done.code, "dry-run")
    # An output is set by us: the request ends after that, not after stdout has taken the values.
    words += ["--output=json", f"--after={'keep' if wanted else after}", "--", *requests]
    done = step.sealpipe(*words, expected=() if on_pending == "fail" else (PENDING,))
    rows, code = done.rows(), done.code
    step.outputs["count"] = str(sum(row.get("count", 0) for row in rows))
    step.summary = "".join(_summary(row) for row in rows)
    if code == PENDING and on_pending != "fail":
        told = done.error.get("message", "nobody has answered yet")
        telling.annotate("warning" if on_pending == "warn" else "notice", str(told))
        step.ended(0, "pending")
        return 0
    if code == 0 and wanted:
        _set_values(step, answers(wanted, rows, prompts(requests)), wanted)
        if after == "expire":
            code = step.sealpipe("requests", "expire", *_service(step), "--output=json", "--", _code(rows[0])).code
    return step.ended(code, "collected")


def _check(step: Step, requests: Sequence[str], wanted: Sequence[Wanted]) -> None:
    stored = step.given["to"] or step.given["dir"]
    elsewhere = next((name for name in ("SEALPIPE_COLLECT_TO", "SEALPIPE_COLLECT_DIR") if step.environ.get(name)), "")
    if not requests:
        raise InputError("no request is named", "give its short code, or the file of its receipt, in `requests`")
    if wanted and stored:
        raise InputError(
            "map and to (or dir) go to different places", "use two steps: what is stored stays collectable"
        )
    if wanted and elsewhere:
        raise InputError(f"map and {elsewhere} of the environment go to different places", "take one of them away")
    if wanted and (len(requests) > 1 or step.given["pick"] == "each"):
        raise InputError("map takes the one answer of one request", "use a step for each request")
    if not wanted and not stored and not step.on("dry-run"):
        raise InputError("nothing says where the answers go", "use to, dir or map")


def prompts(requests: Sequence[str]) -> dict[str, str]:
    """The prompt of each id, where the request is named by its receipt; empty where it is not."""
    if len(requests) != 1 or not (requests[0].endswith(".json") or "/" in requests[0]):
        return {}
    try:
        asked = json.loads(text_of(requests[0], "requests"))["prompts"]
        return {row["id"]: row["text"] for row in asked}
    except (ValueError, KeyError, TypeError):
        return {}


def answers(wanted: Sequence[Wanted], rows: Sequence[Mapping[str, Any]], ids: Mapping[str, str]) -> dict[str, str]:
    """What `map` names. InputError where an answer is not there, or there twice: nobody knows which is meant."""
    found: dict[str, str] = {}
    fields = [field for row in rows for each in row["submissions"] for field in each["fields"]]
    for each in wanted:
        label = ids.get(each.prompt, each.prompt)
        values = [field["value"] for field in fields if field["key"] == label]
        if len(values) != 1:
            many = "nothing was handed over for" if not values else "there are several answers to"
            raise InputError(f"{many} the prompt of {each.name}", "name it as it was asked for", UNUSABLE)
        found[each.name] = values[0]
    return found


def _set_values(step: Step, found: Mapping[str, str], wanted: Sequence[Wanted]) -> None:
    secrets = [found[each.name] for each in wanted if not each.plain]
    text = json.dumps(found, ensure_ascii=False)
    if secrets:
        if not runner_reads_stderr():
            raise InputError("the answers cannot be masked, as stderr is a file", "use to or dir")
        # As they are, and as they stand in the output; that as a whole, too: so no other job gets it.
        telling.mask([*secrets, *(json.dumps(each, ensure_ascii=False)[1:-1] for each in secrets), text])
    step.hand_on({"values": text})


def _service(step: Step) -> list[str]:
    """The options that say which service, for a second command."""
    return inputs.words("expire", {**dict.fromkeys(("shares", "requests", "missing-ok"), ""), **step.given})


def _code(row: Mapping[str, Any]) -> str:
    return str(row["short_code"])


def _summary(row: Mapping[str, Any]) -> str:
    stored = ", ".join(str(each.get("target", "")) for each in row.get("stored", []))
    rows = [("status", str(row.get("status", ""))), ("answers", str(row.get("count", ""))), ("stored in", stored)]
    return telling.table(f"sealpipe collected: {_code(row)}", rows)
