"""AWS as moto has it, seen through a front that notes what is asked; and a machine where nothing of
AWS is set.
"""

from __future__ import annotations

import pytest

from support.aws import DEFAULT, ENVIRON, Front, aws, front, one_moto

__all__ = ["aws", "front", "one_moto"]


@pytest.fixture
def environ(front: Front, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The variables of a login, and the settings that lead to the front."""
    for name, value in ENVIRON.items():
        monkeypatch.setenv(name, value)
    return {**ENVIRON, f"{DEFAULT}ENDPOINT_URL": front.base_url, f"{DEFAULT}TIMEOUT": "20"}
