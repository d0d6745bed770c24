"""Hostile submissions into every store behind a network, and read back there as its vendor's client
reads it.
"""

from __future__ import annotations

import os
import secrets
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from cli.collect.hostile_expected import Batch
from cli.collect.hostile_output import keeps_to_itself
from cli.collect.hostile_world import World
from sealpipe.collect.options import plan_collect
from sealpipe.errors import UnsupportedError
from support import places
from support.aws import InAwsSm, InAwsSsm, moto
from support.fake_github import FakeGitHub, InGitHub
from support.fake_gitlab import FakeGitLab, InGitLab
from support.hostile import PASSWORD, USER, Hostile, Row
from support.kubernetes import Cluster, InKubernetes, emulator
from support.openbao import InVault, dev_server
from support.parts import secret_service

_ANYBODYS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")
Names = Callable[[], set[str]]


class Stores:
    """All stores that are there, each at once the place of one submission; `world` collects."""

    def __init__(self, world: World, found: Mapping[str, tuple[places.Place, Names]]) -> None:
        self._world, self._places = world, found
        self._stored: dict[str, set[str]] = {name: set() for name in found}
        self.figures: Counter[str] = Counter()

    def play(self, sent: Hostile) -> None:
        """One submission, into all of them. Raises AssertionError."""
        group = f"g{secrets.token_hex(6)}"
        world = self._world
        (code,) = world.requests(Batch((Row(sent, "S1", None),), "", together=True, lie=None))
        targets = [target for place, _ in self._places.values() for target in place.single(group)]
        results, err = world.collect(
            plan_collect([world.receipt(code)], to=targets, state=world.state)
        )
        keeps_to_itself(err)
        (result,) = results
        wanted = _wanted(sent)
        assert bool(result.submissions) == (wanted is not None)
        assert len(result.stored) + len(result.failures) == (len(targets) if wanted else 0)
        assert all(isinstance(error, UnsupportedError) for error in result.failures), (
            result.failures
        )
        refused = [error.message for error in result.failures]
        assert not (refused and wanted and all(map(_for_anybody, wanted.values()))), refused
        for name, (place, _) in self._places.items():
            single = [target.partition("#")[0] for target in place.single(group)]
            keys = {
                _plain(key) for each in result.stored if each.target in single for key in each.keys
            }
            there = place.there(group)
            # All or nothing, where one target holds both; and never anything else.
            assert there == {key: (wanted or {})[key].encode() for key in keys}, (
                name,
                there,
                wanted,
            )
            if there:
                self._stored[name].add(group)
            self.figures[
                f"{name}: {'stored' if keys else 'refused' if wanted else 'not usable'}"
            ] += 1

    def judge(self) -> None:
        """Nothing else is in any of them."""
        for name, (_, names) in self._places.items():
            assert names() == self._stored[name], name


def _for_anybody(text: str) -> bool:
    """Whether every store takes it; GitLab masks no shorter ones."""
    return 8 <= len(text) <= 4000 and _ANYBODYS.issuperset(text)


def _plain(key: str) -> str:
    """Which of the two a key of a store stands for."""
    return "user" if key.lower().endswith("user") else "password"


def _wanted(sent: Hostile) -> dict[str, str] | None:
    wanted = {}
    for key, label in (("password", PASSWORD), ("user", USER)):
        found = {value for name, value, _ in sent.fields or () if name == label}
        if len(found) != 1 or "" in found:
            return None
        wanted[key] = found.pop()
    return wanted


@contextmanager
def stores(world: World, names: tuple[str, ...] = ()) -> Iterator[Stores]:
    """Those of these names (all); their settings are in the environment meanwhile."""
    with ExitStack() as stack:
        made: dict[str, Callable[[], tuple[places.Place, Names]]] = {
            "vault": lambda: _vault(stack),
            "aws": lambda: _aws_sm(stack),
            "k8s": lambda: _k8s(stack),
            "github-secret": lambda: _github(stack),
            "gitlab-variable": lambda: _gitlab(stack),
            "keyring": lambda: _keyring(stack),
        }
        found = {}
        for name in names or made:
            place, known = made[name]()
            found[place.name] = (place, known)
            if isinstance(place, InAwsSm):
                ssm = InAwsSsm(place.aws)
                found["aws-ssm"] = (
                    ssm,
                    lambda ssm=ssm: {each.rpartition("/")[0][1:] for each in _parameters(ssm)},
                )
        before = dict(os.environ), tempfile.tempdir
        # Certificates for the vendors' clients are written there, and nothing else.
        tempfile.tempdir = str(world.here)
        for place, _ in found.values():
            os.environ.update(place.environ())
        try:
            yield Stores(world, found)
        finally:
            os.environ.clear()
            os.environ.update(before[0])
            tempfile.tempdir = before[1]


def _vault(stack: ExitStack) -> tuple[places.Place, Names]:
    place = InVault(stack.enter_context(dev_server()))
    return place, lambda: {*place.names("")}


def _aws_sm(stack: ExitStack) -> tuple[places.Place, Names]:
    aws = stack.enter_context(moto())
    pages = aws.client("secretsmanager").get_paginator("list_secrets")
    return InAwsSm(aws), lambda: {
        each["Name"] for page in pages.paginate() for each in page["SecretList"]
    }


def _parameters(ssm: InAwsSsm) -> Iterator[str]:
    for page in (
        ssm.aws.client("ssm")
        .get_paginator("get_parameters_by_path")
        .paginate(Path="/", Recursive=True)
    ):
        yield from (each["Name"] for each in page["Parameters"])


def _k8s(stack: ExitStack) -> tuple[places.Place, Names]:
    cluster = stack.enter_context(Cluster(stack.enter_context(emulator())))
    made = lambda: {  # noqa: E731
        asked["metadata"]["name"] for method, asked in cluster.writes if method == "POST"
    }
    return InKubernetes(cluster), made


def _github(stack: ExitStack) -> tuple[places.Place, Names]:
    hub = stack.enter_context(FakeGitHub())
    hub.vaults.places["acme", "app"].limit = 1_000_000  # GitHub takes a hundred
    kept = hub.vaults.places["acme", "app"].opened
    return InGitHub(hub), lambda: {name.partition("_")[0].lower() for name in kept}


def _gitlab(stack: ExitStack) -> tuple[places.Place, Names]:
    lab = stack.enter_context(FakeGitLab())
    kept = lab.shelves.places["projects", "acme/sub/app"]
    return InGitLab(lab), lambda: {row["key"].partition("_")[0].lower() for row in kept}


def _keyring(stack: ExitStack) -> tuple[places.Place, Names]:
    home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    place = places.InKeyring(stack.enter_context(secret_service(home)))
    return place, place.services
