"""The pytest fixture `sealpipe_rehearsal` (entry point `pytest11`; docs/how-to/test-your-code.md).

Whoever has sealpipe installed imports this module in every pytest run: nothing but pytest stands at its top.
"""

from __future__ import annotations

import pytest

TYPE_CHECKING = False  # as typing's own
if TYPE_CHECKING:
    from collections.abc import Iterator

    from sealpipe_rehearsal.for_tests import Rehearsal
    from sealpipe_rehearsal.running import Running


@pytest.fixture(scope="session")
def _sealpipe_rehearsal_service() -> Iterator[Running]:
    """One service a session (under xdist one a worker), started by the first test that wants it."""
    missing = None
    try:
        from sealpipe_rehearsal.server import start
    except ImportError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in ("starlette", "uvicorn"):
            raise
    if missing:
        pytest.fail(
            f"the fixture sealpipe_rehearsal needs {missing}, which is not installed: "
            "pip install 'sealpipe[rehearsal]'",
            pytrace=False,
        )
    with start() as running:
        yield running


@pytest.fixture
def sealpipe_rehearsal(
    _sealpipe_rehearsal_service: Running, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Rehearsal]:
    """sealpipe's service as a local copy that has seen nothing yet, and the people at the other end of its links.

    .base_url .link_base_url .api_key .credential(scopes=, custody=) .client() .environ() .recipient .submitter
    .advance(seconds) .faults(...) .seen() .events() .set_account(...) .webhook(url) .deliveries() .extend()
    """
    from sealpipe_rehearsal.for_tests import Rehearsal

    with Rehearsal(_sealpipe_rehearsal_service, lambda: tmp_path_factory.mktemp("sealpipe_rehearsal")) as rehearsal:
        yield rehearsal
