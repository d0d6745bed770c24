"""The conformance kit on the CI systems."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from plugins.test_ci import GITHUB, GITLAB, PLAIN
from sealpipe.testing import CIContract


class TestGitHub(CIContract):
    name = "github"

    @pytest.fixture
    def environ(self) -> Mapping[str, str]:
        return GITHUB


class TestGitLab(CIContract):
    name = "gitlab"

    @pytest.fixture
    def environ(self) -> Mapping[str, str]:
        return GITLAB


class TestPlain(CIContract):
    name = "plain"

    @pytest.fixture
    def environ(self) -> Mapping[str, str]:
        return PLAIN
