"""`sealpipe.resolve` and `aresolve`: references without a client."""

from __future__ import annotations

import asyncio
import traceback
from pathlib import Path

import pytest

import sealpipe
from sealpipe import Field, ReferenceSyntaxError, Secret, SecretNotFoundError


def opened(fields: list[Field]) -> list[tuple[str, str]]:
    return [(f.key, f.value.reveal() if isinstance(f.value, Secret) else f.value) for f in fields]


def test_both_give_the_fields_in_the_order_of_the_references(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DB_PASSWORD", "s3cret")
    (tmp_path / "creds.json").write_text('{"user": "deploy", "pw": "x"}')
    references = [
        "Root=env:DB_PASSWORD",
        f"file:{tmp_path}/creds.json?format=json#user,pw",
        "text:t",
    ]
    expected = [("Root", "s3cret"), ("user", "deploy"), ("pw", "x"), ("t", "t")]
    assert opened(sealpipe.resolve(references)) == expected
    assert opened(asyncio.run(sealpipe.aresolve(references))) == expected


@pytest.mark.parametrize(
    ("reference", "error"),
    [("nosuch:x", ReferenceSyntaxError), ("env:NOT_SET_ANYWHERE", SecretNotFoundError)],
)
def test_an_error_leaves_without_the_frames_behind_it(
    reference: str, error: type[Exception]
) -> None:
    with pytest.raises(error) as one:
        sealpipe.resolve([reference])
    with pytest.raises(error) as other:
        asyncio.run(sealpipe.aresolve([reference]))
    for caught in (one.value, other.value):
        assert caught.__cause__ is caught.__context__ is None
        names = [frame.name for frame in traceback.extract_tb(caught.__traceback__)]
        assert not {"fetch", "locate", "_fetch"} & set(names)
