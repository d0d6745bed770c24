"""Bad input that a scenario cannot write, or that is tried in every place: nothing of it is sent,
or shown.
"""

from __future__ import annotations

import os

import pytest

from sealpipe.minting import mint
from sealpipe_rehearsal.running_service import RunningService
from support.commands import SEALPIPE
from support.parts import program
from support.terminal import Terminal, addresses

SECRET = {"DB_PASSWORD": "s3cret-of-the-database"}
FIELD = ["-f", "env:DB_PASSWORD"]
HIDDEN = "c4nary-that-nobody-may-read"

GOOD = "svc_sk_live_CImPemhu0OnFu67o.qJD_fXTkHteKGs_0yDkgq7OPMa88-U4n6FfN7wYWebI"


@pytest.fixture
def user(user: Terminal) -> Terminal:
    """A terminal with a variable to share."""
    user.environ |= SECRET
    return user


def test_half_a_character_in_the_title_is_refused(user: Terminal, service: RunningService) -> None:
    done = user.sealpipe("share", *FIELD, "--title", "\udcff")
    assert (done.code, done.out, service.seen(), user.outbox()) == (2, "", [], [])
    assert "lone surrogate" in done.err


def test_an_unreadable_file_differs_from_a_missing_one(
    user: Terminal, service: RunningService
) -> None:
    user.file("secret", HIDDEN, mode=0o000)
    # Root reads everything, unless it is taken from him.
    drop = (
        [program("setpriv"), "--bounding-set=-dac_override,-dac_read_search"]
        if os.geteuid() == 0
        else []
    )
    done = user.run([*drop, *SEALPIPE, "share", "-f", "file:secret"])
    assert (done.code, done.out, service.seen()) == (14, "", [])
    assert done.err.splitlines() == [
        "sealpipe: file:secret may not be read by this user",
        "  give this user the right to read it",
    ]


# -- the credential -----------------------------------------------------------------------------

AUTH = "qJD_fXTkHteKGs_0yDkgq7OPMa88-U4n6FfN7wYWebI"


def test_a_credential_file_may_end_in_one_newline_and_no_more(
    user: Terminal, service: RunningService
) -> None:
    key = user.environ["SEALPIPE_API_KEY"]
    from_file: dict[str, str | None] = {"SEALPIPE_API_KEY": None, "SEALPIPE_API_KEY_FILE": "key"}
    for end, code in {"": 0, "\n": 0, "\r\n": 0, "\n\n": 2, " ": 2, " \n": 2}.items():
        user.file("key", key + end)
        done = user.sealpipe("share", *FIELD, **from_file)
        assert done.code == code, repr(end)
    assert len(service.seen()) == 3


EARLIER = f"{AUTH[:-1][::-1]}A"
PREVIOUS = f"{GOOD}.{EARLIER}"


@pytest.mark.parametrize(
    "part", ["auth secret", "custody secret", "custody secret of the one before"]
)
@pytest.mark.parametrize(
    "words",
    [
        ("share", *FIELD, "--title"),
        ("share", *FIELD, "--description"),
        ("request", "-a", "Password", "--title"),
        ("request", "-a", "Password", "--description"),
        ("request", "-a"),
    ],
)
def test_the_credential_is_in_no_text_that_goes_out_in_clear(
    user: Terminal, service: RunningService, words: tuple[str, ...], part: str
) -> None:
    _, auth, custody = user.environ["SEALPIPE_API_KEY"].split(".")
    secret = {"auth secret": auth, "custody secret": custody}.get(part, EARLIER)
    done = user.sealpipe(*words, f"Release {secret} of today", SEALPIPE_API_KEY_PREVIOUS=PREVIOUS)
    assert (done.code, done.out, service.seen(), user.outbox()) == (2, "", [], [])
    assert "holds the credential: nothing was sent" in done.err
    assert secret not in done.err


# -- short codes --------------------------------------------------------------------------------


@pytest.mark.parametrize("code", ["../keys", "a/b", "a?b=c", "a#b", "%2e%2e", "a b", "é"])
def test_any_other_short_code_is_one_encoded_segment(
    user: Terminal, service: RunningService, code: str
) -> None:
    done = user.sealpipe("shares", "show", code)
    (seen,) = service.seen()
    assert seen.target.count("/") == 3
    assert not set("?# ") & set(seen.target)
    assert (done.code, done.out) == (6, "")


LINK_KEY = "1AbCdEfGhIjKlMnOpQrStUvWxYz0123456789-_abcde"
CARRIES_ITS_KEY = {
    "a share link": f"http://127.0.0.1:1/s/aBc#{LINK_KEY}",
    "an access link": f"http://127.0.0.1:1/s/r/aBc#{LINK_KEY}",
    "what stands behind its last slash": f"aBc#{LINK_KEY}",
    "a link that lost its end": f"http://127.0.0.1:1/s/aBc#{LINK_KEY[:-6]}",
    "a credential": f"{GOOD}.{LINK_KEY[1:]}",
}


@pytest.mark.parametrize("name", CARRIES_ITS_KEY)
@pytest.mark.parametrize(
    "command",
    [
        *(f"shares {each}" for each in ("show", "expire", "log")),
        *(f"requests {each}" for each in ("show", "expire")),
        "collect",
    ],
)
def test_a_link_with_its_key_is_no_short_code_and_the_service_never_gets_it(
    user: Terminal, service: RunningService, command: str, name: str
) -> None:
    word = CARRIES_ITS_KEY[name]
    for given in [word, f"code:{word}"] if command == "collect" else [word]:
        done = user.sealpipe(*command.split(), given)
        assert (done.code, done.out, service.seen()) == (2, "", [])
        kind = "collect link" if command == "collect" and given.startswith("http") else "short code"
        assert f"not a {kind}: nothing was sent" in done.err
        assert LINK_KEY[1:20] not in done.err


def test_nothing_is_sent_where_the_service_is_only_half_known(
    bare: Terminal, service: RunningService
) -> None:
    done = bare.sealpipe("share", *FIELD, **SECRET, **addresses(service))
    assert (done.code, done.out, service.seen()) == (2, "", [])


@pytest.mark.parametrize(
    "proxy",
    [
        "http://u:pass-canary@h:xx",
        "http://u:pass-canary@h:99999",
        "http://u:pass-canary@h:0",
        "http://u:pass-canary@",
        "http://u:pass-canary@h h:80",
        "http://[::1",
        "http://h\x1b]0;x:80",
        "ftp://h",
    ],
)
@pytest.mark.parametrize("command", ["stats", "doctor"])
def test_an_invalid_proxy_is_reported_without_its_login(
    bare: Terminal, command: str, proxy: str
) -> None:
    environ = {
        "SEALPIPE_API_KEY": mint().credential.reveal(),
        "SEALPIPE_BASE_URL": "https://api.example/v1",
        "SEALPIPE_LINK_BASE_URL": "https://api.example/s",
    }
    done = bare.sealpipe(command, "--deadline", "30s", HTTPS_PROXY=proxy, **environ)
    assert done.code == 2
    assert "the environment's proxy is not an http:// or https:// address" in done.err
    assert "canary" not in done.out + done.err
