"""A world for each test of batches."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.batch.world import BatchWorld


@pytest.fixture
def world(tmp_path: Path) -> Iterator[BatchWorld]:
    made = BatchWorld(tmp_path)
    yield made
    made.close()


@pytest.fixture
def extended_world(tmp_path: Path) -> Iterator[BatchWorld]:
    """With the access log and the capabilities."""
    made = BatchWorld(tmp_path, extended=True)
    yield made
    made.close()
