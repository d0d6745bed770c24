"""Files of any bytes: from a vendor into a store, from a store to a recipient, byte for byte."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable

import pytest

from cli.collect.submitter import Asked, ask, kept
from sealpipe.wire.encoding import PLAINTEXT_LIMIT, encode_base64url
from sealpipe.wire.fields import revealed
from support.job import Job
from support.terminal import opened

KEYSTORE = b"0\x82\n\x1f\x02\x01\x03\xff\xfe\r\n\x00 " * 500
"""No text, and with what programs strip from both ends of one."""


def as_printed(data: bytes) -> str:
    """As `base64 FILE` prints it, 76 characters a line."""
    text = base64.b64encode(data).decode()
    return "".join(f"{text[start : start + 76]}\n" for start in range(0, len(text), 76))


def ask_for_keystore(job: Job) -> Asked:
    return ask(job, "Keystore:multiline", "Passphrase")


@pytest.mark.parametrize(
    ("encoding", "encode"),
    [
        ("base64", as_printed),
        ("base64url", encode_base64url),
        ("hex", lambda data: data.hex(" ").upper()),
    ],
)
def test_a_vendors_file_is_stored_byte_for_byte(
    encoding: str, encode: Callable[[bytes], str], job: Job
) -> None:
    asked = ask_for_keystore(job)
    asked.send_fields(("Keystore", encode(KEYSTORE)), ("Passphrase", "hunter2"))
    targets = (
        f"file:key.p12?decode={encoding}#keystore",
        f"dir:in?decode={encoding}#key.p12=keystore",
        "dir:in#passphrase",
    )
    for told in ("stored", "already there"):
        done = job.run(
            "collect", asked.file(), *(word for target in targets for word in ("--to", target))
        )
        assert done.code == 0, done
        assert done.out.count(f"\t{told}\n") == 2
    here = job.terminal.here
    assert (here / "key.p12").read_bytes() == (here / "in/key.p12").read_bytes() == KEYSTORE
    assert (here / "in/passphrase").read_text() == "hunter2"


def test_what_cannot_be_decoded_is_kept_and_told_without_the_value(job: Job) -> None:
    """The submitter may send it again, and the request is still there for that."""
    asked = ask_for_keystore(job)
    asked.send_fields(("Keystore", "c4nary-not-base64!"), ("Passphrase", "hunter2"))
    words = ("collect", asked.file(), "--to", "file:key.p12?decode=base64#keystore")
    done = job.run(*words, "--after", "expire")
    assert done.code == 13
    assert "its value for keystore is not base64" in done.err
    assert "c4nary" not in done.out + done.err
    assert (asked.active(), len(kept(job.state / "requests"))) == (True, 1)
    assert not (job.terminal.here / "key.p12").exists()

    asked.send_fields(("Keystore", as_printed(KEYSTORE)), ("Passphrase", "hunter2"))
    assert job.run(*words, "--after", "expire").code == 13, "the first one is still unreadable"
    assert (job.terminal.here / "key.p12").read_bytes() == KEYSTORE


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("vault:secret/acme?decode=base64#keystore", "vault stores only text, and decode="),
        ("op://Vendors/acme?decode=hex#keystore", "op stores only text, and decode="),
        ("dotenv:x?decode=base64#K=keystore", "dotenv stores only text, and decode="),
        ("aws-sm:acme?decode=base64#keystore", "aws-sm stores only text under a key, and"),
    ],
)
def test_bytes_for_a_store_of_text_are_refused_before_anybody_is_asked(
    target: str, words: str, job: Job
) -> None:
    asked = ask_for_keystore(job)
    before = len(job.service.seen())
    done = job.run("collect", asked.file(), "--to", target)
    assert done.code == 2
    assert words in done.err
    assert "leave decode= out, and read what is stored with ?decode=" in done.err
    shared = job.share("--also-to", target.replace("keystore", "DB_PASSWORD"))
    assert (shared.code, words in shared.err) == (2, True)
    assert len(job.service.seen()) == before


def test_a_recipient_gets_a_file_of_any_bytes_as_text(job: Job) -> None:
    (job.terminal.here / "key.p12").write_bytes(KEYSTORE)
    ref = "file:key.p12?encode=base64&type=source_code&filename=key.p12.b64"
    done = job.run("share", f"Keystore={ref}")
    assert done.code == 0, done
    (field,) = job.service.recipient().open_link(done.out.rstrip("\n"))
    assert (field.type, field.filename) == ("source_code", "key.p12.b64")
    assert base64.b64decode(revealed(field), validate=True) == KEYSTORE


def test_what_is_too_large_once_it_is_encoded_is_not_sent(job: Job) -> None:
    file = job.terminal.here / "big"
    file.write_bytes(b"\xff" * (PLAINTEXT_LIMIT // 4 * 3 + 1))
    before = len(job.service.seen())
    done = job.run("share", "file:big?encode=base64")
    assert done.code == 2
    assert "file:big?encode=base64 is more than 16 MiB in base64" in done.err
    assert len(job.service.seen()) == before


def test_the_largest_file_arrives(job: Job) -> None:
    """16 MiB of plaintext are a quarter less of bytes, and label, type and brackets beside them."""
    data = os.urandom((PLAINTEXT_LIMIT - 60) // 4 * 3)
    (job.terminal.here / "big").write_bytes(data)
    done = job.run("share", "B=file:big?encode=base64")
    assert done.code == 0, done
    assert base64.b64decode(opened(job.service, done.out)["B"], validate=True) == data
