"""What a test needs beyond Python: skipped with its reason, or failed where a run must be whole."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import NoReturn

import pytest

ROOT = Path(__file__).resolve().parents[2]


def missing(reason: str) -> NoReturn:
    """Skip; with SEALPIPE_TESTS_STRICT=1 fail, so that a whole run cannot pass by skipping."""
    if os.environ.get("SEALPIPE_TESTS_STRICT") == "1":
        pytest.fail(f"a part is missing: {reason}")
    pytest.skip(reason)


def program(name: str) -> str:
    """The path of an installed program."""
    return shutil.which(name) or missing(f"{name} is not installed")


def shared(path: str) -> Path:
    """A file of the folder beside the checkout. Always an allowed skip: a clone alone has none."""
    file = ROOT.parent / "shared" / path
    if not file.exists():
        pytest.skip(f"../shared/{path} is not beside this checkout")
    return file
