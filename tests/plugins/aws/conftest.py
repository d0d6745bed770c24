"""One moto for the folder, seen through a front that notes what is asked; and a machine where nothing of AWS is set."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from plugins.aws.front import Front
from support.aws import Moto, moto


@pytest.fixture(scope="session")
def one_moto() -> Iterator[Moto]:
    with moto() as running:
        yield running


@pytest.fixture
def aws(one_moto: Moto, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Moto:
    """AWS without anything in it."""
    for name in [name for name in os.environ if name.startswith("AWS_") or name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    one_moto.reset()
    return one_moto


@pytest.fixture
def front(aws: Moto) -> Iterator[Front]:
    """What stands between sealpipe and moto."""
    with Front(aws.url) as front:
        yield front
