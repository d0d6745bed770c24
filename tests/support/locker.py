"""A sink that stores over HTTP as a careful author writes it, and wrong in one way where asked for;
and the backend that it writes to.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import httpx

from sealpipe.plugin import (
    AccessDeniedError,
    Locator,
    Mode,
    PluginError,
    Sink,
    SinkField,
    UnavailableError,
    UnknownOutcomeError,
    WriteResult,
    merge_fields,
    parse_retry_after,
)
from support.drawer import reveal_texts
from support.fake_web import Asked, FakeWeb, Reply


class FakeLocker(FakeWeb):
    """Boxes by name: each has values, a version and the label of who wrote last."""

    def __init__(self) -> None:
        super().__init__()
        self.boxes: dict[str, dict[str, Any]] = {}
        self.lock = threading.Lock()

    def answer(self, asked: Asked) -> Reply:
        name = asked.path.strip("/")
        with self.lock:
            box = self.boxes.get(name, {"version": 0})
            if asked.method == "GET":
                return Reply(200 if box["version"] else 404, box)
            if asked.query.get("version", str(box["version"])) != str(box["version"]):
                return Reply(412)
            self.boxes[name] = {**asked.json, "version": box["version"] + 1}
            return Reply(204)


class Locker(Sink):
    """`wrong` is the one thing that it does wrong: a name of `FAULTS`."""

    wrong = ""

    def describe(self, locator: Locator, mode: Mode) -> str:
        return f"{mode} the box {locator.body}"

    def put(
        self, locator: Locator, fields: Sequence[SinkField], *, mode: Mode, marker: str
    ) -> WriteResult:
        box = self._read(locator)
        there = {key: value.encode() for key, value in box["values"].items()} if box else None
        wanted = {key: text.encode() for key, text in reveal_texts(fields).items()}
        marked = box.get("label") == marker
        after = merge_fields(there, wanted, mode=mode, marked=marked)
        before = box.get("version", 0)
        if after is None:
            return WriteResult(locator, str(before), already=True)
        values = {key: value.decode() for key, value in after.items()}
        condition = "" if self.wrong == "it writes without a condition" else f"?version={before}"
        self._ask("PUT", locator.body + condition, {"values": values, "label": marker})
        if self.wrong == "it does not read back":
            return WriteResult(locator, str(before + 1))
        if self.wrong == "it labels without a condition":
            self._ask("PUT", locator.body, {"values": values, "label": marker})
        box = self._read(locator) or {"values": {}}
        read = {key: text.encode() for key, text in box["values"].items()}
        if not wanted.items() <= read.items():  # another writer may have changed the others since
            raise PluginError("it did not read back as written", remedy="check what else writes it")
        return WriteResult(locator, str(box["version"]))

    def _read(self, locator: Locator) -> dict[str, Any]:
        response = self._ask("GET", locator.body)
        found: dict[str, Any] = response.json() if response.status_code == 200 else {}
        return found

    def _ask(self, method: str, path: str, members: Any = None) -> httpx.Response:
        url = f"{self.context.environ['LOCKER']}/{path}"
        try:
            follows = method == "PUT" and self.wrong == "it follows the redirect of a write"
            response = self.context.network.http().request(
                method, url, json=members, follow_redirects=follows
            )
        except httpx.HTTPError:
            if self.wrong == "the errors of its HTTP library come out":
                raise
            is_lost = method == "PUT" and self.wrong != "a lost write is retryable"
            error = UnknownOutcomeError if is_lost else UnavailableError
            raise error("the locker did not respond", remedy="run it again") from None
        if response.status_code == 400:
            quotes = self.wrong == "it quotes the message of a refusal"
            is_json = response.headers.get("content-type") == "application/json"
            why = response.json()["message"] if quotes and is_json else "it is wrong"
            raise PluginError(f"the locker refused it: {why}", remedy="see its log")
        if response.status_code == 412:
            raise UnavailableError("another writer was faster", remedy="run it again")
        if response.status_code == 403:
            raise AccessDeniedError("the locker is not yours", remedy="ask its owner")
        if response.status_code in (429, 503):
            wait = parse_retry_after(response.headers.get("retry-after", ""))
            raise UnavailableError("the locker is busy", remedy="wait", retry_after=wait)
        return response


FAULTS = {
    "it does not read back": "test_what_the_backend_only_says_it_wrote_is_not_called_stored",
    "it writes without a condition": "test_a_merge_keeps_what_another_writer_adds_meanwhile",
    "the errors of its HTTP library come out": (
        "test_a_write_whose_response_is_lost_is_found_or_unknown"
    ),
    "it labels without a condition": "test_a_merge_keeps_what_another_writer_adds_meanwhile",
    "it follows the redirect of a write": "test_a_redirected_write_is_not_followed",
    "it quotes the message of a refusal": "test_a_refused_write_is_an_error_that_quotes_nothing",
    "a lost write is retryable": "test_a_write_whose_response_is_lost_is_found_or_unknown",
}
"""What the locker does wrong, and the test of the contract that has to notice."""
