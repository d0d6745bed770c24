"""Sinks whose store is in trouble before anything is written: to be tried again, and nothing is
told of the value.
"""

from __future__ import annotations

import pytest

from sealpipe.errors import UnavailableError
from sealpipe.testing.contract import PATIENCE, FaultyServer
from support.aws import ENVIRON, aws, one_moto
from support.backends import SECRET, put_refused

__all__ = ["aws", "one_moto"]

AWS, K8S = "SEALPIPE_PLUGIN_AWS__", "SEALPIPE_PLUGIN_K8S__"


@pytest.mark.usefixtures("aws")
@pytest.mark.parametrize("target", ["aws-sm:db", "aws-ssm:/db", "k8s:prod/db"])
@pytest.mark.parametrize("how", ["429", "503", "closed", "silent", "dripping"])
def test_a_store_that_does_not_answer_is_unavailable(
    monkeypatch: pytest.MonkeyPatch, target: str, how: str
) -> None:
    for name, value in ENVIRON.items():
        monkeypatch.setenv(name, value)
    trouble = FaultyServer(how)
    settings = {f"{AWS}ENDPOINT_URL": trouble.url}
    settings |= {f"{K8S}SERVER": trouble.url, f"{K8S}TOKEN": "t"}
    # Short only where time has to run out: on a busy machine the others need longer.
    if how == "silent":
        settings |= {f"{AWS}TIMEOUT": "0.3", f"{K8S}TIMEOUT": "0.3"}
    elif how == "dripping":
        monkeypatch.setattr("sealpipe.network.plugin_network.DEADLINE", PATIENCE)
    try:
        error = put_refused({**ENVIRON, **settings}, target, {"a": SECRET}, UnavailableError, "")
    finally:
        trouble.stop()
    assert isinstance(error, UnavailableError)
    assert error.retry_after == (FaultyServer.retry_after if how.isdigit() else None)
    # A server that is slow to start has received none when the time is up.
    assert trouble.received <= 1, "the core repeats, not the sink"
