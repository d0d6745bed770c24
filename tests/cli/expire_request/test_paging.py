"""Walking lists of requests: real pages, and a server whose pages repeat, are short or have no
figures.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from support.faults import message
from support.faulty import Exchange, Fault, Faulty
from support.job import Caller, Job, made

Serving = Callable[[int, int], dict[str, Any]]


def row(number: int) -> dict[str, Any]:
    return {
        "short_code": f"c{number}",
        "expired_at": "2099-01-01T00:00:00Z",
        "public_key": "P",
        "note": number,
    }


def serves(pages: Serving) -> Fault:
    """A list of our own: `pages(page, limit)` is the answer."""

    def fault(exchange: Exchange) -> None:
        asked = parse_qs(urlsplit(exchange.received.target).query)
        body = json.dumps(pages(int(asked["page"][0]), int(asked["limit"][0]))).encode()
        exchange.send(message(200, body, {"Content-Type": "application/json"}))

    return fault


def short_pages(page: int, _: int) -> dict[str, Any]:
    rows = [row(page)] if page <= 4 else []
    return {
        "requests": rows,
        "pagination": {"page": page, "limit": 100, "total_pages": 4, "total": 4},
    }


def no_figures(page: int, _: int) -> dict[str, Any]:
    return {"requests": [row(page)] if page <= 4 else []}


def empty_figures(page: int, _: int) -> dict[str, Any]:
    return {
        "requests": [row(page)] if page <= 4 else [],
        "pagination": {"page": None, "colour": "red"},
    }


def repeats_the_last(page: int, _: int) -> dict[str, Any]:
    """What is beyond the end is corrected, and so the last page comes again and again."""
    return {"requests": [row(min(page, 4))]}


def moves(page: int, _: int) -> dict[str, Any]:
    """A new one joins at the front while the list is walked: each page begins with the last row of
    the one before.
    """
    return {"requests": [row(number) for number in (page - 1, page) if 1 <= number <= 4]}


@pytest.mark.parametrize("pages", [short_pages, no_figures, empty_figures, repeats_the_last, moves])
def test_every_row_comes_once_and_the_walk_ends(
    pages: Serving, proxied: Callable[..., Faulty], call_at: Callable[[str], Caller]
) -> None:
    server = proxied(then=serves(pages))
    rows = call_at(server.base_url)("iter_requests")
    assert [found.short_code for found in rows] == ["c1", "c2", "c3", "c4"]
    assert [found.extra for found in rows] == [{"note": number} for number in (1, 2, 3, 4)]
    assert len(server.received()) <= 6


def test_a_page_without_figures_says_so_with_none(
    proxied: Callable[..., Faulty], call_at: Callable[[str], Caller]
) -> None:
    page = call_at(proxied(then=serves(no_figures)).base_url)("list_requests")
    assert {
        page.pagination.page,
        page.pagination.limit,
        page.pagination.total_pages,
        page.pagination.total,
    } == {None}


def test_the_services_own_pages_are_walked_newest_first(call: Caller, job: Job) -> None:
    codes = [made(job) for _ in range(5)]
    assert [found.short_code for found in call("iter_requests", limit=2)] == codes[::-1]
    page = call("list_requests", page=2, limit=2)
    assert [found.short_code for found in page.items] == codes[::-1][2:4]
    assert (page.pagination.total, page.pagination.total_pages) == (5, 3)
