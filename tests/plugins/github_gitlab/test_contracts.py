"""The conformance kit on the sinks for other systems' jobs, on fakes from the vendors' public
documentation.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

import pytest

from sealpipe.plugin import Mode, WriteResult
from sealpipe.registry import Registry
from sealpipe.testing import SinkContract
from support import fake_github, fake_gitlab
from support.fake_github import FakeGitHub, Kept
from support.fake_gitlab import FakeGitLab

NBSP = "\u00a0"


class GitHubSecret(SinkContract):
    name = "github-secret"
    apart = True
    marks = False
    atomic = frozenset({"merge"})  # of two creates, the second knows only afterwards
    keys: ClassVar[tuple[str, str, str]] = ("A_KEY", "B_KEY", "C_KEY")

    @pytest.fixture
    def environ(self) -> Iterator[Mapping[str, str]]:  # type: ignore[override]
        with FakeGitHub() as self.fake:
            self.numbers = itertools.count()
            yield {"GITHUB_API_URL": self.fake.base_url, "GITHUB_TOKEN": fake_github.TOKEN}

    def at(self, url: str) -> Mapping[str, str]:
        return {"GITHUB_API_URL": url, "GITHUB_TOKEN": fake_github.TOKEN}

    def place(self, number: int) -> tuple[str, ...]:
        raise NotImplementedError

    def target(self) -> str:
        place = self.place(next(self.numbers))
        self.fake.vaults.places[place] = Kept()
        return "/".join(place)

    def stored(self, body: str) -> Mapping[str, bytes]:
        return self.fake.vaults.places[tuple(body.split("/", 2))].opened

    def secrets(self) -> Sequence[str]:
        return [fake_github.TOKEN]


class TestGitHubRepository(GitHubSecret):
    def place(self, number: int) -> tuple[str, ...]:
        return "acme", f"app-{number}"


class WithoutFaults:
    """The requests are those of a repository's secrets, or a project's variables."""

    at = SinkContract.at


class TestGitHubEnvironment(WithoutFaults, GitHubSecret):
    def place(self, number: int) -> tuple[str, ...]:
        return "acme", "app", f"review/{number} of many"


class TestGitHubOrganisation(WithoutFaults, GitHubSecret):
    def place(self, number: int) -> tuple[str, ...]:
        return (f"acme-{number}",)


class GitLabVariable(SinkContract):
    name = "gitlab-variable"
    apart = True
    kind_of_place = "projects"
    prefix = ""

    @pytest.fixture
    def environ(self) -> Iterator[Mapping[str, str]]:  # type: ignore[override]
        with FakeGitLab() as self.fake:
            self.numbers = itertools.count()
            yield {"CI_SERVER_URL": self.fake.base_url, "GITLAB_TOKEN": fake_gitlab.TOKEN}

    def at(self, url: str) -> Mapping[str, str]:
        return {"CI_SERVER_URL": url, "GITLAB_TOKEN": fake_gitlab.TOKEN}

    def target(self) -> str:
        path = f"acme/place-{next(self.numbers)}"
        self.fake.shelves.places[self.kind_of_place, path] = []
        return self.prefix + path

    def stored(self, body: str) -> Mapping[str, bytes]:
        there = self.fake.shelves.places[
            self.kind_of_place, body.removeprefix(self.prefix).partition("?")[0]
        ]
        return {each["key"]: each["value"].encode() for each in there}

    def rotate(self, body: str, key: str, value: str) -> None:
        self.fake.shelves.find((self.kind_of_place, body.removeprefix(self.prefix)), key)[
            "value"
        ] = value

    def secrets(self) -> Sequence[str]:
        return [fake_gitlab.TOKEN]


class Unmasked(GitLabVariable):
    """With masked=0 every value of the kit is stored as it is."""

    def put(
        self,
        registry: Registry,
        body: str,
        values: Mapping[str, str],
        mode: Mode,
        marker: str = "m1",
    ) -> WriteResult:
        return SinkContract.put(self, registry, f"{body}?masked=0", values, mode, marker)


class TestGitLabProject(Unmasked):
    pass


class TestGitLabGroup(WithoutFaults, Unmasked):
    kind_of_place, prefix = "groups", "groups/"


class TestGitLabMasked(WithoutFaults, GitLabVariable):
    """As it is without parameters.

    The kit's blanks, which GitLab does not mask, go as ones that it does.
    """

    def put(
        self,
        registry: Registry,
        body: str,
        values: Mapping[str, str],
        mode: Mode,
        marker: str = "m1",
    ) -> WriteResult:
        return super().put(
            registry,
            body,
            {
                key: value.replace(" ", NBSP) if isinstance(value, str) else value
                for key, value in values.items()
            },
            mode,
            marker,
        )

    def stored(self, body: str) -> Mapping[str, bytes]:
        return {
            key: value.replace(NBSP.encode(), b" ") for key, value in super().stored(body).items()
        }
