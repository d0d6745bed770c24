"""`share` and `request`: both create a link."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from sealpipe.ci_commands import is_stderr_readable
from sealpipe_action import inputs, runner_output
from sealpipe_action.inputs import InputError
from sealpipe_action.step import Step, log_dry_run, read_text_file

RECIPIENT = "RECIPIENT_OF_THE_LINK"
"""Environment variable that passes `recipient` on as plain data, never as a reference."""
_CREATED_CODES = (0, 11)
"""Exit codes with which the share exists: success, or delivery failed."""


def share(step: Step) -> int:
    """Share the fields. The link is read from a temporary file, so that stdout is free for the
    sealed link.
    """
    _check_wait(step)
    references = inputs.split_fields(step.values["fields"])
    if step.values["fields-from"]:
        references += inputs.split_fields(read_text_file(step.values["fields-from"], "fields-from"))
    arguments = ["share", *(f"--field={each}" for each in references), *_prepare(step, references)]
    if step.values["bind"].strip() or step.is_on("seal-link"):
        arguments += step.bind_options()
    if step.is_on("dry-run"):
        result = step.sealpipe(*arguments, "--print")  # a dry run creates no link file
        log_dry_run(result)
        return step.end(result.code, "dry-run")
    folder = tempfile.mkdtemp(prefix="sealpipe-", dir=step.environ.get("RUNNER_TEMP") or None)
    try:
        file = _link_file(step, Path(folder, "link"))
        result = step.sealpipe(
            *arguments, "--output=json", *([f"--link-file={file}"] if file else [])
        )
        for row in result.rows():
            step.outputs |= {
                "custody": _text(row, "custody"),
                "sealed-link": _text(row, "sealed_link"),
            }
            _summarize(step, row, "shared")
        # With any other exit code the file may be an old one that sealpipe refused to overwrite.
        if file and result.code in _CREATED_CODES and file.is_file() and step.is_on("mask-link"):
            _set_link(step, file.read_text(encoding="utf-8").rstrip("\n"))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return step.end(result.code or _wait(step, result.rows()), _outcome(result.rows()))


def _check_wait(step: Step) -> None:
    if step.values["wait-until"] and not step.values["send"] and not step.rehearsing:
        raise InputError(
            "wait-until waits for a recipient who gets the link only when the step has ended",
            "deliver the link with send",
        )


def _wait(step: Step, rows: list[dict[str, Any]]) -> int:
    """Wait until the share was opened or has ended, if that is wanted; return the exit code."""
    until = step.values["wait-until"]
    if not until or step.rehearsing:
        return 0
    otherwise = step.values["wait-else"]
    return step.sealpipe(
        "shares",
        "wait",
        f"code:{_text(rows[0], 'short_code')}",
        f"--until={until}",
        f"--for={step.values['wait-for']}",
        *([f"--else={otherwise}"] if otherwise else []),
        *inputs.build_common_options(step.values),
    ).code


def request(step: Step) -> int:
    """Create a request. The collect link is not secret: the short code is enough to build it."""
    arguments = ["request", *_prepare(step, [])]
    if step.is_on("dry-run"):
        result = step.sealpipe(*arguments)
        log_dry_run(result)
        return step.end(result.code, "dry-run")
    result = step.sealpipe(*arguments, "--output=json")
    for row in result.rows():
        receipt = step.values["receipt"].replace("{name}", step.values["name"])
        step.outputs |= {"link": _text(row, "collect_link"), "receipt": receipt}
        _summarize(step, row, "asked")
    return step.end(result.code, _outcome(result.rows()))


def _prepare(step: Step, references: list[str]) -> list[str]:
    """Return the options, and set the environment variables that they name."""
    arguments = step.options()
    if not step.rehearsing:
        _check_recipient(step)
    if step.values["recipient"] and not step.rehearsing:
        arguments.append(f"--param=recipient=env:{RECIPIENT}")
        step.processes.environ[RECIPIENT] = step.values["recipient"]
    if step.rehearsing:
        stand_ins = inputs.stand_ins([*references, step.values["passcode-from"]], step.environ)
        if stand_ins:
            runner_output.annotate(
                "notice",
                f"the rehearsal uses made-up values for empty variables: {', '.join(stand_ins)}",
            )
        step.processes.environ |= stand_ins
    return arguments


def _check_recipient(step: Step) -> None:
    """Name the input that a channel needs: the command would name its option, which a workflow does
    not have.
    """
    channels = [
        name for name in ("send", "passcode-to") if "{recipient}" in step.values.get(name, "")
    ]
    params = inputs.split_lines(
        f"{step.values['param']}\n{step.environ.get(f'SEALPIPE_{step.action}_PARAM'.upper(), '')}"
    )
    if (
        channels
        and not step.values["recipient"]
        and not any(each.startswith("recipient=") for each in params)
    ):
        raise InputError(
            f"the input recipient is empty, and {channels[0]} has {{recipient}}",
            (
                "set it; if it comes from a variable of the repository or the environment, "
                "check the variable's name"
            ),
        )


def _link_file(step: Step, own: Path) -> Path | None:
    if step.values["link-file"] and not step.rehearsing:
        return Path(step.values["link-file"])
    if step.is_on("mask-link"):
        return own
    if step.values["send"] or step.is_on("seal-link"):
        return None
    raise InputError(
        "the link has no destination", "leave mask-link on, or use send, seal-link or link-file"
    )


def _set_link(step: Step, link: str) -> None:
    """Set the output `link` if it can be masked first: the whole link, its fragment, and the key in
    the fragment.
    """
    if not is_stderr_readable():
        runner_output.annotate(
            "warning", "the output link is not set: it cannot be masked because stderr is a file"
        )
        return
    runner_output.mask_link(link)
    step.outputs["link"] = link


def _summarize(step: Step, row: dict[str, Any], what: str) -> None:
    delivered = row.get("delivered")
    sent = (
        [str(each) for each in delivered if each != "link-file"]
        if isinstance(delivered, list)
        else []
    )
    rows = [(name, _text(row, name)) for name in ("title", "custody", "key", "outcome")]
    ends = _text(row, "expires_at") or (
        "never" if row.get("expiry_known", True) else "unknown: the service did not say"
    )
    rehearsal = [("rehearsal", "yes")] if step.rehearsing else []
    step.summary = runner_output.summary_table(
        f"sealpipe {what}: {_text(row, 'short_code')}",
        [*rows, ("expires", ends), ("delivered", ", ".join(sent)), *rehearsal],
    )


def _outcome(rows: list[dict[str, Any]]) -> str:
    return _text(rows[0], "outcome") if rows else "failed"


def _text(row: dict[str, Any], name: str) -> str:
    value = row.get(name)
    return "" if value is None else str(value)
