"""A Secret gives itself away in one place only."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealpipe import Secret

CANARY = "c4nary-é"
surrogates = st.text(st.characters(codec=None))

CLOSED: dict[str, Callable[[Any], object]] = {
    "repr": repr,
    "str": str,
    "format": lambda secret: f"{secret}{secret:>30}{secret!r}{secret!s}{secret!a}",
    "percent": lambda secret: "%s %r" % (secret, secret),  # noqa: UP031 - logging formats like this
    "in a list": lambda secret: str([secret, {"x": secret}]),
    "copy": lambda secret: repr([copy.copy(secret), copy.deepcopy([secret])]),
    "dir": lambda secret: str([name for name in dir(secret) if CANARY in name]),
}


@pytest.mark.parametrize("name", CLOSED)
@pytest.mark.parametrize("value", [CANARY, CANARY.encode()], ids=["text", "bytes"])
def test_whatever_prints_it_shows_nothing(name: str, value: str | bytes) -> None:
    shown = str(CLOSED[name](Secret(value)))
    assert "c4nary" not in shown


REFUSED: dict[str, Callable[[Any], object]] = {
    "pickle": pickle.dumps,
    "the oldest pickle": lambda secret: pickle.dumps(secret, protocol=0),
    "json": json.dumps,
    "vars": vars,
    "hash": hash,
    "iteration": list,
    "concatenation": lambda secret: "x" + secret,
    "join": lambda secret: "".join([secret]),
    "bytes": bytes,
    "length": len,
    "an attribute": lambda secret: setattr(secret, "note", 1),
}


@pytest.mark.parametrize("name", REFUSED)
def test_whatever_would_take_it_apart_is_refused_and_shows_nothing(name: str) -> None:
    with pytest.raises((TypeError, AttributeError)) as caught:
        REFUSED[name](Secret(CANARY))
    assert "c4nary" not in str(caught.value)


def test_reveal_is_the_way_out() -> None:
    for secret in (Secret(CANARY), Secret(CANARY.encode())):
        assert (secret.reveal(), secret.reveal_bytes()) == (CANARY, CANARY.encode())


@given(surrogates, surrogates)
def test_two_secrets_are_equal_where_their_texts_are(left: str, right: str) -> None:
    assert (Secret(left) == Secret(right)) is (left == right)
    assert Secret(left) == Secret(left)
    assert Secret(left) != left


def test_text_and_bytes_of_the_same_value_are_equal() -> None:
    assert Secret(CANARY) == Secret(CANARY.encode())
    assert Secret(CANARY) != CANARY
    assert Secret(CANARY) != CANARY.encode()


def test_it_is_true_where_there_is_something_in_it() -> None:
    assert [bool(Secret(value)) for value in ("", b"", " ", b"x")] == [False, False, True, True]
