"""A link sealed for another job: it opens nothing without the credential, and is opened again by
`unseal`.
"""

from __future__ import annotations

import base64
import os
import shlex

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from hypothesis import given, settings
from hypothesis import strategies as st

from sealpipe.api.operation import Credential
from sealpipe.errors import EnvelopeError, UsageError
from sealpipe.secret import Secret
from sealpipe.share import sealed_link
from sealpipe.wire import keys, sealed_box
from sealpipe.wire.encoding import decode_base64url, encode_base64url
from sealpipe_rehearsal.running_service import RunningService
from support.commands import SEALPIPE
from support.terminal import Terminal, opened


def credential(*, custody: bool = True) -> Credential:
    parts = [
        base64.urlsafe_b64encode(os.urandom(size)).decode().rstrip("=") for size in (12, 32, 32)
    ]
    return Credential.parse("svc_sk_live_" + ".".join(parts if custody else parts[:2]))


OURS = credential()


@given(st.text(min_size=1, max_size=200), st.text(min_size=1, max_size=80))
@settings(max_examples=200, deadline=None)
def test_any_link_of_any_code_opens_to_itself_and_is_one_plain_word(link: str, code: str) -> None:
    sealed = sealed_link.seal(Secret(link), code, OURS)
    assert set(sealed) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.")
    assert sealed_link.unseal(f"{sealed}\n", OURS).reveal() == link


@given(st.integers(min_value=0), st.integers(min_value=1, max_value=255))
@settings(max_examples=300, deadline=None)
def test_a_sealed_link_that_was_altered_anywhere_opens_nothing(position: int, change: int) -> None:
    sealed = sealed_link.seal(Secret("https://l.example/a#1x"), "code", OURS).encode()
    place = position % len(sealed)
    altered = sealed[:place] + bytes([sealed[place] ^ change]) + sealed[place + 1 :]
    with pytest.raises((EnvelopeError, UsageError)):
        sealed_link.unseal(altered.decode("latin-1"), OURS)


@pytest.mark.parametrize("size", range(0, 33, 4))
def test_a_sealed_link_without_room_for_its_parts_is_no_sealed_link(size: int) -> None:
    head, _, data = sealed_link.seal(Secret("https://l.example/a#1x"), "code", OURS).rpartition(".")
    cut = encode_base64url(decode_base64url(data)[:size])
    with pytest.raises(UsageError, match="not a sealed link"):
        sealed_link.unseal(f"{head}.{cut}", OURS)


def test_the_code_of_one_never_passes_for_that_of_another() -> None:
    first, second = (
        sealed_link.seal(Secret(f"https://l/{code}#1x"), code, OURS).split(".")
        for code in ("a1", "b2")
    )
    with pytest.raises(EnvelopeError):
        sealed_link.unseal(".".join([first[0], second[1], first[2]]), OURS)


def test_sealed_links_need_the_custody_secret() -> None:
    sealed = sealed_link.seal(Secret("https://l.example/a#1x"), "a", OURS)
    with pytest.raises(EnvelopeError):
        sealed_link.unseal(sealed, credential())
    assert OURS.custody_secret is not None
    public = keys.from_custody_secret(OURS.custody_secret.reveal()).public_key
    forged = (
        sealed_box.seal(public, b"https://evil.example/a#1x")
        .translate(str.maketrans("+/", "-_"))
        .rstrip("=")
    )
    with pytest.raises((EnvelopeError, UsageError)):
        sealed_link.unseal(f"{sealed_link.PREFIX}.YQ.{forged}", OURS)


LINK = Secret("https://l.example/a#1x")
VECTOR = (
    (
        "svc_sk_live_CImPemhu0OnFu67o.qJD_fXTkHteKGs_0yDkgq7OPMa88-U4n6FfN7wYWebI"
        ".NNY6bLKghJislAP-sRWdHiSlgw1UB3x7ui3diYhA2Z4"
    ),
    {"salt": bytes(range(16)), "iv": bytes(range(12))},
)


@pytest.mark.parametrize(
    ("bind", "sealed"),
    [
        (
            None,
            (
                "sealpipe-link.YS9i.AAABAgMEBQYHCAkKCwwNDg8AAQIDBAUGBwgJCgttM9Wd_xzSqDuHikrnd1Thw_"
                "ECm8PorVTfu5H_rmCKXMbq1sEJCy11gBk"
            ),
        ),
        (
            "github:o/r:1",
            (
                "sealpipe-link.YS9i.AQABAgMEBQYHCAkKCwwNDg8AAQIDBAUGBwgJCgttM9Wd_xzSqDuHikrnd1Thw_"
                "ECm8PorVTfu42cxexmYMi1PCou-ubloIY"
            ),
        ),
    ],
)
def test_the_layout_is_the_one_that_is_written_down(bind: str | None, sealed: str) -> None:
    """Made again here by nothing but HKDF and AES-GCM of a library, as the module's docstring
    says.
    """
    text, fixed = VECTOR
    made = sealed_link.seal(
        Secret("https://l.example/a%2Fb#1x"), "a/b", Credential.parse(text), bind, **fixed
    )
    assert made == sealed
    kind = b"\0" if bind is None else b"\1"
    key = HKDF(SHA256(), 32, fixed["salt"], b"sealpipe-sealed-link").derive(
        text.rpartition(".")[2].encode()
    )
    bound = kind + (3).to_bytes(4, "big") + b"a/b" + (bind or "").encode()
    body = AESGCM(key).encrypt(fixed["iv"], b"https://l.example/a%2Fb#1x", bound)
    words = [
        base64.urlsafe_b64encode(part).decode().rstrip("=")
        for part in (b"a/b", kind + b"".join(fixed.values()) + body)
    ]
    assert made == ".".join(["sealpipe-link", *words])


