"""`expire`: shares and requests are ended. Nothing is ever purged."""

from __future__ import annotations

from sealpipe_action import inputs, telling
from sealpipe_action.step import Step

MISSING = 6
WHAT = ("shares", "requests")


def expire(step: Step) -> int:
    """End each, whatever becomes of the others; the first failure is the step's."""
    wanted = [(what, code) for what in WHAT for code in inputs.lines(step.given[what])]
    if not wanted:
        telling.annotate("notice", "no code was given: there is nothing to expire")
        return step.ended(0, "nothing")
    ended: dict[str, list[str]] = {"expired": [], "missing": []}
    codes: list[int] = []
    for what, code in wanted:
        words = [what, "expire", *step.options(), "--output=json", "--", code]
        done = step.sealpipe(*words, expected=(MISSING,) if step.on("missing-ok") else ())
        result = done.code
        if result == 0:
            ended["expired"] += [inputs.encoded(str(row["short_code"])) for row in done.rows()]
        elif result == MISSING:
            ended["missing"].append(code if inputs.is_encoded(code) else inputs.encoded(code))
        codes.append(0 if result == MISSING and step.on("missing-ok") else result)
        if step.children.interrupted:
            break
    step.outputs |= {name: "\n".join(found) for name, found in ended.items()}
    rows = [(name, ", ".join(found)) for name, found in ended.items()]
    step.summary = telling.table("sealpipe expire", rows)
    return step.ended(next((code for code in codes if code), 0), "expired" if ended["expired"] else "missing")
