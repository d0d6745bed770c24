"""The processes of a server, without the command that starts them: what they say."""

from __future__ import annotations

import json
import logging
import os
import socket
import sys
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from sealpipe_service import supervising, worker
from sealpipe_service.clock import system_clock
from sealpipe_service.journal import Event, Note
from sealpipe_service.logs import JsonLines, LoggedJournal
from sealpipe_service.meters import Board, Meters, open_slot


def test_a_process_that_cannot_start_ends_the_start_with_its_reason(tmp_path: Path) -> None:
    settings = supervising.ServerSettings(
        database=f"sqlite:///{tmp_path}/no-folder/service.db",
        public_url="http://127.0.0.1:1",
        version="1",
    )
    announced: list[str] = []
    with socket.socket() as listening, closing(Board(2)) as board:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        with pytest.raises(supervising.WorkerError, match="No such file or directory"):
            supervising.serve(
                settings, listening, board, dict(os.environ), lambda: announced.append("serving")
            )
    assert announced == []


@pytest.mark.parametrize("content", [None, "no certificate"], ids=["gone", "broken"])
def test_a_file_of_authorities_that_cannot_be_read_is_a_reason(
    tmp_path: Path, content: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "start_logging", lambda: None)
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_text(content)
    settings = supervising.ServerSettings("", "http://127.0.0.1:1", "1", ca_file=str(path))
    ours, theirs = socket.socketpair()
    with ours, theirs, socket.socket() as listening, closing(Board(1)) as board:
        ours.sendall(json.dumps(asdict(settings)).encode() + b"\n")
        assert worker.work(listening, theirs, open_slot(board.fileno(), 0)) == 1
        reason = f"{path}: the certificates to trust cannot be read"
        assert ours.recv(4096).decode() == f"failed {reason}\n"


def test_each_start_that_fails_doubles_the_wait_up_to_half_a_minute() -> None:
    waits = [supervising.find_wait(failures) for failures in (*range(8), 5000)]
    assert waits == [0, 1, 2, 4, 8, 16, 30, 30, 30]


def test_settings_show_neither_an_address_nor_a_key() -> None:
    settings = supervising.ServerSettings(
        *("canary-1", "http://h", "1"),
        webhook_key="canary-2",
        mail=("smtp://u:canary-3@h", "ann@acme.example"),
    )
    shown = repr(settings)
    assert "canary" not in shown


def test_an_error_is_logged_by_type_and_place_without_what_it_says() -> None:
    def fail() -> None:
        raise ValueError("canary of a value")

    try:
        fail()
    except ValueError:
        record = logging.LogRecord(
            "sealpipe_service", logging.ERROR, __file__, 1, "%s failed", ("/v1/x",), sys.exc_info()
        )
    line = JsonLines().format(record)
    assert "canary" not in line
    told = json.loads(line)
    assert (told["level"], told["message"], told["error"]) == (
        "error",
        "/v1/x failed",
        "ValueError",
    )
    assert told["at"][-1].endswith(" fail")
    assert told["process"] == os.getpid()


def test_notes_are_logged_and_events_are_not(caplog: pytest.LogCaptureFixture) -> None:
    now = system_clock()
    payload: dict[str, Any] = {"event": "share.deleted", "short_code": "canary"}
    journal = LoggedJournal(Meters())
    journal.add_event(Event(now, "default", payload))
    journal.add_note(Note(now, "key.compromised", "key", "compromised: revoke"))
    assert [record.getMessage() for record in caplog.records] == [
        "key.compromised: key compromised: revoke"
    ]
