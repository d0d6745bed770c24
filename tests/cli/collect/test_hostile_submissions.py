"""Whatever a stranger submits: exactly what was asked for is stored, and no output does anything to
anybody.

The short form of `endurance/hostile_submissions.py`.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from cli.collect.hostile_commands import WAYS as COMMANDS
from cli.collect.hostile_commands import Commands
from cli.collect.hostile_expected import WAYS, Batch, batches
from cli.collect.hostile_output import harmless, keeps_to_itself
from cli.collect.hostile_stores import stores
from cli.collect.hostile_world import World, memory
from sealpipe_rehearsal.running_service import RunningService
from support.hostile import CANARY, LABEL, PASSWORD, USER, Hostile, Row, submissions
from support.job import Job


def few(count: int) -> settings:
    """So many examples. They are neither kept nor made smaller: that would take longer than all of
    them.
    """
    phases, checks = [Phase.explicit, Phase.generate], list(HealthCheck)
    return settings(
        max_examples=count,
        phases=phases,
        deadline=None,
        database=None,
        suppress_health_check=checks,
    )


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """One for all: whatever is in its folder after a batch was judged, and is gone."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory(dir=memory()) as folder:
        root = Path(folder, "world")
        root.mkdir(mode=0o700)
        try:
            yield World(root)
        finally:
            os.chdir(before)


@few(20)
@given(batches)
def test_on_stdout_and_in_files_is_exactly_what_was_typed_and_nothing_anywhere_else(
    world: World, batch: Batch
) -> None:
    world.play(batch)


@pytest.mark.parametrize("way", sorted(WAYS))
@pytest.mark.parametrize("together", [True, False], ids=["one request", "many requests"])
def test_every_label_and_value_that_ever_hurt_anybody(
    world: World, way: str, *, together: bool
) -> None:
    world.play(Batch(tuple(map(_answer, NAMED)), way, together, lie=None))


NAMED = (
    "LD_PRELOAD", "../../x", "x\nPASSWORD=y", "::add-mask::x", "a<<EOF\nx\nEOF", "\x1b[31m",
    "\x1b]0;t\x07",
    "=cmd|' /C", "n" * 300, "##[error]x", "$(touch pwned)", "\x9b2J", "\u202e", "index.json",
    "a\0b",
)  # fmt: skip


def _answer(text: str) -> Row:
    """The prompts answered with it, and a field of its own that has it for a label."""
    fields = (PASSWORD, text, "password"), (text, text, text), (USER, text, "text")
    payload = json_of(fields)
    return Row(Hostile(payload, fields), text, None)


def json_of(fields: tuple[tuple[str, str, str], ...]) -> bytes:
    return json.dumps(
        [{"key": key, "value": value, "type": kind} for key, value, kind in fields]
    ).encode()


@pytest.mark.parametrize("way", sorted(WAYS))
def test_a_prompt_that_is_answered_twice_or_only_nearly(world: World, way: str) -> None:
    """The second time with something else, with the same, with nothing; and under labels that look
    like it.
    """
    near = (
        PASSWORD,
        PASSWORD.lower(),
        f"{PASSWORD} ",
        f"{PASSWORD}\0",
        PASSWORD.replace(" ", "\u00a0"),
        "user",
    )
    pairs = [(label, value) for label in near for value in ("swordfish-9", "other-0815", "")]
    sent = [
        ((PASSWORD, "swordfish-9", "password"), (label, value, "x"), (USER, "bob", "text"))
        for label, value in pairs
    ]
    rows = tuple(
        Row(Hostile(json_of(fields), fields), f"S{at}", None) for at, fields in enumerate(sent)
    )
    world.play(Batch(rows, way, together=True, lie=None))


@pytest.mark.parametrize("count", [1000, 1001, 10_000])
def test_the_number_of_fields_is_not_limited(world: World, count: int) -> None:
    extra = tuple((f"../{number}", f"::v{number}", "text") for number in range(count - 2))
    fields = (PASSWORD, "swordfish-9", "password"), (USER, "bob", "text"), *extra
    row = Row(Hostile(json_of(fields), fields), "S1", None)
    for way in ("by ids", "a folder"):
        world.play(Batch((row,), way, together=True, lie=None))


@pytest.mark.parametrize(
    "name", ["vault", "k8s", "github-secret", "gitlab-variable", "keyring", "aws"]
)
def test_in_a_store_are_the_intended_keys_with_what_was_typed_byte_for_byte(
    world: World, name: str
) -> None:
    with stores(world, (name,)) as found:

        @few(12 if name == "aws" else 25)
        @given(submissions())
        def every(sent: Hostile) -> None:
            found.play(sent)

        every()
        found.judge()


@pytest.mark.parametrize("way", COMMANDS)
def test_the_command_itself(service: RunningService, tmp_path: Path, way: str) -> None:
    commands = Commands(Job(tmp_path, service))

    @few(2)
    @given(st.lists(submissions(), min_size=25, max_size=25))
    def every(sent: list[Hostile]) -> None:
        commands.play(sent, way)

    every()


def test_what_is_masked_is_what_stands_in_the_log(service: RunningService, tmp_path: Path) -> None:
    """A value that looks like a command is printed otherwise than it was typed: that form is
    masked, too.
    """
    values = (
        f"##[error]{CANARY}",
        f"a ##vso[x]{CANARY}",
        f"::x\x1b{CANARY}",
        f'"{CANARY}\\##[',
        f"\u202e{CANARY}",
    )
    sent = [tuple((label, value, "x") for label in (PASSWORD, ":", "")) for value in values]
    Commands(Job(tmp_path, service)).play([Hostile(json_of(each), each) for each in sent], "github")


# -- the judges themselves ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "bad",
    [
        "a\x1bb",
        "a\rb",
        "a\x9bb",
        "a\u202eb",
        "::x",
        " ::x",
        "x\n\u00a0::x",
        "a ##[x",
        "##vso[x",
        "##utp:",
        "--- x",
    ],
)
def test_the_judge_of_outputs_objects(bad: str) -> None:
    with pytest.raises(AssertionError):
        harmless(f"{bad}\n".encode())


@pytest.mark.parametrize("bad", [f"x{CANARY}", LABEL])
def test_the_judge_of_stderr_finds_values_and_labels(bad: str) -> None:
    with pytest.raises(AssertionError):
        keeps_to_itself(f"{bad}\n".encode())


def test_the_judge_of_files_objects_to_what_is_written_elsewhere(
    world: World, tmp_path: Path
) -> None:
    with pytest.raises(AssertionError, match="outside of every target"), world.watch.on():
        (tmp_path / "x").write_text("x")
    with pytest.raises(AssertionError, match="outside of every target"), world.watch.on():
        (world.here / "..").joinpath("../../../../../elsewhere").touch()
    (world.root.parent / "elsewhere").unlink()
