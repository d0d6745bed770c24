"""Lists without an end, and answers with more rows than there can be."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sealpipe import ProtocolError
from sealpipe.api import requests as api
from sealpipe.api.account import AccessLog
from sealpipe.api.operation import Response
from sealpipe.api.pages import Page, Pagination
from sealpipe.lookup import MAX_PAGES, LogPageWalk, PageWalk
from support.faults import says
from support.faulty import Faulty
from support.terminal import Terminal


def pages(page: int) -> Page[int]:
    """A page of one row, and never the last."""
    return Page((page,), Pagination(total_pages=10**9))


def numbered() -> Callable[[str | None], AccessLog | None]:
    numbers = iter(range(10**9))

    def fetch(_: str | None) -> AccessLog | None:
        return AccessLog("x", (), next_cursor=str(next(numbers)))

    return fetch


WALKS: dict[str, Callable[[], Any]] = {
    "pages by number": lambda: PageWalk(pages, lambda row: row),
    "pages by cursor": lambda: LogPageWalk(numbered()),
}


@pytest.mark.parametrize("name", WALKS)
def test_a_list_without_an_end_is_left_after_many_pages(name: str) -> None:
    walk = WALKS[name]()
    for _ in range(MAX_PAGES):
        walk.fetch_next()
    assert not walk.is_done
    with pytest.raises(ProtocolError, match="more than 10000 pages"):
        walk.fetch_next()


def test_more_submissions_than_can_be_are_not_taken_for_any() -> None:
    body = b'{"submissions": [%s]}' % b",".join([b"{}"] * (api.MAX_SUBMISSIONS + 1))
    with pytest.raises(ProtocolError, match="more than 200000 submissions"):
        api.list_submissions("x").decode(Response(200, {}, body))
    assert (
        len(api.list_submissions("x").decode(Response(200, {}, body.replace(b"{},", b"", 1))).items)
        == api.MAX_SUBMISSIONS
    )


def test_a_repeated_submission_is_stored_once(user: Terminal, faulty: Faulty) -> None:
    rows = [{"short_code": "s", "data": "AA=="}] * 3
    ended, told = '{"short_code": "x", "expired_at": null}', json.dumps({"submissions": rows})
    faulty.plan(says(200, ended), says(200, told), says(200, ended), says(200, told))
    done = user.sealpipe(
        "requests", "expire", "x", "--output", "json", SEALPIPE_BASE_URL=faulty.base_url
    )
    assert (done.code, done.json["kept"], done.json["late"]) == (0, 1, 0), done
    assert Path(done.json["kept_in"]).read_text().count('"submission"') == 1
