"""The fake of the runner is as CI-FACTS has the real one: what the other tests lean on."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from urllib.parse import quote

import pytest

from e2e.actions.fake_runner import FakeRunner, evaluated
from support.github_log import Masker, command, pairs, read_lines

SECRET = 'first <line> of "three"\n  second line 100%\nlast'


def test_a_mask_covers_the_value_its_lines_and_the_usual_encodings() -> None:
    mask = Masker()
    mask.add(SECRET)
    covered = [
        SECRET,
        "second line 100%",
        json.dumps(SECRET),
        quote(SECRET, safe=""),
        *(base64.b64encode(b"abc"[:before] + SECRET.encode()).decode() for before in range(3)),
        "first &lt;line&gt; of &quot;three&quot;",
    ]
    for text in covered:
        assert "second" not in mask(text)
        assert "line" not in mask(text)
        assert "***" in mask(text)


def test_a_mask_does_not_cover_other_encodings_or_parts() -> None:
    mask = Masker()
    value = "1??>>~~Kj3-x_fragment-of-a-link"
    mask.add(value)
    kept = [
        base64.urlsafe_b64encode(value.encode()).decode(),
        value.encode().hex(),
        value[1:],
        value[:20],
        f"{value[:9]}\n{value[9:]}",
    ]
    for text in kept:
        assert mask(text) == text


def test_a_one_letter_mask_hides_that_letter_everywhere() -> None:
    mask = Masker()
    mask.add("e")
    assert mask("where") == "wh***r***"


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("::add-mask::a%250Ab%0Ac", ("add-mask", {}, "a%0Ab\nc")),
        (
            "  ::error title=a%3Ab,file=x::text ::warning::y",
            ("error", {"title": "a:b", "file": "x"}, "text ::warning::y"),
        ),
        ("text ##[error]x%5D", ("error", {}, "x]")),
        ("text ::error::x", None),
        ("::nothing::x", None),
        ("##[nothing]x", None),
        ("::error", None),
    ],
)
def test_commands_are_found_at_a_lines_start_or_in_the_old_form_anywhere(
    line: str, found: object
) -> None:
    assert command(line) == found


def test_lines_end_at_a_carriage_return_too() -> None:
    assert read_lines("a\rb\r\nc\nd") == ["a", "b", "c", "d"]


def test_files_are_read_as_pairs_and_a_heredoc_holds_anything_but_its_delimiter() -> None:
    assert pairs("a=b=c\nd<<X\ne=f\n\ng<<Y\nX\n\nh=\n") == [
        ("a", "b=c"),
        ("d", "e=f\n\ng<<Y"),
        ("h", ""),
    ]
    for wrong in ("a<<X\nno end\n", "word\n", "<<X\nX\n"):
        with pytest.raises(ValueError, match=r"no X|word|<<X"):
            pairs(wrong)


def test_a_step_is_read_by_its_streams_and_files_and_its_outputs_are_set_after_a_failure_too(
    tmp_path: Path,
) -> None:
    action = tmp_path / "action"
    action.mkdir()
    (action / "action.yml").write_text(r"""
inputs: {word: {default: "x"}}
outputs:
  said: {value: "${{ steps.one.outputs.said || 'nothing' }}"}
  never: {value: "${{ steps.two.outputs.never || 'nothing' }}"}
runs:
  using: composite
  steps:
    - id: one
      shell: bash
      env: {WORD: "${{ inputs.word }}"}
      run: |
        echo "::add-mask::canary" >&2
        echo "said=$WORD" >> "$GITHUB_OUTPUT"
        echo "canary $WORD" >> "$GITHUB_STEP_SUMMARY"
        echo "$FROM_CALLER"
        exit 3
    - id: two
      shell: bash
      run: echo "never=here" >> "$GITHUB_OUTPUT"
""")
    runner = FakeRunner(tmp_path / "job", {"PATH": "/usr/bin:/bin"}, {"S": "hidden-canary"})
    step = runner.uses(action, {"word": "y canary"}, {"FROM_CALLER": "hidden-canary"})
    assert (step.code, step.outputs) == (3, {"said": "y canary", "never": "nothing"})
    assert runner.job_outputs(step.outputs) == {"never": "nothing"}
    assert runner.summary == "*** y ***\n"
    assert "  WORD: y canary" in runner.log, "env: is printed before the step has masked anything"
    assert "  FROM_CALLER: ***" in runner.text
    assert runner.log.count("***") == 1


def test_expressions_are_names_or_words() -> None:
    context = {"inputs": {"a-b": "x"}, "steps": {}}
    assert (
        evaluated("${{ inputs.a-b }} ${{ inputs.no }} ${{ steps.s.outputs.o || 'z' }}", context)
        == "x  z"
    )
