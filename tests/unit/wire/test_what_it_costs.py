"""What the wire format loads, and what a large value costs in memory."""

from __future__ import annotations

import os
import subprocess
import sys
import tracemalloc

import pytest

from sealpipe.errors import FieldError, PayloadTooLargeError
from sealpipe.secret import Secret
from sealpipe.wire import envelope, fields
from sealpipe.wire.fields import Field

CURVES = "cryptography.hazmat.primitives.asymmetric"
CIPHERS = "cryptography.hazmat.primitives.ciphers"


def loaded_by(module: str) -> set[str]:
    code = f"import sys, {module}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    return set(done.stdout.split())


@pytest.mark.parametrize(
    ("module", "without"),
    [
        ("sealpipe.wire", ["cryptography", "json", "sealpipe.wire.encoding"]),
        ("sealpipe.wire.encoding", ["cryptography", "json"]),
        ("sealpipe.wire.fields", ["cryptography"]),
        ("sealpipe.wire.tokens", [CURVES, CIPHERS, "json"]),
        ("sealpipe.wire.link", [CURVES, CIPHERS, "json"]),
        ("sealpipe.wire.envelope", [CURVES, "json"]),
        ("sealpipe.wire.keys", ["json"]),
    ],
)
def test_a_module_loads_only_what_it_uses(module: str, without: list[str]) -> None:
    loaded = loaded_by(module)
    assert module in loaded
    assert not loaded.intersection(without)
    assert not loaded.intersection(
        {"httpx", "click", "pluggy", "pydantic", "asyncio", "urllib.request"}
    )


def peak(call: object) -> int:
    assert callable(call)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        call()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "unit", [b"abcdefghij", b"A" * 64 + b"\n", "žluť 🐎".encode()], ids=["plain", "pem", "utf-8"]
)
def test_a_large_secret_is_sealed_in_little_more_than_its_base64(unit: bytes) -> None:
    value = unit * (10_000_000 // len(unit))
    secret, key = Secret(value), os.urandom(32)
    size = len(fields.dump([Field("k", secret, type="text")]))
    body = bytearray()
    used = peak(
        lambda: envelope.seal_chunks(
            key, fields.chunks([Field("k", secret, type="text")]), out=body
        )
    )
    # 4/3 for base64 and what a bytearray keeps in reserve (an eighth at most, never touched)
    assert used < 1.51 * size
    assert fields.load(envelope.open(key, body.decode()))[0].value == value.decode()


def test_a_large_secret_streams_in_next_to_nothing() -> None:
    secret, key, total = Secret(b"abcdefghij" * 1_000_000), os.urandom(32), 0

    def count(piece: bytes) -> None:
        nonlocal total
        total += len(piece)

    used = peak(
        lambda: envelope.seal_chunks(
            key, fields.chunks([Field("k", secret, type="text")]), out=count
        )
    )
    assert total > 13_000_000
    assert used < 1_000_000


def test_what_was_built_is_left_as_it_was_when_sealing_fails() -> None:
    body = bytearray(b'{"data":"')
    key = os.urandom(32)
    with pytest.raises(FieldError):
        envelope.seal_chunks(
            key, fields.chunks([Field("k", "x" * 200_000 + "\ud800", type="text")]), out=body
        )
    with pytest.raises(PayloadTooLargeError):
        envelope.seal_chunks(key, [bytes(1_000_000)] * 17, out=body)
    assert body == b'{"data":"'


def test_an_envelope_holds_sixteen_mebibytes_and_not_a_byte_more() -> None:
    key, whole = os.urandom(32), bytes(fields.PLAINTEXT_LIMIT)
    assert envelope.open(key, envelope.seal(key, whole)) == whole
    with pytest.raises(PayloadTooLargeError):
        envelope.seal(key, whole + b"\0")
