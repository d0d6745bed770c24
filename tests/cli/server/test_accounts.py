"""The limits of an account, as an operator sets them."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.own_service import OwnService, make_own_service


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> OwnService:
    place: Path = tmp_path_factory.mktemp("operator")
    return make_own_service(place)


@pytest.mark.parametrize(
    ("rate", "number", "said"),
    [("unlimited", -1, "no limit"), ("unset", None, "no access"), ("7", 7, "7")],
)
def test_a_rate_is_a_number_or_none_or_no_access(
    own: OwnService, rate: str, number: int | None, said: str
) -> None:
    shown = own.command("account", "plan", "default", "--rate", rate).out
    assert f"requests per minute: {said}\n" in shown
    told = own.command("account", "plan", "default", "--output", "json").json
    assert (told["requests_per_minute"], told["api_access"]) == (number, number is not None)
    (row,) = own.command("account", "list").out.splitlines()
    assert row.split("\t")[2] == said


@pytest.mark.parametrize("word", ["unset", "unlimited"])
@pytest.mark.parametrize("option", ["--keys", "--shares", "--webhooks"])
def test_only_a_rate_may_be_unset_or_unlimited(own: OwnService, option: str, word: str) -> None:
    done = own.command("account", "plan", "default", option, word)
    assert done.code == 2
    assert f"{option}: only --rate can be {word}" in done.err
    assert "write a number, or plan" in done.err
