"""What comes from outside commands no CI system, in text and in JSON: read as the systems read a
job's output.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sealpipe_rehearsal
from sealpipe import ci_systems
from sealpipe.ci_systems import MARKS
from sealpipe.cli import render
from sealpipe.errors import UsageError
from sealpipe.testing.hostile import COMMANDS
from sealpipe_plugins.precommit import main as hook
from support.outside_text import commands, outside


@pytest.mark.parametrize("text", COMMANDS)
def test_the_readers_know_what_is_a_command(text: str) -> None:
    assert commands(text)


@pytest.mark.parametrize("mark", MARKS, ids=lambda mark: mark.text)
def test_each_mark_of_the_table_is_one_and_is_broken(mark: ci_systems.Mark) -> None:
    begins = next(text for text in (*COMMANDS, "::x") if text.lstrip("a ").startswith(mark.text))
    assert commands(begins)
    assert not commands(ci_systems.escape_line(render.escape(begins)))


TEXT = outside() | st.text("#:[]-+~^ _.\tvso\u00a0\u2003", max_size=20)


@given(TEXT)
def test_no_line_is_one(text: str) -> None:
    shown = ci_systems.escape_line(render.escape(text))
    assert not commands(shown)
    assert shown.isprintable()


@given(TEXT)
def test_no_value_behind_a_label_is_one_and_it_is_shown_as_it_is_masked(text: str) -> None:
    line = ci_systems.escape_line(f"Password: {render.escape(text)}")
    assert not commands(line)
    assert line == f"Password: {render.escape_inline(text)}"


@given(TEXT, TEXT)
def test_json_holds_none_and_says_the_same(label: str, text: str) -> None:
    line = render._to_json({label: text, "fields": [{"value": text}, text]})
    assert not commands(line)
    assert not re.search(r"::|(?:---|\+\+\+|~~~)\s", line)
    assert line.count("\n") == 1
    assert line.isascii()
    found = json.loads(line)
    assert found["fields"] == [{"value": text}, text]
    assert render.escape_json(text) in line


def test_lines_that_are_no_commands_stay_as_they_are() -> None:
    for line in (
        "## a heading",
        "a -- b",
        "-----BEGIN KEY-----",
        "a:: b",
        "https://h/s/x#1-_~",
        "+49 30",
        "~ user",
        "#1",
    ):
        assert ci_systems.escape_line(line) == line


EXACT = {
    "__main__.py": 1,
    "cli/main.py": 1,
    "cli/account.py": 2,
    "cli/audit.py": 1,
    "cli/batch_rows.py": 1,
    "cli/completion.py": 1,
    "cli/completion_scripts.py": 1,
    "cli/custody.py": 2,
    "cli/deliver.py": 2,
    "cli/server/opening.py": 1,  # credentials and secrets, whose characters we choose
    "cli/unseal.py": 1,
    "commands/guided_tour.py": 1,
    "commands/keys.py": 1,
    "commands/webhooks.py": 1,
}
"""What writes exact values to stdout, and how often: links, keys, figures, the version.

None is text from outside.

Completion writes for a shell: its own tests show that names from outside stay words there.
"""


def test_all_other_lines_on_stdout_take_the_way_on_which_they_are_made_harmless() -> None:
    rooms = [Path(render.__file__).parents[1], Path(sealpipe_rehearsal.__file__).parent]
    writes = re.compile(
        r"render\.print_result\(|sys\.stdout\.write|click\.echo|(?<![\w.\"'`])print\("
    )
    found = {
        str(path.relative_to(room)): len(writes.findall(path.read_text("utf-8")))
        for room in rooms
        for path in room.rglob("*.py")
    }
    assert {path: number for path, number in found.items() if number} == EXACT


PRINTING: dict[str, Callable[[str], None]] = {
    "note": render.print_note,
    "status": render.print_status,
    "lines": lambda text: render.print_lines([text, f"{text}\t{text}"]),
    "json": lambda text: render.print_json({text: text}),
    "failure": lambda text: render.print_error(UsageError(text, remedy=text), as_json=False),
    "failure as JSON": lambda text: render.print_error(UsageError(text, remedy=text), as_json=True),
    "hook": hook._print_line,
}


@pytest.mark.parametrize("text", COMMANDS)
@pytest.mark.parametrize("way", PRINTING)
def test_whatever_prints_prints_none(
    capfd: pytest.CaptureFixture[str], way: str, text: str
) -> None:
    for each in (text, f"x\n{text}", f"x\r{text}", f"\t{text}"):
        PRINTING[way](render.escape(each) if way == "hook" else each)
    done = capfd.readouterr()
    shown = (done.out + done.err).replace("\r", "\n").replace("\x1b[K", "")
    assert not commands(shown)
    assert shown.replace("\n", "").replace("\t", "").isprintable()
