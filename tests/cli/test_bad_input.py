"""Bad input: a clear error on stderr with the next step, the promised exit code, empty stdout, and nothing sent."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

import pytest

from sealpipe_rehearsal.control_client import mint
from sealpipe_rehearsal.running_service import RunningService
from support.parts import program
from support.terminal import SEALPIPE, Terminal, addresses

SECRET = {"DB_PASSWORD": "s3cret-of-the-database"}
HIDDEN = "c4nary-that-nobody-may-read"
"""Stands where somebody may have typed a secret by mistake: no message repeats it."""

GOOD = "svc_sk_live_CImPemhu0OnFu67o.qJD_fXTkHteKGs_0yDkgq7OPMa88-U4n6FfN7wYWebI"


class Bad(NamedTuple):
    """A command line (after `share`), what is set, and what the error says: the fault, and the next step."""

    words: list[str]
    says: str
    next_step: str
    environ: Mapping[str, str | None] = {}
    code: int = 2


FIELD = ["-f", "env:DB_PASSWORD"]
NONE = {"SEALPIPE_API_KEY": None}
FORKS = "forks and Dependabot runs get empty secrets"

SETTINGS = {
    "no credential at all": Bad(FIELD, "SEALPIPE_API_KEY is not set, or empty", FORKS, NONE),
    "an empty credential": Bad(FIELD, "SEALPIPE_API_KEY is not set, or empty", FORKS, {"SEALPIPE_API_KEY": ""}),
    "a link address over http": Bad(
        [*FIELD, "--link-base-url", "http://links.example"],
        "the page that opens the link would be sent unencrypted",
        "use https://",
    ),
    "no base URL": Bad(FIELD, "SEALPIPE_BASE_URL is not set", "ends in /v1", {"SEALPIPE_BASE_URL": None}),
    "no link base URL": Bad(FIELD, "SEALPIPE_LINK_BASE_URL is not set", "set", {"SEALPIPE_LINK_BASE_URL": ""}),
    "two credentials": Bad(
        FIELD, "both SEALPIPE_API_KEY and SEALPIPE_API_KEY_FILE are set", "unset one", {"SEALPIPE_API_KEY_FILE": "key"}
    ),
    "a credential's file that is missing": Bad(
        FIELD, "cannot be read: No such file", "SEALPIPE_API_KEY_FILE", NONE | {"SEALPIPE_API_KEY_FILE": "nowhere"}
    ),
    "a credential's file that is a folder": Bad(
        FIELD, "cannot be read: Is a directory", "SEALPIPE_API_KEY_FILE", NONE | {"SEALPIPE_API_KEY_FILE": "."}
    ),
    "a credential of another service": Bad(
        FIELD, "the service tag is 'acme'", "unset SEALPIPE_SERVICE_TAG", {"SEALPIPE_SERVICE_TAG": "acme"}
    ),
    "http:// to another host": Bad(
        FIELD,
        "uses http:// to a remote host",
        "https://",
        {"SEALPIPE_BASE_URL": "http://api.example/v1"},
    ),
    "http:// to a host that looks like this one": Bad(
        FIELD, "a remote host", "https://", {"SEALPIPE_BASE_URL": "http://127.0.0.1.example/v1"}
    ),
    "http:// to another host in links": Bad(
        FIELD, "uses http:// to a remote host", "https://", {"SEALPIPE_LINK_BASE_URL": "http://links.example"}
    ),
    "a base URL without /v1": Bad(
        FIELD, "does not end in /v1", "add /v1 at the end", {"SEALPIPE_BASE_URL": "https://api.example"}
    ),
    "a base URL that holds a login": Bad(
        FIELD, "contains a user", "https://host/path", {"SEALPIPE_BASE_URL": f"https://me:{HIDDEN}@api.example/v1"}
    ),
    "a base URL that is none": Bad(FIELD, "not an http(s) URL", "https://", {"SEALPIPE_BASE_URL": "ftp://x/v1"}),
    "a certificate file that is missing": Bad(
        FIELD,
        "the certificates to trust cannot be read",
        "SEALPIPE_CA_FILE",
        {"SEALPIPE_CA_FILE": "nowhere.pem", "SEALPIPE_BASE_URL": "https://127.0.0.1:1/v1"},
    ),
}

REFERENCES = {
    "no field": Bad([], "nothing to share", "-f env:DB_PASSWORD"),
    "an unknown source": Bad(["-f", "safe:x"], "there is no source named safe", "known sources: "),
    "a near miss": Bad(["-f", "envv:DB_PASSWORD"], "there is no source named envv", "or dotenv? A label that"),
    "a label with a colon": Bad(["-f", "Note:x=env:DB_PASSWORD"], "there is no source named", 'goes in "quotes"'),
    "a value in place of a reference": Bad(["-f", HIDDEN], "is not a reference", "a value itself is never given here"),
    "a value after a label": Bad(["-f", f"Password={HIDDEN}"], "is not a reference", "such as env:DB_PASSWORD"),
    "a missing variable": Bad(["-f", "env:NOT_SET"], "NOT_SET is not set", "export NOT_SET", code=14),
    "an empty variable": Bad(["-f", "env:EMPTY"], "EMPTY is set but empty", "fork", {"EMPTY": ""}, code=14),
    "a variable's value in place of its name": Bad(["-f", f"env:{HIDDEN}"], "is not set", "without $", code=14),
    "our own credential": Bad(["-f", "env:SEALPIPE_API_KEY"], "sealpipe's own credential", "another variable"),
    "a missing file": Bad(["-f", "file:nowhere"], "file:nowhere does not exist", "check the path", code=14),
    "a folder": Bad(["-f", "file:."], "is a directory", "name a file in it", code=14),
    "what the kernel tells of processes": Bad(["-f", "file:/proc/self/mem"], "is in /proc", "the secret comes from"),
    "an empty file": Bad(["-f", "file:empty"], "file:empty is empty", "give it a value", code=14),
    "an empty standard input": Bad(["-f", "Label=stdin:"], "stdin: is empty", "give it a value", code=14),
    "a value that is not UTF-8": Bad(["-f", "file:latin1"], "is not UTF-8", "encode it first", code=14),
    "a value in UTF-16": Bad(["-f", "file:utf16"], "is not UTF-8", "UTF-16", code=14),
    "a value that is not base64": Bad(["-f", "file:secret?decode=base64"], "is not base64", "decode=", code=14),
    "a missing key": Bad(["-f", "dotenv:prod.env#NO"], 'there is no key "NO"', 'its keys: "TOKEN"', code=14),
    "a broken dotenv file": Bad(["-f", "dotenv:secret#NO"], "dotenv", "", code=14),
    "a map without a key": Bad(["-f", "dotenv:prod.env"], "is a map", 'its keys: "TOKEN"'),
    "an unknown parameter": Bad(["-f", "env:DB_PASSWORD?vresion=3"], "parameter 1 is unknown", "known parameters"),
    "17 MiB": Bad(["-f", "file:large"], "more than 16 MiB", "split it"),
    "two of 9 MiB": Bad(["-f", "a=file:half", "-f", "b=file:half2"], "16 MiB", "split it"),
}  # fmt: skip

PASSCODES = {
    "a passcode's file that ends in a newline": Bad(
        [*FIELD, "--passcode-from", "file:newline"], "the passcode ends with a line break", "?trim=1"
    ),
    "an empty passcode": Bad([*FIELD, "--passcode-from", "env:EMPTY"], "EMPTY is set but empty", "", {"EMPTY": ""}, 14),
    "a passcode with a tab": Bad(
        [*FIELD, "--passcode-from", "env:CODE"], "a character that nobody can type", "printable", {"CODE": "a\tb"}
    ),
    "a passcode as text": Bad([*FIELD, "--passcode-from", HIDDEN], "--passcode-from: ", "such as env:"),
    "a passcode that may be missing": Bad(
        [*FIELD, "--passcode-from", "env:NOT_SET?optional=1"], "passcode", "optional"
    ),
    "two passcodes": Bad(
        [*FIELD, "--passcode-from", "dotenv:two.env#*"], "2 values, but only one is possible here", "#KEY"
    ),
}

OPTIONS = {
    "a bad duration": Bad(
        [*FIELD, "--expires-in", "3 days"], "--expires-in: '3 days' is not a duration", "such as 72h"
    ),
    "a duration of nothing": Bad([*FIELD, "--expires-in", "0h"], "cannot be zero", "at least 1s"),
    "a bad duration from the environment": Bad(
        FIELD,
        "SEALPIPE_SHARE_EXPIRES_IN: 'soon' is not a duration",
        "such as 72h",
        {"SEALPIPE_SHARE_EXPIRES_IN": "soon"},
    ),
    "a naive time": Bad([*FIELD, "--expires-at", "2099-01-01T00:00:00"], "has no time zone", "+01:00"),
    "a day that is none": Bad([*FIELD, "--expires-at", "2099-02-30T00:00:00Z"], "not an existing date or time", "Z"),
    "a time that is over": Bad([*FIELD, "--expires-at", "2001-01-01T00:00:00Z"], "in the past", "future"),
    "two expiries": Bad([*FIELD, "--expires-in", "1h", "--no-expiry"], "exclude each other", "use only one of them"),
    "two expiries, one of them a time": Bad(
        [*FIELD, "--expires-in", "1h", "--expires-at", "2099-01-01T00:00:00Z"], "exclude each other", "use only one"
    ),
    "no views": Bad([*FIELD, "--views", "0"], "--views: 0 is too small", "use 1 or more"),
    "fewer than none": Bad([*FIELD, "--views=-1"], "--views: -1 is too small", "use 1 or more"),
    "too many views": Bad([*FIELD, "--views", "2147483648"], "is too large", "use at most 2147483647"),
    "half a view": Bad([*FIELD, "--views", "1.5"], "--views", "1 or more"),
    "an event that is none": Bad([*FIELD, "--notify-on", "opened"], "'opened' is not an event", "choose from viewed"),
    "a custody that is none": Bad([*FIELD, "--custody", "maybe"], "--custody", "share --help"),
    "a secret where one of a few words belongs": Bad(
        [*FIELD, "--custody", HIDDEN], "choose from auto, require", "--help"
    ),
    "an unknown option": Bad([*FIELD, "--expire-in", "1h"], "--expire-in", "--expires-in"),
    "a value in an unknown option": Bad([*FIELD, f"--password={HIDDEN}"], "--password", "share --help"),
    "a bare word": Bad([HIDDEN], "unexpected argument", "share --help"),
    "a bare word after a field": Bad([*FIELD, HIDDEN], "unexpected argument", "share --help"),
    "an option without its value": Bad([*FIELD, "--title"], "--title", "--help`"),
    "half a character in the title": Bad([*FIELD, "--title", "\udcff"], "lone surrogate", ""),
}

ALL = {**SETTINGS, **REFERENCES, **PASSCODES, **OPTIONS}


@pytest.fixture
def user(user: Terminal) -> Terminal:
    """A terminal with the files that the tables name, and a variable to share."""
    user.environ |= SECRET
    user.file("secret", HIDDEN)
    user.file("newline", f"{HIDDEN}\n")
    user.file("prod.env", f"TOKEN={HIDDEN}\n")
    user.file("two.env", "A=1\nB=2\n")
    user.file("empty", "")
    user.file("key", GOOD)
    user.file("latin1", f"{HIDDEN} \xe9".encode("latin-1"))
    user.file("utf16", HIDDEN.encode("utf-16"))
    for name, mebibytes in {"large": 17, "half": 9, "half2": 9}.items():
        with user.file(name, "").open("wb") as file:
            file.truncate(mebibytes * 1024 * 1024)
    return user


def refused(user: Terminal, service: RunningService, bad: Bad) -> str:
    """Run it, and hold what every refusal has in common. Returns stderr."""
    done = user.sealpipe("share", *bad.words, **bad.environ)
    assert (done.code, done.out) == (bad.code, ""), done
    assert service.seen() == []
    assert user.outbox() == []
    for secret in (HIDDEN, *SECRET.values(), user.environ["SEALPIPE_API_KEY"].partition(".")[2]):
        assert secret not in done.err
    return done.err


@pytest.mark.parametrize("name", ALL)
def test_it_says_what_is_wrong_and_the_next_step(user: Terminal, service: RunningService, name: str) -> None:
    bad = ALL[name]
    err = refused(user, service, bad)
    assert err.startswith("sealpipe: ")
    assert bad.says in err
    assert bad.next_step in err
    assert len(err.splitlines()) > 1, "what is wrong on one line, what to do on the next"


@pytest.mark.parametrize(
    "name", ["an empty credential", "a missing file", "17 MiB", "two expiries", "an unknown option"]
)
def test_with_json_the_error_is_one_object_the_last_line_of_stderr(
    user: Terminal, service: RunningService, name: str
) -> None:
    bad = ALL[name]
    done = user.sealpipe("share", "--output", "json", *bad.words, **bad.environ)
    assert (done.code, done.out, service.seen()) == (bad.code, "", [])
    assert len(done.err.splitlines()) == 1
    assert (done.error["exit_code"], bad.says in done.error["message"]) == (bad.code, True)
    assert bad.next_step in done.error["message"] + done.error["remedy"]


def test_a_file_that_this_user_may_not_read_is_told_apart_from_a_missing_one(
    user: Terminal, service: RunningService
) -> None:
    user.file("secret", HIDDEN, mode=0o000)
    # Root reads everything, unless it is taken from him.
    drop = [program("setpriv"), "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
    done = user.run([*drop, *SEALPIPE, "share", "-f", "file:secret"])
    assert (done.code, done.out, service.seen()) == (14, "", [])
    assert done.err.splitlines() == [
        "sealpipe: file:secret may not be read by this user",
        "  give this user the right to read it",
    ]


# -- the credential -----------------------------------------------------------------------------

AUTH = "qJD_fXTkHteKGs_0yDkgq7OPMa88-U4n6FfN7wYWebI"
CREDENTIALS = {
    "only blanks": ("   ", "empty"),
    "a blank in front": (f" {GOOD}", "white space around it"),
    "a newline behind": (f"{GOOD}\n", "white space around it"),
    "quotes": (f'"{GOOD}"', "does not start with"),
    "a header": (f"Bearer {GOOD}", "Bearer"),
    "another prefix": (GOOD.replace("_sk_live_", "_sk_test_"), "does not start with"),
    "another tool's token": (f"ghp_{AUTH}", "does not start with"),
    "one part": (GOOD.partition(".")[0], "1 part"),
    "four parts": (f"{GOOD}.{AUTH}.{AUTH}", "4 part"),
    "an empty part": (f"{GOOD}.", "custody secret has 0 bytes"),
    "a short key id": (GOOD.replace("CImPemhu0OnFu67o", "CImPemhu0OnF"), "key id has 9 bytes"),
    "a short auth secret": (GOOD[:-3], "auth secret has 30 bytes"),
    "padding": (f"{GOOD}=", "auth secret is not base64url"),
    "standard base64": (GOOD.replace("_f", "/f").replace("-U", "+U"), "auth secret is not base64url"),
    "a non-canonical tail": (f"{GOOD[:-1]}J", "auth secret is not base64url"),
}


@pytest.mark.parametrize("name", CREDENTIALS)
def test_a_malformed_credential_is_told_by_its_fault_and_never_shown(
    user: Terminal, service: RunningService, name: str
) -> None:
    text, says = CREDENTIALS[name]
    err = refused(user, service, Bad(FIELD, says, "", {"SEALPIPE_API_KEY": text}))
    assert says in err
    assert "sealpipe: the credential" in err
    assert len(err.splitlines()) == 2
    assert not any(text[start : start + 12] in err for start in range(len(text) - 12) if text[start] not in "svc_k")


def test_a_credential_file_may_end_in_one_newline_and_no_more(user: Terminal, service: RunningService) -> None:
    key = user.environ["SEALPIPE_API_KEY"]
    from_file: dict[str, str | None] = {"SEALPIPE_API_KEY": None, "SEALPIPE_API_KEY_FILE": "key"}
    for end, code in {"": 0, "\n": 0, "\r\n": 0, "\n\n": 2, " ": 2, " \n": 2}.items():
        user.file("key", key + end)
        done = user.sealpipe("share", *FIELD, **from_file)
        assert done.code == code, repr(end)
    assert len(service.seen()) == 3


def test_a_credential_file_that_others_may_write_is_refused(user: Terminal, service: RunningService) -> None:
    user.file("key", user.environ["SEALPIPE_API_KEY"], mode=0o666)
    bad = Bad(FIELD, "", "", {"SEALPIPE_API_KEY": None, "SEALPIPE_API_KEY_FILE": "key"})
    assert "chmod 600" in refused(user, service, bad)


def test_a_credential_file_that_is_too_large_is_refused(user: Terminal, service: RunningService) -> None:
    user.file("key", f"{user.environ['SEALPIPE_API_KEY']}\n".ljust(4097, "\n"))
    bad = Bad(FIELD, "", "", {"SEALPIPE_API_KEY": None, "SEALPIPE_API_KEY_FILE": "key"})
    assert "the credential file key is larger than 4096 bytes" in refused(user, service, bad)


EARLIER = f"{AUTH[:-1][::-1]}A"
PREVIOUS = f"{GOOD}.{EARLIER}"


@pytest.mark.parametrize("part", ["auth secret", "custody secret", "custody secret of the one before"])
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


@pytest.mark.parametrize("command", ["show", "expire"])
@pytest.mark.parametrize("code", ["..", ".", ""])
def test_a_path_is_no_short_code(user: Terminal, service: RunningService, command: str, code: str) -> None:
    done = user.sealpipe("shares", command, code)
    assert (done.code, done.out, service.seen()) == (2, "", [])
    assert "is not a short code" in done.err
    assert "give the code that `sealpipe share` printed" in done.err


@pytest.mark.parametrize("code", ["../keys", "a/b", "a?b=c", "a#b", "%2e%2e", "a b", "é"])
def test_any_other_short_code_is_one_encoded_segment(user: Terminal, service: RunningService, code: str) -> None:
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
        assert "not a short code: nothing was sent" in done.err
        assert LINK_KEY[1:20] not in done.err


def test_nothing_is_sent_where_the_service_is_only_half_known(bare: Terminal, service: RunningService) -> None:
    done = bare.sealpipe("share", *FIELD, **SECRET, **addresses(service))
    assert (done.code, done.out, service.seen()) == (2, "", [])


@pytest.mark.parametrize(
    "proxy",
    ["http://u:pass-canary@h:xx", "http://u:pass-canary@h:99999", "http://[::1", "http://h\x1b]0;x:80", "ftp://h"],
)
@pytest.mark.parametrize("command", ["stats", "doctor"])
def test_a_proxy_that_is_no_address_is_told_without_its_login(bare: Terminal, command: str, proxy: str) -> None:
    environ = {
        "SEALPIPE_API_KEY": mint().credential.reveal(),
        "SEALPIPE_BASE_URL": "https://api.example/v1",
        "SEALPIPE_LINK_BASE_URL": "https://api.example/s",
    }
    done = bare.sealpipe(command, "--deadline", "1s", HTTPS_PROXY=proxy, **environ)
    assert done.code == 2
    assert "the environment's proxy is not an http:// or https:// address" in done.err
    assert "canary" not in done.out + done.err
