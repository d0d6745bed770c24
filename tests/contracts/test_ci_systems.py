"""The conformance kit on the CI systems."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from sealpipe.ci_systems import PLUGINS
from sealpipe.testing import CIContract
from support.ci_jobs import PLAIN, with_one_sign


class OfOurs(CIContract):
    """A system of the table, in a job that has only one of its signs."""

    @pytest.fixture
    def environ(self) -> Mapping[str, str]:
        return with_one_sign(self.name)


class TestPlain(CIContract):
    name = "plain"

    @pytest.fixture
    def environ(self) -> Mapping[str, str]:
        return PLAIN


class TestGitHub(OfOurs):
    name = "github"


class TestGitLab(OfOurs):
    name = "gitlab"


class TestAzure(OfOurs):
    name = "azure"


class TestBitbucket(OfOurs):
    name = "bitbucket"


class TestBuildkite(OfOurs):
    name = "buildkite"


class TestCircleCI(OfOurs):
    name = "circleci"


class TestJenkins(OfOurs):
    name = "jenkins"


class TestTeamCity(OfOurs):
    name = "teamcity"


class TestWoodpecker(OfOurs):
    name = "woodpecker"


def test_every_plugin_of_ours_is_held_to_the_contract() -> None:
    classes = [
        each
        for each in globals().values()
        if isinstance(each, type) and issubclass(each, CIContract)
    ]
    assert {each.name for each in classes if hasattr(each, "name")} == PLUGINS
