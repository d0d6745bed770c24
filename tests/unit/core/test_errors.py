"""The tree of exceptions: drawn once, with an exit code for each, and the same as DESIGN's
contract.
"""

from __future__ import annotations

import inspect
import re

import pytest

from sealpipe import errors
from sealpipe.api import responses
from sealpipe.errors import SealpipeError, WireError, quote_input

CLASSES = {
    name: kind
    for name, kind in vars(errors).items()
    if inspect.isclass(kind) and issubclass(kind, Exception) and kind.__module__ == errors.__name__
}
CONTRACT = {
    "SealpipeError": 1,
    "UsageError": 2,
    "AuthenticationError": 3,
    "PermissionDeniedError": 4,
    "InvalidRequestError": 5,
    "ToolError": 5,
    "NotFoundError": 6,
    "RateLimitError": 7,
    "RetriesExhaustedError": 7,
    "IdempotencyConflictError": 8,
    "OutcomeUnknownError": 9,
    "ConnectError": 10,
    "DeliveryError": 11,
    "ProtocolError": 12,
    "WireError": 13,
    "PluginError": 14,
    "ReferenceValueError": 2,
    "UnreadableSubmissionError": 13,
    "AuditError": 13,
    "CheckError": 14,
    "PendingError": 15,
    "NoSubmissionError": 16,
    "UnopenedError": 16,
    "TooManySubmissionsError": 17,
    "SubmissionNotFoundError": 17,
    "FailedRowsError": 18,
}
"""Exit codes by class; those below a class have its code unless they stand here themselves."""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("x" * 60, repr("x" * 60)),
        ("x" * 61, repr("x" * 60 + "...")),
        ("a\nb\x1b[31m", r"'a\nb\x1b[31m'"),
    ],
)
def test_what_somebody_wrote_is_quoted_in_a_bounded_length_on_one_line(
    text: str, shown: str
) -> None:
    assert quote_input(text) == shown


@pytest.mark.parametrize("name", CLASSES)
def test_each_exception_ends_with_the_promised_exit_code(name: str) -> None:
    kind = CLASSES[name]
    nearest = next(base for base in kind.__mro__ if base.__name__ in CONTRACT)
    if name not in ("ServiceError", "CollectError"):  # never raised themselves
        assert kind.exit_code == CONTRACT[nearest.__name__]


@pytest.mark.parametrize("name", CLASSES)
def test_each_exception_says_what_happened_and_what_to_do(name: str) -> None:
    kind = CLASSES[name]
    made = kind("reason", "what happened") if issubclass(kind, WireError) else kind("what happened")
    told = (
        kind("reason", "it", remedy="do")
        if issubclass(kind, WireError)
        else kind("it", remedy="do")
    )
    assert (str(made), made.message, made.remedy) == (
        "what happened",
        "what happened",
        kind.default_remedy,
    )
    assert (told.remedy, kind.__doc__ is not None) == ("do", True)


def test_the_drawing_at_the_top_shows_every_exception_once() -> None:
    drawing = (errors.__doc__ or "").partition("No message")[0]
    drawn = re.findall(r"\b[A-Z][a-z]+(?:[A-Z][a-zA-Z]*)?\b", drawing)
    assert set(CLASSES) <= set(drawn)
    counted = {name: drawn.count(name) for name in CLASSES}
    assert {name: count for name, count in counted.items() if count != 1} == {}


def test_the_drawn_exit_codes_are_the_real_ones() -> None:
    for name, code in re.findall(r"([A-Z]\w+) +(\d+)  ", errors.__doc__ or ""):
        assert CLASSES[name].exit_code == int(code), name


def test_all_come_from_one_root_and_hold_an_exit_code_of_their_own() -> None:
    assert all(issubclass(kind, SealpipeError) for kind in CLASSES.values())
    assert {kind.exit_code for kind in CLASSES.values()} == set(range(1, 19))


def test_the_table_of_refusals_names_every_code_of_the_specification() -> None:
    assert {code for _, code in responses.BY_CODE} == {
        1,
        11,
        19,
        42,
        44,
        53,
        61,
        70,
        78,
        98,
        100,
        104,
        105,
        106,
        107,
    }


@pytest.mark.parametrize("name", CLASSES)
def test_a_copy_with_other_words_is_the_same_error_otherwise(name: str) -> None:
    words = ("reason", "what") if issubclass(CLASSES[name], WireError) else ("what",)
    with pytest.raises(CLASSES[name]) as caught:
        raise CLASSES[name](*words)
    error = caught.value
    error.retry_after, error.short_code = 7, "aB3"
    error.add_note(errors.Note("stored before"))
    copy = error.copy_with(message="what, and where", remedy="do this")
    assert (type(copy), str(copy), copy.message) == (CLASSES[name], *2 * ["what, and where"])
    assert (copy.remedy, copy.retry_after, copy.short_code) == ("do this", 7, "aB3")
    assert copy.__traceback__ is error.__traceback__
    copy.add_note("of the copy alone")
    assert (str(error), error.remedy) == ("what", CLASSES[name].default_remedy)
    assert errors.Note.on(error) == errors.Note.on(copy) == error.__notes__ == ["stored before"]
    assert error.copy_with(remedy="").remedy == ""
    assert str(error.copy_with(remedy="do this")) == "what"


def test_more_of_a_remedy_is_said_in_words_of_python_too() -> None:
    both = errors.add_to_remedy(errors.Remedy("--key REF", python="key=REF"), "; or wait")
    assert (both, both.python) == ("--key REF; or wait", "key=REF; or wait")
    same = errors.add_to_remedy("look", "; or wait")
    assert (same, same.python) == ("look; or wait", "look; or wait")
