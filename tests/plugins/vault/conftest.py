"""One OpenBao for the folder, with what the tests read in it; and a machine where nothing of Vault
is set.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from sealpipe.registry import Registry
from support.backends import registries
from support.fake_web import FrontDoor
from support.openbao import Bao, dev_server
from support.terminal import bare, one_service, service, user

__all__ = ["bare", "one_service", "service", "user"]


@pytest.fixture(scope="session")
def one_bao() -> Iterator[Bao]:
    with dev_server() as bao:
        bao.call("POST", "sys/mounts/kv1", {"type": "kv", "options": {"version": "1"}})
        bao.call("POST", "sys/mounts/deep/mount", {"type": "kv", "options": {"version": "2"}})
        bao.call("POST", "secret/data/app/db", {"data": {"password": "s3cret", "user": "app"}})
        bao.call("POST", "deep/mount/data/a/b", {"data": {"x": "deep"}})
        bao.call("POST", "kv1/a", {"x": "one"})
        bao.call("POST", "sys/auth/approle", {"type": "approle"})
        bao.policy("app", "secret/data/app/*")
        yield bao


@pytest.fixture
def bao(one_bao: Bao, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Bao:
    for name in [
        name
        for name in os.environ
        if name.startswith(("VAULT_", "BAO_")) or name.lower().endswith("_proxy")
    ]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    return one_bao


Registries = Callable[[Mapping[str, str]], Registry]


@pytest.fixture
def registry_of(bao: Bao) -> Iterator[Registries]:
    """Makes registries with an environment of their own (beside the address), and closes them."""
    with registries(VAULT_ADDR=bao.addr) as make:
        yield lambda environ: make(**environ)


@pytest.fixture
def root(registry_of: Registries, bao: Bao) -> Registry:
    """A registry whose token may do all."""
    return registry_of({"VAULT_TOKEN": bao.root})


@pytest.fixture
def front(bao: Bao) -> Iterator[FrontDoor]:
    """What stands between sealpipe and OpenBao, and notes what is asked."""
    with FrontDoor(bao.addr) as front:
        yield front
