"""The parts of the actions' runner by themselves: words, lines of `map`, and what is written into
the files.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealpipe import ci_commands, ci_systems
from sealpipe_action import inputs, runner_output
from sealpipe_action.inputs import InputError, MapEntry
from support.github_log import command, pairs
from support.outside_text import outside
from support.parts import ROOT

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


@given(st.lists(st.tuples(st.sampled_from(["link", "values"]), TEXT), max_size=4))
def test_whatever_is_written_is_read_back_as_exactly_those_pairs(
    written: list[tuple[str, str]],
) -> None:
    assert (
        pairs("".join(ci_commands.format_output(name, value) for name, value in written)) == written
    )


def test_a_value_with_the_delimiter_in_it_and_one_too_large_are_not_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="link"):
        ci_commands.format_output("link", "a\nEND\nb", "END")
    file = tmp_path / "output"
    for value in ("x" * (runner_output.LIMIT + 1), "é" * (runner_output.LIMIT // 2 + 1)):
        with pytest.raises(ValueError, match="link"):
            runner_output.set_outputs(
                {"GITHUB_OUTPUT": str(file)}, {"short-code": "a", "link": value}
            )
    assert not file.exists()
    assert ci_commands.format_output("a", "b") != ci_commands.format_output("a", "b"), (
        "the delimiter is a fresh one"
    )


def test_a_summary_that_the_runner_would_drop_is_not_begun(tmp_path: Path) -> None:
    file = tmp_path / "summary"
    environ = {"GITHUB_STEP_SUMMARY": str(file)}
    assert runner_output.add_summary(environ, "x" * (runner_output.SUMMARY_LIMIT - 2))
    assert not runner_output.add_summary(environ, "é\n")
    assert file.stat().st_size == runner_output.SUMMARY_LIMIT - 2
    assert runner_output.add_summary(environ, "é")
    assert runner_output.add_summary({}, "nowhere"), "a step without one is none that failed"


@given(outside() | TEXT)
def test_output_has_no_command_and_annotations_are_one_line(text: str) -> None:
    told: list[bytes] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner_output, "write_stderr", told.append)
        runner_output.log(text)
        runner_output.annotate("error", text)
    line, shown = (each.decode().removesuffix("\n") for each in told)
    assert command(line) is None
    assert line == ci_systems.escape_line(runner_output.escape_unprintable(text))
    found = command(shown)
    assert found is not None
    assert (found.name, found.data) == ("error", runner_output.escape_unprintable(text))


SHARED = (
    "sealpipe/__init__.py",
    "sealpipe/version.py",
    "sealpipe/ci_systems.py",
    "sealpipe/ci_commands.py",
)
"""The modules of core that the actions run by any Python."""
OLD_MODULES = frozenset(
    ("__future__", "collections.abc", "importlib", "os", "re", "select", "stat", "typing")
)
"""Of the standard library, what they import at their top: in every Python that a runner has."""


@pytest.mark.parametrize("name", SHARED)
def test_what_is_shared_with_the_command_line_needs_only_an_old_pythons_standard_library(
    name: str,
) -> None:
    text = (ROOT / "core" / name).read_text(encoding="utf-8")
    tree = ast.parse(text, feature_version=(3, 9))
    names = {node.module or "" for node in tree.body if isinstance(node, ast.ImportFrom)}
    names |= {
        each.name for node in tree.body if isinstance(node, ast.Import) for each in node.names
    }
    ours = {"sealpipe.ci_systems", "sealpipe.version"}
    assert names <= ours | OLD_MODULES


@given(TEXT)
def test_a_cell_of_the_summary_holds_no_markup(text: str) -> None:
    shown = runner_output.escape_cell(text)
    assert not set("<>[]()`*|!@:.\n\r_~\\'\"") & set(shown)


def test_no_value_is_taken_for_an_option_or_for_two() -> None:
    environ = {"SEALPIPE_ACTION_TITLE": "--views=9 x", "SEALPIPE_ACTION_SEND": "a:1\n--x\r\n\n"}
    values = inputs.read_inputs("share", environ)
    assert inputs.build_options("share", values) == [
        "--title=--views=9 x",
        "--send=a:1",
        "--send=--x",
    ]


def test_a_switch_is_true_or_false() -> None:
    values = inputs.read_inputs("share", {"SEALPIPE_ACTION_NO_EXPIRY": "true"})
    assert inputs.build_options("share", values) == ["--no-expiry"]
    assert (
        inputs.build_options(
            "share", inputs.read_inputs("share", {"SEALPIPE_ACTION_NO_EXPIRY": "false"})
        )
        == []
    )
    with pytest.raises(InputError, match="no-expiry"):
        inputs.read_inputs("share", {"SEALPIPE_ACTION_NO_EXPIRY": "True"})


def test_map_is_an_allow_list_of_names_to_prompts() -> None:
    assert inputs.parse_map(" a = Staging = password \n\nb_2=User:text") == [
        MapEntry("a", "Staging = password", plain=False),
        MapEntry("b_2", "User", plain=True),
    ]
    for wrong in ("a", "a=", "=b", "1a=b", "a b=c", "a\u2028b=c", "a=b\na=c"):
        with pytest.raises(InputError):
            inputs.parse_map(wrong)


def test_stand_ins_are_made_for_what_is_empty_only() -> None:
    found = inputs.stand_ins(
        ['"a=b"=env:EMPTY?type=text', "env:SET", "x=vault:env/y", "text:env:Z", "env:NONE"],
        {"SET": "1", "EMPTY": ""},
    )
    assert set(found) == {"EMPTY", "NONE"}
