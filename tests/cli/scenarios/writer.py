"""`--update`: writes what the commands of a scenario print into its file, for the author to
read.
"""

from __future__ import annotations

import re
from pathlib import Path

from cli.scenarios.scenario import KINDS, LOOSE, Scenario, parse
from support.terminal import Done

_CODE = rf'(?:(?<=created )|(?<=code": ")|(?<=the share )|^(?=\S+\n\0)){KINDS["code"]}'
_SHOWN = {**KINDS, "code": _CODE}


def update(path: Path, scenario: Scenario) -> None:
    """Run a scenario, and replace what the file says of each step by what the step did, where that
    differs.
    """
    lines = path.read_text("utf-8").splitlines()
    steps = parse(path.read_text("utf-8"))
    try:
        for step in steps:
            done = scenario.take(step)
            if not scenario.matches(step, done):
                step.code = done.code
                step.lines[">"], step.lines["2>"] = _show(done, scenario.values)
                assert scenario.matches(step, done), f"{path}:{step.begin}"
    finally:
        for step in reversed(steps):
            told = [f"{mark} {line}".rstrip() for mark, each in step.lines.items() for line in each]
            lines[step.begin : step.end] = [*told, *([f"exit {step.code}"] if step.code else [])]
        path.write_text("\n".join(lines) + "\n", "utf-8")


def _show(done: Done, values: dict[str, str]) -> list[list[str]]:
    """The lines of both streams, with names for what is known and for what varies."""
    names = {value: f"${name}" for name, value in values.items()}

    def name(found: re.Match[str], kind: str) -> str:
        taken = sum(re.fullmatch(rf"[$<]{kind}\d*>?", each) is not None for each in names.values())
        return names.setdefault(found[0], f"<{kind}{taken + 1}>" if taken else f"<{kind}>")

    text = re.sub(LOOSE["time"], "<time>", f"{done.out}\0{done.err}")
    for kind, pattern in _SHOWN.items():
        text = re.sub(pattern, lambda found, kind=kind: name(found, kind), text)
    for value in sorted(values.values(), key=len, reverse=True):
        text = text.replace(value, names[value])
    return [each.split("\n")[:-1] for each in text.split("\0")]
