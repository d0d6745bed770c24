"""What a command writes is passed on until it has ended, and what its own children write soon after
it.
"""

from __future__ import annotations

import os
import threading

import pytest

from sealpipe.run import streams
from sealpipe.run.redaction import Redactor
from sealpipe.spellings import Finder


def relayed(monkeypatch: pytest.MonkeyPatch, grace: float, *, closes: bool) -> bytes:
    """What arrives of a command that has ended, while another process still writes to its
    stream.
    """
    monkeypatch.setattr(streams, "GRACE", grace)
    (reads, writes), (out, target) = os.pipe(), os.pipe()
    os.write(writes, b"early\n")

    def write_late() -> None:
        os.write(writes, b"late\n")
        os.close(writes)

    late = threading.Timer(0.2, write_late)
    if closes:
        late.start()
    with streams.Signals() as signals:
        assert (
            streams.relay([streams.Stream(reads, target, Redactor(Finder([])))], signals, lambda: 7)
            == 7
        )
    os.close(target)
    if closes:
        late.join()
    else:
        os.close(writes)
    with os.fdopen(out, "rb") as stream:
        return stream.read()


def test_what_is_written_soon_after_the_end_arrives(monkeypatch: pytest.MonkeyPatch) -> None:
    assert relayed(monkeypatch, 60, closes=True) == b"early\nlate\n"


def test_a_stream_that_stays_open_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    assert relayed(monkeypatch, 0.1, closes=False) == b"early\n"


def test_what_was_written_before_the_end_arrives_without_any_grace(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert relayed(monkeypatch, 0, closes=False) == b"early\n"
