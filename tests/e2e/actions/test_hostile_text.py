"""Secrets of every shape, and hostile text, through the actions: nothing of it in the log, every
file read as meant.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from e2e.actions.fake_runner import INNER, Ended, FakeRunner
from sealpipe.wire import encoding, fields, sealed_box
from sealpipe_rehearsal.running_service import RunningService
from support.terminal import opened

Start = Callable[..., FakeRunner]

CANARY = "cAnArY"
SHAPES = {
    "pem": "-----BEGIN PRIVATE KEY-----\n"
    + f"{CANARY}1Qx+/Qx+/Qx+/\n" * 3
    + "-----END PRIVATE KEY-----\n",
    "json": json.dumps(
        {"user": "uuuu", "password": f"{CANARY}2", "inner": {"k": [f"{CANARY}2é"]}}, indent=2
    ),
    "compact": json.dumps({"password": f'{CANARY}3"\\'}),
    "percent": f"100% {CANARY}4 %0A%25%",
    "crlf": f"{CANARY}5 one\r\n{CANARY}5 two\r{CANARY}5 three\r\n",
    "letter": "x",
    "command": f"::error::{CANARY}6\n::add-mask::{CANARY}6\n::stop-commands::{CANARY}6",
    "old-command": f"text ##[error]{CANARY}7##[add-mask]{CANARY}7",
    "set-env": f"::set-env name=PATH::{CANARY}8\n##vso[task.setvariable variable=x]{CANARY}8",
    "heredoc": f"link<<EOF\n{CANARY}9\nEOF\nshort-code={CANARY}9\n",
    "delimiter": f"sealpipe-{'0' * 32}\nPATH={CANARY}10\nsealpipe-{'0' * 32}\n",
    "quotes": (
        f"'{CANARY}11' \"{CANARY}11\" $({CANARY}11) `{CANARY}11` ${{{CANARY}11}} ${{{{ "
        f"{CANARY}11 }}}}"
    ),
    "unicode": f"{CANARY}12\u2028{CANARY}12\x85{CANARY}12\u202e\x0b\x0c\x1c{CANARY}12",
    "escape": f"\x1b[31m{CANARY}13\x1b]0;{CANARY}13\x07",
}
"""Each has a canary of its own, so that no other's mask hides it; a letter is none that could be
looked for.
"""

RECEIPT = "receipt.json"
"""Which prompts are no secrets is told by it alone: of a short code, every answer is masked."""

LONG = {name: SHAPES[name] for name in ("pem", "percent", "old-command")}


@pytest.mark.parametrize("debug", [False, True], ids=["", "debug"])
def test_shared_values_are_nowhere_in_the_log(
    job: Start, actions: Path, service: RunningService, key: str, *, debug: bool
) -> None:
    runner = job(debug=debug)
    for name, value in SHAPES.items():
        (runner.workspace / name).write_bytes(value.encode())
    given = {"fields": "\n".join(f"{name}=file:{name}" for name in SHAPES), "seal-link": "true"}
    step = runner.uses(actions / "share", given, {"SEALPIPE_API_KEY": key})
    assert step.code == 0, runner.text
    _nothing_leaks(runner, step)
    assert opened(service, step.outputs["link"]) == SHAPES
    kept = runner.job_outputs(step.outputs)
    assert set(kept) == {
        "short-code",
        "expires-at",
        "custody",
        "sealed-link",
        "outcome",
        "executable",
    }


@pytest.mark.parametrize("debug", [False, True], ids=["", "debug"])
@pytest.mark.parametrize("shapes", [SHAPES, LONG, {"letter": "x"}], ids=["all", "long", "letter"])
def test_collected_values_are_one_output_exactly_and_nowhere_in_the_log(
    job: Start,
    actions: Path,
    service: RunningService,
    key: str,
    shapes: Mapping[str, str],
    *,
    debug: bool,
) -> None:
    runner = job(debug=debug)
    asked = _asked(
        runner, actions, key, *(f"{name}:multiline" for name in shapes), "user=User name:text"
    )
    service.submitter().submit(asked.outputs["link"], {**shapes, "User name": "deploy"})
    mapping = "\n".join(f"{name}={name}" for name in shapes) + "\nuser=User name:text"
    step = _collected(runner, actions, key, RECEIPT, mapping)
    assert step.code == 0, runner.text
    _nothing_leaks(runner, step)
    assert json.loads(step.outputs["values"]) == {**shapes, "user": "deploy"}
    _only_our_outputs(runner, step)
    kept = runner.job_outputs(step.outputs)
    assert set(kept) == {"count", "outcome", "executable"}, (
        "however short: the values are masked as a whole, too"
    )
    short = [each for each in step.annotations("warning") if "too short" in each]
    assert bool(short) == ("letter" in shapes)
    if set(shapes) == {"letter"}:
        assert set(short) == {"1 secret line is too short to be masked: do not print it"}
    assert runner.mask("deploy") == "deploy", "what is of type text is not masked"
    assert "where" in runner.mask("where xx"), "one letter is not masked"


def test_where_only_text_is_named_the_values_reach_another_job(
    job: Start, actions: Path, service: RunningService, key: str
) -> None:
    runner = job()
    asked = _asked(runner, actions, key, "User name:text", "Password")
    service.submitter().submit(
        asked.outputs["link"], {"User name": "deploy", "Password": "hunter22-canary"}
    )
    step = _collected(runner, actions, key, RECEIPT, "user=User name:text")
    assert runner.job_outputs(step.outputs)["values"] == '{"user": "deploy"}'
    assert "hunter22-canary" not in runner.text
    assert runner.mask("hunter22-canary") == "***"
    step = _collected(runner, actions, key, asked.outputs["short-code"], "user=User name:text")
    assert "values" not in runner.job_outputs(step.outputs), (
        "of a short code nobody knows what was asked"
    )


HOSTILE = [
    "::error::x ::add-mask::deploy",
    (
        "##[add-mask]deploy a\u2028::set-output name=x::x | b | <img src=x onerror=y> "
        "[l](https://evil.example) "
        "![i](x) **bold** @team `code` x<<EOF"
    ),
]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_title_is_only_text(job: Start, actions: Path, key: str, text: str) -> None:
    runner = job()
    step = runner.uses(
        actions / "share", {"fields": "text:x", "title": text}, {"SEALPIPE_API_KEY": key}
    )
    assert step.code == 0, runner.text
    assert {each.name for each in step.commands} == {"add-mask"}
    assert runner.mask("deploy") == "deploy"
    row = next(line for line in runner.summary.splitlines() if line.startswith("| title |"))
    shown = row.removeprefix("| title |").removesuffix("|")
    assert "deploy" in shown
    assert not set("<>[]()`*@!|:") & set(shown)


def test_a_submitted_label_never_names_an_output(
    job: Start, actions: Path, service: RunningService, key: str
) -> None:
    runner = job()
    asked = _asked(runner, actions, key, "Secret")
    labels = [*HOSTILE, "PATH", "link", "a\nb=c", "../../x", "mine"]
    typed = [
        *(fields.Field(label, "one-canary") for label in labels),
        fields.Field("Secret", "two-canary"),
    ]
    _sent(service, asked, typed)
    step = _collected(runner, actions, key, asked.outputs["short-code"], "mine=Secret")
    assert json.loads(step.outputs["values"]) == {"mine": "two-canary"}
    _only_our_outputs(runner, step)
    assert {each.name for each in step.commands} == {"add-mask"}
    assert "one-canary" not in runner.text


def test_two_answers_to_one_prompt_are_none(
    job: Start, actions: Path, service: RunningService, key: str
) -> None:
    runner = job()
    asked = _asked(runner, actions, key, "Secret")
    _sent(
        service, asked, [fields.Field("Secret", "one-canary"), fields.Field("Secret", "two-canary")]
    )
    step = _collected(runner, actions, key, asked.outputs["short-code"], "mine=Secret")
    assert (step.code, step.outputs["values"], step.outputs["outcome"]) == (13, "", "failed")
    assert "canary" not in runner.text


def _asked(runner: FakeRunner, actions: Path, key: str, *prompts: str) -> Ended:
    asked = runner.uses(
        actions / "request",
        {"ask": "\n".join(prompts), "receipt": RECEIPT},
        {"SEALPIPE_API_KEY": key},
    )
    assert asked.code == 0, runner.text
    return asked


def _sent(service: RunningService, asked: Ended, typed: list[fields.Field]) -> None:
    """What a page of somebody's own sends: labels that nobody asked for."""
    link = asked.outputs["link"]
    public_key = encoding.decode_base64url(service.submitter().open_form(link)["public_key"])
    service.submitter().send(link, sealed_box.seal(public_key, fields.dump(typed)))


def _collected(runner: FakeRunner, actions: Path, key: str, request: str, mapping: str) -> Ended:
    given = {"requests": request, "map": mapping}
    return runner.uses(actions / "collect", given, {"SEALPIPE_API_KEY": key})


def _only_our_outputs(runner: FakeRunner, step: Ended) -> None:
    assert dict(step.pairs).keys() == {
        *INNER,
        "executable",
        "count",
        "values",
        "outcome",
        "error-code",
    }
    assert runner.exported == {}


def _nothing_leaks(runner: FakeRunner, step: Ended) -> None:
    told = runner.text + runner.summary
    assert CANARY not in told
    for value in (step.outputs.get("link"), step.outputs.get("values")):
        assert not value or value not in told
    link = step.outputs.get("link", "")
    assert not link or link.partition("#")[2][1:] not in told
    assert {each.name for each in step.commands} <= {"add-mask", "warning", "notice"}
