"""What stands before every route, and routes that are not there (specification: Authentication
failures).

No test here sends all three parts of a credential: the key would count as compromised. None sends
DELETE without a short code: were the host to get that wrong, it would be for good.
"""

from __future__ import annotations

import pytest

from e2e.live.target import Caller


def test_without_a_credential_it_is_401_with_message(api: Caller) -> None:
    response = api.send("GET", "/shares", authorization=None)
    assert (response.status_code, response.json()["message"]) == (401, "Unauthorized")
    assert "error_code" not in response.json()


def test_every_credential_that_is_not_usable_gets_the_one_403(api: Caller) -> None:
    tag = api.target.api_key.reveal().partition("_")[0]
    unknown = f"Bearer {tag}_sk_live_{'x' * 16}.{'x' * 43}"
    responses = [
        api.send("GET", "/shares", authorization=given) for given in ("Bearer nonsense", unknown)
    ]
    assert [response.status_code for response in responses] == [403, 403]
    assert responses[0].content == responses[1].content
    assert "explicit deny" in responses[0].json()["Message"]
    assert "error_code" not in responses[0].json()


@pytest.mark.parametrize(("method", "path"), [("PATCH", "/shares"), ("GET", "/shares/x/content")])
def test_a_route_that_is_not_there_is_refused_without_an_error_code(
    api: Caller, method: str, path: str
) -> None:
    response = api.send(method, path)
    assert 400 <= response.status_code < 500
    assert "error_code" not in response.json()
