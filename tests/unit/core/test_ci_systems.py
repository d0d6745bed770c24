"""The one table of CI systems: what tells each, and in which order they are asked."""

from __future__ import annotations

import os

import pytest

from sealpipe.ci_systems import CI_SYSTEMS, FALSE_VALUES, CISystem, detect_ci_system, list_variables
from support.ci_jobs import ROWS, SIGNS, titled


@pytest.mark.parametrize(("row", "sign"), SIGNS, ids=titled)
def test_every_sign_alone_tells_its_system(row: CISystem, sign: str) -> None:
    name, _, value = sign.partition("=")
    assert detect_ci_system({name: value or "1"}) is row
    for off in (*FALSE_VALUES, "FALSE", " "):
        assert detect_ci_system({name: off}) is None
    if value:
        assert detect_ci_system({name: "something else"}) in (None, ROWS["other"])


def test_names_and_signs_are_there_once() -> None:
    assert len(ROWS) == len(CI_SYSTEMS)
    signs = [sign for _, sign in SIGNS]
    assert len(set(signs)) == len(signs)
    assert CI_SYSTEMS[-1].indicators == ("CI",), "whoever has a sign of its own goes before it"


NAMED = ["gitlab", "buildkite", "bitbucket", "circleci", "teamcity", "woodpecker"]
"""Who starts a job there can name its variables."""


def test_who_can_mask_goes_before_who_cannot() -> None:
    assert [row.name for row in CI_SYSTEMS[: len(NAMED)]] == NAMED
    others = CI_SYSTEMS[len(NAMED) :]
    assert [bool(row.mask) for row in others] == sorted(
        (bool(row.mask) for row in others), reverse=True
    )


@pytest.mark.parametrize("sign", ["GITHUB_ACTIONS", "TF_BUILD", "GITEA_ACTIONS", "FORGEJO_ACTIONS"])
@pytest.mark.parametrize("name", NAMED)
def test_a_variable_of_a_job_writes_no_mask_into_its_log(name: str, sign: str) -> None:
    variable, _, value = ROWS[name].indicators[0].partition("=")
    system = detect_ci_system({variable: value or "true", sign: "true"})
    assert system is ROWS[name]
    assert system.mask is None


def test_in_azure_a_variable_of_a_run_writes_no_mask_of_another_system() -> None:
    assert detect_ci_system({"TF_BUILD": "True", "GITHUB_ACTIONS": "true"}) is ROWS["azure"]


def test_switching_ci_off_switches_no_named_system_off() -> None:
    assert detect_ci_system({"CI": "false", "NETLIFY": "true"}) is ROWS["netlify"]


def test_the_tests_themselves_run_outside_of_any_ci() -> None:
    assert not set(list_variables()) & set(os.environ)
