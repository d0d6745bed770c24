"""The published `credenshare` client, unchanged, against the service run with its tag; and people's
links.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import credenshare  # type: ignore[import-untyped]  # it ships no types
import pytest

from sealpipe.errors import FragmentError
from sealpipe_rehearsal.running_service import RunningService
from sealpipe_rehearsal.server import start
from service.callers import Api
from service.sdk_cases import *  # noqa: F403  # its cases are tests of this file
from service.sdk_cases import FIELDS


@pytest.fixture(scope="module")
def crs_service() -> Iterator[RunningService]:
    with start(service_tag="crs") as running:
        yield running


@pytest.fixture
def service(crs_service: RunningService) -> RunningService:
    crs_service.reset()
    crs_service.set_account(requests_per_minute=100_000)
    return crs_service


@pytest.mark.spec("rules.key-never-sent", "credential.custody-nowhere", "credential.only-two")
def test_the_service_saw_neither_plaintext_nor_key_nor_custody_secret(
    service: RunningService,
) -> None:
    credential = service.create_key()
    custody_secret = credential.reveal().rpartition(".")[2]
    with credenshare.CredenShare(
        credential.reveal(), base_url=service.base_url, link_origin=service.link_base_url
    ) as client:
        share = client.shares.create(
            title="t", fields=FIELDS, passcode="correct horse", custody=True
        )
    service.recipient().open_link(share.link, "correct horse")
    seen = b"".join(bytes(request) for request in service.seen())
    assert share.short_code.encode() in seen
    for hidden in ("s3cret", "correct horse", custody_secret, share.link.partition("#1")[2]):
        assert hidden.encode() not in seen


@pytest.mark.parametrize(
    ("cut", "reason"), [("", "missing-key"), ("#", "missing-key"), ("#1abc", "malformed-key")]
)
def test_a_recipient_with_half_a_link_spends_nothing(
    service: RunningService, caller: Callable[..., Api], cut: str, reason: str
) -> None:
    code = caller(service).created(access_counts_left=1)
    with pytest.raises(FragmentError) as half:
        service.recipient().open_link(f"{service.link_base_url}/{code}{cut}")
    assert half.value.reason == reason
    assert service.recipient().look(f"{service.link_base_url}/{code}")["short_code"] == code