BINDS = st.none() | st.text(min_size=1, max_size=30)


@given(st.text(min_size=1, max_size=20), BINDS, BINDS)
@settings(max_examples=200, deadline=None)
def test_a_link_opens_with_the_bind_it_was_sealed_with_and_no_other(
    code: str, bind: str | None, other: str | None
) -> None:
    sealed = sealed_link.seal(LINK, code, OURS, bind)
    assert sealed_link.unseal(sealed, OURS, bind=bind).reveal() == LINK.reveal()
    if other != bind:
        with pytest.raises((EnvelopeError, UsageError)) as refused:
            sealed_link.unseal(sealed, OURS, bind=other)
        assert refused.value.remedy
        assert (
            bind is None
            or len(bind) < 5
            or bind not in refused.value.message + refused.value.remedy
        )


@given(st.binary(max_size=12), st.binary(max_size=12))
@settings(max_examples=200, deadline=None)
def test_no_code_and_bind_pass_for_another_pair_of_the_same_letters(
    first: bytes, second: bytes
) -> None:
    whole = (first + second).hex()
    for cut in range(1, len(whole)):
        code, bind = whole[:cut], whole[cut:]
        sealed = sealed_link.seal(LINK, code, OURS, bind)
        prefix, _, data = sealed.split(".")
        for moved in {cut - 1, cut + 1} - {0, len(whole)}:
            word = base64.urlsafe_b64encode(whole[:moved].encode()).decode().rstrip("=")
            with pytest.raises(EnvelopeError):
                sealed_link.unseal(f"{prefix}.{word}.{data}", OURS, bind=whole[moved:])


def test_what_was_bound_cannot_be_made_unbound_and_the_other_way_round() -> None:
    for bind, asked in ((None, "x"), ("x", None)):
        prefix, code, data = sealed_link.seal(LINK, "a", OURS, bind).split(".")
        raw = bytearray(base64.urlsafe_b64decode(data + "=" * (-len(data) % 4)))
        raw[0] ^= 1
        other = base64.urlsafe_b64encode(raw).decode().rstrip("=")
        with pytest.raises(EnvelopeError):
            sealed_link.unseal(f"{prefix}.{code}.{other}", OURS, bind=asked)


def test_while_rotating_the_credential_before_this_one_opens_it_too() -> None:
    old = credential()
    sealed = sealed_link.seal(Secret("https://l.example/a#1x"), "a", old)
    assert sealed_link.unseal(sealed, OURS, old).reveal() == "https://l.example/a#1x"


def test_on_github_the_link_is_masked_before_it_is_written(user: Terminal) -> None:
    sealed = user.sealpipe("share", "-f", "Note=text:x", "--seal-link").out.strip()
    done = user.sealpipe("unseal", sealed, "--print", GITHUB_ACTIONS="true")
    link = done.out.strip()
    fragment = link.partition("#")[2]
    assert done.err.splitlines()[:3] == [
        f"::add-mask::{each}" for each in (link, fragment, fragment[1:])
    ]


BOUND = ("--bind", "github:acme/app:77")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--bind", "x"], "--bind needs --seal-link"),
        (["--seal-link", "--bind", ""], "the text to bind a sealed link to is empty"),
        (["--seal-link", "--bind", "  "], "the text to bind a sealed link to is empty"),
        (["--seal-link", "--bind", "a\nb"], "one printable line"),
        (["--seal-link", "--bind", "x" * 513], "at most 512"),
    ],
    ids=["without --seal-link", "empty", "blanks", "two lines", "too long"],
)
def test_a_bind_that_is_none_is_refused_and_nothing_is_sent(
    user: Terminal, service: RunningService, words: list[str], told: str
) -> None:
    before = len(service.seen())
    done = user.sealpipe("share", "-f", "Note=text:x", *words)
    assert (done.code, done.out) == (2, "")
    assert told in done.err
    assert len(service.seen()) == before
    assert user.outbox() == []


def test_what_a_link_is_bound_to_survives_until_resume(
    user: Terminal, service: RunningService
) -> None:
    command = shlex.join([*SEALPIPE, "share", "-f", "Note=text:x", "--seal-link", *BOUND])
    assert user.run(["sh", "-c", f"{command} >&-"]).code == 11
    listed = user.sealpipe("resume", "--list")
    assert (listed.code, "left: sealed link to stdout (pending)" in listed.out) == (0, True)
    sealed = user.sealpipe("resume").out.strip()
    assert user.sealpipe("unseal", sealed).code == 2
    assert opened(service, user.sealpipe("unseal", sealed, *BOUND).out.strip()) == {"Note": "x"}


def test_resume_seals_an_unprinted_sealed_link(user: Terminal, service: RunningService) -> None:
    command = shlex.join([*SEALPIPE, "share", "-f", "Note=text:x", "--seal-link"])
    assert user.run(["sh", "-c", f"{command} >&-"]).code == 11
    done = user.sealpipe("resume")
    assert done.out.startswith("sealpipe-link.")
    assert opened(service, user.sealpipe("unseal", done.out.strip()).out.strip()) == {"Note": "x"}
