"""`sealpipe rehearse --job`: a CI job's command gets all that it needs, and reaches nobody."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sealpipe.ci_systems import list_variables
from sealpipe.cli import render
from sealpipe.cli.codes import names_receipt
from sealpipe.command_settings import COMMANDS
from sealpipe.errors import UsageError
from sealpipe.reference import parse, parse_field
from sealpipe.reference.text import Key
from sealpipe.settings import GLOBAL

if TYPE_CHECKING:
    from sealpipe_rehearsal.running_service import RunningService

LEFT_OUT: Final[Mapping[str, tuple[str, ...]]] = {
    "share": (
        "send",
        "param",
        "also_to",
        "passcode_generate",
        "passcode_to",
        "message_template",
        "link_file",
    ),
    "request": ("send", "param", "key", "seed_to"),
    "collect": ("check", "key", "pick", "wait"),
    "expire": (),
    "unseal": ("expect",),
    "batch": ("database", "plan"),
}
"""Options of each command whose variables do not count: they reach others, or need what only the
real service has.
"""

_STORES: Final = ("SEALPIPE_PLUGIN_", "SEALPIPE_STORE__")
_SECRETS: Final = ("PASSWORD", "TOKEN", "SECRET", "SECRET_ID", "KEY")
_KEPT: Final = (*_STORES, "SEALPIPE_CA_FILE", "SEALPIPE_DEADLINE")
"""Variables of stores, and of what the rehearsal's own processes need, too.

