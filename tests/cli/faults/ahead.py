"""Tests that mostly wait for a deadline: the work of all of them is done at once, each asserts on its own part."""

from __future__ import annotations

from typing import Any

import pytest


def selected(request: pytest.FixtureRequest, parameter: str) -> list[Any]:
    """The values of a parameter in the tests of this module that are about to run, each once."""
    found: dict[int, Any] = {}
    for item in request.session.items:
        if isinstance(item, pytest.Function) and item.module is request.module and hasattr(item, "callspec"):
            value = item.callspec.params.get(parameter)
            if value is not None:
                found[id(value)] = value
    return list(found.values())
