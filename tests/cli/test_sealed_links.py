"""A link sealed for another job: it opens nothing without the credential, and is opened again by `unseal`."""

from __future__ import annotations

import base64
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sealpipe.credential import Credential
from sealpipe.errors import EnvelopeError, UsageError
from sealpipe.flows import sealed_link
from sealpipe.secret import Secret
from sealpipe.wire import keys, sealed_box
from sealpipe_rehearsal.running import Running
from support.terminal import SEALPIPE, Terminal, opened


def credential(*, custody: bool = True) -> Credential:
    parts = [base64.urlsafe_b64encode(os.urandom(size)).decode().rstrip("=") for size in (12, 32, 32)]
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


def test_the_code_of_one_never_passes_for_that_of_another() -> None:
    first, second = (sealed_link.seal(Secret(f"https://l/{code}#1x"), code, OURS).split(".") for code in ("a1", "b2"))
    with pytest.raises(EnvelopeError):
        sealed_link.unseal(".".join([first[0], second[1], first[2]]), OURS)


def test_nobody_seals_one_with_the_public_key_and_no_other_credential_opens_one() -> None:
    sealed = sealed_link.seal(Secret("https://l.example/a#1x"), "a", OURS)
    with pytest.raises(EnvelopeError):
        sealed_link.unseal(sealed, credential())
    assert OURS.custody_secret is not None
    public = keys.from_custody_secret(OURS.custody_secret.reveal()).public_key
    forged = sealed_box.seal(public, b"https://evil.example/a#1x").translate(str.maketrans("+/", "-_")).rstrip("=")
    with pytest.raises((EnvelopeError, UsageError)):
        sealed_link.unseal(f"{sealed_link.PREFIX}.YQ.{forged}", OURS)


def test_while_rotating_the_credential_before_this_one_opens_it_too() -> None:
    old = credential()
    sealed = sealed_link.seal(Secret("https://l.example/a#1x"), "a", old)
    assert sealed_link.unseal(sealed, OURS, old).reveal() == "https://l.example/a#1x"


def test_a_share_is_sealed_and_opened_again_in_another_job(user: Terminal, service: Running) -> None:
    done = user.sealpipe("share", "-f", "Note=text:some note", "--seal-link", "--output", "json")
    assert done.json["link"] is None
    sealed = done.json["sealed_link"]
    assert "#" not in sealed
    again = user.sealpipe("unseal", sealed)
    assert again.code == 0
    assert opened(service, again.out.rstrip("\n")) == {"Note": "some note"}
    assert again.out.rstrip("\n").partition("#")[2] not in sealed
    assert user.sealpipe("unseal", SEALPIPE_SEALED_LINK=sealed).out == again.out
    to_file = user.sealpipe("unseal", sealed, "--link-file", "link.txt", "--output", "json", GITLAB_CI="true")
    assert to_file.json["link"] is None
    assert (user.here / "link.txt").read_text() == again.out
    assert (user.here / "link.txt").stat().st_mode & 0o777 == 0o600
    assert user.outbox() == []


def test_in_a_gitlab_job_a_sealed_link_may_be_printed_and_an_open_one_may_not(user: Terminal) -> None:
    sealed = user.sealpipe("share", "-f", "Note=text:x", "--seal-link", GITLAB_CI="true")
    assert (sealed.code, sealed.out.startswith("sealpipe-link.")) == (0, True)
    done = user.sealpipe("unseal", sealed.out.strip(), GITLAB_CI="true")
    assert (done.code, done.out) == (2, "")


def test_on_github_the_link_is_masked_before_it_is_written(user: Terminal) -> None:
    sealed = user.sealpipe("share", "-f", "Note=text:x", "--seal-link").out.strip()
    done = user.sealpipe("unseal", sealed, GITHUB_ACTIONS="true")
    link = done.out.strip()
    fragment = link.partition("#")[2]
    assert done.err.splitlines()[:3] == [f"::add-mask::{each}" for each in (link, fragment, fragment[1:])]


@pytest.mark.parametrize(("word", "code"), [("nonsense", 2), ("sealpipe-link.YQ.YQ", 2), ("", 2)])
def test_what_is_no_sealed_link_is_refused_with_what_to_do(user: Terminal, word: str, code: int) -> None:
    done = user.sealpipe("unseal", word)
    assert (done.code, done.out) == (code, "")
    assert "sealpipe" in done.err


def test_a_credential_without_custody_seals_nothing_and_nothing_is_sent(user: Terminal, service: Running) -> None:
    before = len(service.seen())
    two_parts = user.environ["SEALPIPE_API_KEY"].rpartition(".")[0]
    done = user.sealpipe("share", "-f", "Note=text:x", "--seal-link", SEALPIPE_API_KEY=two_parts)
    assert (done.code, done.out) == (2, "")
    assert "custody" in done.err
    assert len(service.seen()) == before
    assert user.outbox() == []


def test_a_sealed_link_that_nobody_took_is_sealed_by_resume(user: Terminal, service: Running) -> None:
    command = " ".join([*SEALPIPE, "share", "-f", "Note=text:x", "--seal-link"])
    assert user.run(["sh", "-c", f"{command} >&-"]).code == 11
    done = user.sealpipe("resume")
    assert done.out.startswith("sealpipe-link.")
    assert opened(service, user.sealpipe("unseal", done.out.strip()).out.strip()) == {"Note": "x"}
