"""One full round with each of the ways in: Client, AsyncClient, the command line."""

from __future__ import annotations

import asyncio
from base64 import urlsafe_b64decode
from datetime import UTC, datetime
from typing import Any

import pytest

from e2e.live.target import FIELDS, LIFE, PUBLIC_KEY, Caller, Target
from environment import MACHINE
from sealpipe import AsyncClient, Client, Field, NotFoundError, Share
from support.terminal import Terminal

CONTENT = [Field("Note", "sealpipe live test: nothing secret", type="text")]
OPTIONS: dict[str, Any] = {"title": "sealpipe live test", "expires_in": LIFE, "views": 1}


def request_options() -> dict[str, Any]:
    return {
        "title": OPTIONS["title"],
        "public_key": urlsafe_b64decode(PUBLIC_KEY + "="),
        "fields": [(field["item"], field["type"]) for field in FIELDS],
        "expires_at": datetime.now(UTC) + LIFE,
    }


def arguments(target: Target) -> dict[str, Any]:
    return {
        "api_key": target.api_key,
        "base_url": target.base_url,
        "link_base_url": target.link_base_url,
    }


def holds(target: Target, share: Share) -> bool:
    """Whether a share is what it should be: new, with a link of this host, and an end that is
    near.
    """
    assert share.outcome == "created"
    assert share.custody in ("none", "stored", "failed")
    assert share.expires_at is not None
    assert abs(share.expires_at - datetime.now(UTC) - LIFE).total_seconds() < 60
    address, _, fragment = share.link.reveal().partition("#")
    return (
        address.startswith(f"{target.link_base_url}/")
        and fragment[0] == "1"
        and len(fragment) == 44
    )


def test_client(api: Caller) -> None:
    with Client(**arguments(api.target)) as client:
        share = client.share(CONTENT, **OPTIONS)
        api.remember("shares", share.short_code)
        assert holds(api.target, share)
        assert client.get_share(share.short_code).expires_at == share.expires_at
        assert share.short_code in [item.short_code for item in client.list_shares(limit=100).items]
        client.expire_share(share.short_code)
        with pytest.raises(NotFoundError):
            client.get_share(share.short_code)
        code = client.create_request(**request_options()).short_code
        api.leave_request(code)
        assert client.get_request(code).public_key == PUBLIC_KEY
        assert code in [item.short_code for item in client.list_requests(limit=100).items]
        assert client.list_submissions(code).items == ()
        client.expire_request(code)
        assert client.get_request(code).expires_at is None


def test_async_client(api: Caller) -> None:
    async def main() -> None:
        async with AsyncClient(**arguments(api.target)) as client:
            share = await client.share(CONTENT, **OPTIONS)
            api.remember("shares", share.short_code)
            assert holds(api.target, share)
            assert (await client.get_share(share.short_code)).expires_at == share.expires_at
            assert share.short_code in [
                item.short_code for item in (await client.list_shares(limit=100)).items
            ]
            await client.expire_share(share.short_code)
            with pytest.raises(NotFoundError):
                await client.get_share(share.short_code)
            assert len((await client.get_stats()).daily_views) == 14

    asyncio.run(main())


def test_command_line(api: Caller, bare: Terminal) -> None:
    bare.environ |= {
        "SEALPIPE_API_KEY": api.target.api_key.reveal(),
        "SEALPIPE_BASE_URL": api.target.base_url,
        "SEALPIPE_LINK_BASE_URL": api.target.link_base_url,
        "SEALPIPE_OUTPUT": "json",
        **{
            name: MACHINE[name]
            for name in ("HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE")
            if name in MACHINE
        },
    }
    words = [
        "-f",
        "Note=text:nothing secret",
        "--title",
        "sealpipe live test",
        "--expires-in",
        "10m",
        "--views",
        "1",
    ]
    made = bare.sealpipe("share", *words)
    assert made.code == 0, made.err
    code = made.json["short_code"]
    api.remember("shares", code)
    assert made.json["link"].startswith(f"{api.target.link_base_url}/")
    shown = bare.sealpipe("shares", "show", code)
    assert (shown.code, shown.json["expires_at"]) == (0, made.json["expires_at"])
    assert code in [row["short_code"] for row in bare.sealpipe("shares", "list").json["shares"]]
    assert bare.sealpipe("shares", "expire", code).code == 0
    gone = bare.sealpipe("shares", "show", code)
    assert (gone.code, gone.error["error_code"]) == (6, 1)
    assert bare.outbox() == []
    code = api.created("requests")
    assert code in [row["short_code"] for row in bare.sealpipe("requests", "list").json["requests"]]
    api.leave_request(code)
    assert bare.sealpipe("requests", "expire", code).code == 0
    assert bare.sealpipe("requests", "show", code).json["expires_at"] is None
    assert bare.sealpipe("stats").code == 0