None of them reaches the service.
"""


_UNSET: Final = ("", "false", "credential", "only")
"""Values that say no more than the default."""


@dataclass(frozen=True)
class Stage:
    """What a made-up share or request is made with.

    The service, the program, its environment, and a folder.
    """

    running: RunningService
    program: str
    environ: Mapping[str, str]
    folder: Path

    def call(self, *arguments: str) -> dict[str, Any]:
        """Run sealpipe, not as a job, which would set outputs; return its JSON.

        Raises UsageError if it fails.
        """
        of_jobs = set(list_variables())
        environ = {name: value for name, value in self.environ.items() if name not in of_jobs}
        command = [self.program, *arguments, "--output=json"]
        done = subprocess.run(  # noqa: S603 - our own
            command, env=environ, capture_output=True, text=True, check=False
        )
        if done.returncode:
            for line in done.stderr.splitlines():
                render.print_note(render.escape(line))
            raise UsageError(
                f"the rehearsal could not make up a {arguments[0]}",
                remedy="see the message before this",
            )
        made: dict[str, Any] = json.loads(done.stdout)
        return made


@dataclass(frozen=True)
class Call:
    """A command line.

    The command's own words, its options, each with its value, and its operands.
    """

    words: tuple[str, ...]
    options: tuple[str, ...]
    operands: tuple[str, ...]

    def list_values(self, option: str, environ: Mapping[str, str]) -> list[str]:
        """Return the values of an option, else the lines of its variable."""
        given = [each.partition("=")[2] for each in self.options if each.startswith(f"--{option}=")]
        return given or read_lines(
            f"SEALPIPE_{self.words[0]}_{option.replace('-', '_')}".upper(), environ
        )


def read_lines(variable: str, environ: Mapping[str, str]) -> list[str]:
    """Return the values of an option that may be repeated, from its variable."""
    return [line.strip() for line in environ.get(variable, "").split("\n") if line.strip()]


def prepare_job(
    running: RunningService,
    command: Sequence[str],
    environ: Mapping[str, str],
    own: Mapping[str, str],
    folder: Path,
) -> tuple[list[str], dict[str, str]]:
    """Return the command and the environment with which a job's command is rehearsed.

    `environ` is the job's environment, `own` the rehearsal's. Raises UsageError if the command is
    none that a job rehearses.
    """
    call = _split(command[1:])
    name = "expire" if call.words[-1] == "expire" else call.words[0]
    kept = _keep_options(name, environ)
    made_up = _make_up(call, {**environ, **kept}) | _make_up_logins(name, kept)
    if made_up:
        names = ", ".join(map(render.escape, made_up))
        render.print_note(f"the rehearsal uses made-up values for empty variables: {names}")
    ignored = [
        each
        for each in LEFT_OUT[name]
        if environ.get(f"SEALPIPE_{name}_{each}".upper(), "") not in _UNSET
    ]
    if ignored:
        shown = ", ".join(each.replace("_", "-") for each in ignored)
        render.print_note(f"ignored in a rehearsal, which sends and stores nothing: {shown}")
    stage = Stage(running, command[0], own, folder)
    prepared = _PREPARE[name](stage, call, environ) if name in _PREPARE else call
    line = [command[0], *prepared.words, *prepared.options]
    return line + (["--", *prepared.operands] if prepared.operands else []), {
        **own,
        **kept,
        **made_up,
    }


def _split(arguments: Sequence[str]) -> Call:
    """Split a command line; every option becomes one word.

    Raises UsageError for a command that a job does not have.
    """
    words = next((each for each in _WORDS if tuple(arguments[: len(each)]) == each), None)
    if words is None:
        known = ", ".join(" ".join(each) for each in _WORDS)
        raise UsageError(
            "--job does not know this command", remedy=f"use sealpipe with one of these: {known}"
        )
    known_settings = (*GLOBAL, *COMMANDS.get(words[0], ()))
    settings = {name: each for each in known_settings for name in (each.option, each.short) if name}
    options: list[str] = []
    operands: list[str] = []
    rest = iter(arguments[len(words) :])
    for word in rest:
        setting = settings.get(word)
        if word == "--":
            operands += rest
        elif setting is not None and not setting.flag:
            options.append(f"{setting.option}={next(rest, '')}")
        else:
            (options if word.startswith("--") else operands).append(word)
    return Call(words, tuple(options), tuple(operands))


def _keep_options(name: str, environ: Mapping[str, str]) -> dict[str, str]:
    known = (
        []
        if name == "expire"
        else [each for each in COMMANDS[name] if each.name not in LEFT_OUT[name]]
    )
    variables = {each.get_variable(name) for each in known}
    return {
        each: value
        for each, value in environ.items()
        if each in variables or each.startswith(_KEPT)
    }


def _make_up(call: Call, environ: Mapping[str, str]) -> dict[str, str]:
    """Return a value for each empty variable that a reference names."""
    references = [parse_field(each).ref for each in call.list_values("field", environ)]
    references += [parse(each) for each in call.list_values("passcode-from", environ)]
    names = [each.body for each in references if each.name == "env"]
    return {name: f"stand-in for {name}" for name in names if not environ.get(name)}


def _make_up_logins(name: str, kept: Mapping[str, str]) -> dict[str, str]:
    """Return a value for each empty secret of a store, for commands that only describe."""
    described = kept if name in ("collect", "batch") else {}
    empty = [each for each, value in described.items() if not value and each.startswith(_STORES)]
    return {each: f"stand-in for {each}" for each in empty if each.endswith(_SECRETS)}


def _prepare_collect(stage: Stage, call: Call, environ: Mapping[str, str]) -> Call:
    """Make up a request with a submission for each operand. With a destination, it is a dry run."""
    targets = [parse(each) for each in call.list_values("to", environ)]
    named = [item.name for each in targets for item in each.selector or () if isinstance(item, Key)]
    asked = [*read_lines("SEALPIPE_REQUEST_ASK", environ), *named] or ["Password"]
    operands = [
        _make_request(stage, number, each, _list_prompts(each) or asked)
        for number, each in enumerate(call.operands)
    ]
    stores = targets or call.list_values("dir", environ)
    return Call(
        call.words,
        (*_leave_out("collect", call), *(["--dry-run"] if stores else [])),
        tuple(operands),
    )


def _make_request(stage: Stage, number: int, operand: str, prompts: Sequence[str]) -> str:
    """Make up a request with a submission.

    Return what names it: its receipt, or the short code in the operand.
    """
    receipt = stage.folder / f"receipt-{number}.json"
    made = stage.call(
        "request", f"--receipt={receipt}", *(f"--ask={each}" for each in dict.fromkeys(prompts))
    )
    texts = [each["text"] for each in json.loads(receipt.read_text(encoding="utf-8"))["prompts"]]
    stage.running.submitter().submit(
        made["collect_link"], {text: f"stand-in for {text}" for text in texts}
    )
    if names_receipt(operand):
        return str(receipt)
    stage.running.rename("requests", made["short_code"], operand.removeprefix("code:"))
    return operand


def _prepare_expire(stage: Stage, call: Call, _environ: Mapping[str, str]) -> Call:
    kind: Any = call.words[0]
    for code in dict.fromkeys(call.operands):
        words = (
            ("share", "--field=text:stand-in")
            if kind == "shares"
            else ("request", "--ask=Password")
        )
        stage.running.rename(kind, stage.call(*words)["short_code"], code)
    return call


def _prepare_unseal(stage: Stage, call: Call, environ: Mapping[str, str]) -> Call:
    bind = [f"--bind={each}" for each in call.list_values("bind", environ)]
    sealed = stage.call("share", "--field=text:stand-in", "--seal-link", *bind)["sealed_link"]
    file = stage.folder / "link.sealed"
    file.write_text(sealed, encoding="utf-8")
    options = [each for each in _leave_out("unseal", call) if not each.startswith("--sealed-file=")]
    return Call(call.words, (*options, f"--sealed-file={file}"), ())


def _leave_out(name: str, call: Call) -> tuple[str, ...]:
    """Return the options but those that a rehearsal leaves out."""
    left_out = tuple(f"--{each.replace('_', '-')}=" for each in LEFT_OUT[name])
    return tuple(each for each in call.options if not each.startswith(left_out))


_PREPARE: Final[Mapping[str, Callable[[Stage, Call, Mapping[str, str]], Call]]] = {
    "collect": _prepare_collect,
    "expire": _prepare_expire,
    "unseal": _prepare_unseal,
}
_WORDS: Final = (
    ("share",),
    ("request",),
    ("collect",),
    ("shares", "expire"),
    ("requests", "expire"),
    ("unseal",),
    ("batch", "plan"),
)
"""The commands that a job rehearses. A batch is only planned: what else it does reaches others."""


def _list_prompts(operand: str) -> list[str]:
    """Return the prompts of a receipt, as options have them.

    None if it is no receipt, or not there.
    """
    from sealpipe.state.receipt import read_receipt

    if not names_receipt(operand) or not Path(operand).exists():
        return []
    return [f"{each.id}={each.text}:{each.type}" for each in read_receipt(Path(operand)).prompts]
