"""The conformance kit on the CI systems."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from sealpipe.testing import CIContract
from support.ci_jobs import GITHUB, GITLAB, PLAIN


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


class TestAzure(CIContract):
    name = "azure"

    @pytest.fixture
    def environ(self) -> Mapping[str, str]:
        return {
            "TF_BUILD": "True",
            "SYSTEM_COLLECTIONURI": "https://dev.azure.com/acme/",
            "SYSTEM_TEAMPROJECT": "handover",
            "BUILD_BUILDID": "17",
            "SYSTEM_JOBID": "12f1170f-54f2-53f3-20dd-22fc7dff55f9",
            "BUILD_REQUESTEDFOR": "Ada",
        }
