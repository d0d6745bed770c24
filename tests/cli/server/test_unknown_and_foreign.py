"""What there is not and what is another's get the same answer, by the same work."""

from __future__ import annotations

import hashlib
import hmac
from typing import Any

import httpx
import pytest

from cli.server.pairs import make_pairs
from sealpipe_service.database import sqlite
from support.server_thread import serve_in_thread


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is asked of the database, hashed and compared: by names."""
    done: list[str] = []

    def note(owner: Any, name: str, is_statement: bool = False) -> None:  # noqa: FBT001, FBT002
        real = getattr(owner, name)

        def noted(*words: Any, **values: Any) -> Any:
            done.append(f"{name} {words[1]}" if is_statement else name)
            return real(*words, **values)

        monkeypatch.setattr(owner, name, noted)

    for each in ("rows", "change"):
        note(sqlite.Connection, each, is_statement=True)
    note(hmac, "compare_digest")
    for each in ("sha256", "pbkdf2_hmac"):
        note(hashlib, each)
    return done


def test_a_stranger_is_answered_by_the_same_statements_hashes_and_bytes(work: list[str]) -> None:
    with (
        serve_in_thread() as server,
        httpx.Client(base_url=f"http://{server.host}", trust_env=False) as client,
    ):
        for name, pair in make_pairs(server, client).items():
            client.send(pair[0])  # the first call of a minute marks the key as used
            seen = []
            for request in pair:
                work.clear()
                answer = client.send(request)
                headers = {**answer.headers, "date": ""}
                seen.append((answer.status_code, headers, answer.content, tuple(work)))
            unknown, foreign = seen
            assert unknown == foreign, name
            assert unknown[0] in (403, 404)
            assert any(each.startswith("rows ") for each in unknown[3])
            if name in ("a key", "a token"):
                assert "compare_digest" in unknown[3]
