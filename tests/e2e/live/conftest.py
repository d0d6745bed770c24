"""Each of these tests runs at the rehearsal, and at a development host where the environment names
one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from e2e.live.target import VARIABLES, Caller, Target, absent, development_host
from sealpipe_rehearsal.server import start
from support.terminal import bare

__all__ = ["api", "bare", "target"]


LIVE = [pytest.mark.live]
if absent(os.environ) == list(VARIABLES.values()):
    # Always allowed, in a strict run, too. A mark, so that pytest tells it once a file and not once
    # a test.
    LIVE.append(
        pytest.mark.skip(reason=f"no development host: {', '.join(VARIABLES.values())} are not set")
    )


@pytest.fixture(scope="session", params=["rehearsal", pytest.param("development host", marks=LIVE)])
def target(request: pytest.FixtureRequest) -> Iterator[Target]:
    if request.param != "rehearsal":
        yield development_host(os.environ)
        return
    with start() as running:
        yield Target("rehearsal", running.base_url, running.link_base_url, running.create_key())


@pytest.fixture
def api(target: Target) -> Iterator[Caller]:
    """A caller; what the test made is ended after it."""
    caller = Caller(target)
    yield caller
    caller.clean_up()
