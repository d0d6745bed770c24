"""`share` and `request`: a link is made."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from sealpipe.ci_systems import runner_reads_stderr
from sealpipe_action import inputs, telling
from sealpipe_action.inputs import InputError
from sealpipe_action.step import Step, tell, text_of

RECIPIENT = "RECIPIENT_OF_THE_LINK"
"""The variable that hands `recipient` on: as data, which nobody parses."""
_MADE = (0, 11)
"""Exit codes by which there is a share: all is done, or its message was not delivered."""


def share(step: Step) -> int:
    """Share the fields. The link comes by a file of ours, so that it can be sealed and sent all the same."""
    references = inputs.fields(step.given["fields"])
    if step.given["fields-from"]:
        references += inputs.fields(text_of(step.given["fields-from"], "fields-from"))
    words = ["share", *(f"--field={each}" for each in references), *_prepared(step, references), *_bound(step)]
    if step.on("dry-run"):
        done = step.sealpipe(*words, "--print")  # there would be a file of ours for the link
        tell(done)
        return step.ended(done.code, "dry-run")
    folder = tempfile.mkdtemp(prefix="sealpipe-", dir=step.environ.get("RUNNER_TEMP") or None)
    try:
        file = _link_file(step, Path(folder, "link"))
        done = step.sealpipe(*words, "--output=json", *([f"--link-file={file}"] if file else []))
        for row in done.rows():
            step.outputs |= {"custody": _text(row, "custody"), "sealed-link": _text(row, "sealed_link")}
            _made(step, row, "shared")
        # A file that was there before is none of ours: sealpipe has refused it, then.
        if file and done.code in _MADE and file.is_file() and step.on("mask-link"):
            _link(step, file.read_text(encoding="utf-8").rstrip("\n"))
        return step.ended(done.code, _outcome(done.rows()))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def request(step: Step) -> int:
    """Ask for secrets. The collect link is no secret: its short code alone makes it."""
    done = step.sealpipe("request", *_prepared(step, []), "--output=json")
    for row in done.rows():
        step.outputs |= {"link": _text(row, "collect_link"), "receipt": step.given["receipt"]}
        _made(step, row, "asked")
    return step.ended(done.code, _outcome(done.rows()))


def _prepared(step: Step, references: list[str]) -> list[str]:
    """The options, and the environment that they lean on."""
    words = step.options()
    if step.given["recipient"] and not step.rehearsing:
        words.append(f"--param=recipient=env:{RECIPIENT}")
        step.children.environ[RECIPIENT] = step.given["recipient"]
    if step.rehearsing:
        out = inputs.left_out(step.action, step.given)
        if out:
            telling.annotate("notice", f"a rehearsal sends and stores nothing: {', '.join(out)} left out")
        stand_ins = inputs.stand_ins([*references, step.given["passcode-from"]], step.environ)
        if stand_ins:
            telling.annotate("notice", f"empty here, so the rehearsal makes up values: {', '.join(stand_ins)}")
        step.children.environ |= stand_ins
    return words


def _bound(step: Step) -> list[str]:
    """What the sealed link is bound to: this run, where nothing else is said."""
    given = step.given["bind"].strip()
    if given or not step.on("seal-link"):
        return [f"--bind={given}"] if given not in ("", "none") else []
    run = [step.environ.get(name, "") for name in ("GITHUB_REPOSITORY", "GITHUB_RUN_ID")]
    if not all(run):
        raise InputError("this run has no name: GITHUB_REPOSITORY and GITHUB_RUN_ID are not set", "give bind a text")
    return [f"--bind=github:{':'.join(run)}"]


def _link_file(step: Step, own: Path) -> Path | None:
    if step.given["link-file"] and not step.rehearsing:
        return Path(step.given["link-file"])
    if step.on("mask-link"):
        return own
    if step.given["send"] or step.on("seal-link"):
        return None
    raise InputError("nobody would get the link", "leave mask-link on, or use send, seal-link or link-file")


def _link(step: Step, link: str) -> None:
    """As an output, only where it can be masked first: whole, its fragment, and that without its leading 1."""
    if not runner_reads_stderr():
        telling.annotate("warning", "the link is no output: it cannot be masked, as stderr is a file")
        return
    fragment = link.partition("#")[2]
    telling.mask([link, fragment, fragment[1:]])
    step.outputs["link"] = link


def _made(step: Step, row: dict[str, Any], what: str) -> None:
    delivered = row.get("delivered")
    sent = [str(each) for each in delivered if each != "link-file"] if isinstance(delivered, list) else []
    rows = [(name, _text(row, name)) for name in ("title", "custody", "key", "outcome")]
    ends = _text(row, "expires_at") or ("never" if row.get("expiry_known", True) else "not told by the service")
    extra = [("rehearsal", "yes")] if step.rehearsing else []
    step.summary = telling.table(
        f"sealpipe {what}: {_text(row, 'short_code')}",
        [*rows, ("expires", ends), ("delivered", ", ".join(sent)), *extra],
    )


def _outcome(rows: list[dict[str, Any]]) -> str:
    return _text(rows[0], "outcome") if rows else "failed"


def _text(row: dict[str, Any], name: str) -> str:
    value = row.get(name)
    return "" if value is None else str(value)
