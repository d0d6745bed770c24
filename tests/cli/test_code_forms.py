"""Short codes are opaque: commands take one as it is, and in the encoded form in which a CI step
hands it on.
"""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealpipe import Client
from sealpipe.expire.purge import format_purge_command
from sealpipe.lookup import confirm_code
from sealpipe.wire.encoding import decoded, encoded, names
from sealpipe_rehearsal.running_service import RunningService
from support.outside_text import ODD, ended, renamed
from support.terminal import Terminal

CODES = st.text(st.characters(codec="utf-8"), min_size=1)


@given(CODES, CODES)
def test_every_code_has_one_encoded_form_that_no_shell_reads_and_no_other_code_has(
    code: str, other: str
) -> None:
    word = encoded(code)
    assert set(word) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._~-%")
    assert (word == code) or decoded(word) == code
    assert names(word, code)
    assert (word == encoded(other)) == (code == other)


@given(st.text("%0123456789abcdefABCDEF/.é\ud800", max_size=12))
def test_a_word_is_the_encoded_form_of_one_other_code_or_of_none(word: str) -> None:
    code = decoded(word)
    assert code is None or (encoded(code) == word and code != word)


@pytest.mark.parametrize(
    "word", ["%41", "a%2fb", "50%", "%2", "%FF", "%zz", "%C3%28", "a%2Fb/", ""]
)
def test_what_no_encoder_writes_is_a_code_as_it_is(word: str) -> None:
    assert decoded(word) is None


def connected(user: Terminal, service: RunningService) -> Client:
    key = user.environ["SEALPIPE_API_KEY"]
    return Client(api_key=key, base_url=service.base_url, link_base_url=service.link_base_url)


def shared(user: Terminal, service: RunningService, code: str) -> str:
    with connected(user, service) as client:
        return renamed(service, "shares", client.share(["text:x"]).short_code, code)


def asked(user: Terminal, service: RunningService, code: str) -> str:
    with connected(user, service) as client:
        return renamed(service, "requests", client.request(["Password"]).short_code, code)


@pytest.mark.parametrize("what", ["shares", "requests"])
@pytest.mark.parametrize("form", ["as it is", "encoded"])
def test_shares_and_requests_of_any_code_are_shown_and_ended_in_either_form(
    user: Terminal, service: RunningService, what: str, form: str
) -> None:
    make = shared if what == "shares" else asked
    for code in ODD:
        make(user, service, code)
        word = code if form == "as it is" else encoded(code)
        done = user.sealpipe(what, "expire", "--output", "json", "--", word)
        assert (done.json["short_code"], done.json["outcome"]) == (code, "expired")
        renamed(
            service,
            "shares" if what == "shares" else "requests",
            code,
            f"done with {encoded(code)}",
        )
        _forget(user)


def _forget(user: Terminal) -> None:
    for folder in ("shares", "requests"):
        for file in (user.home / ".local/state/sealpipe" / folder).glob("*"):
            file.unlink()


@pytest.mark.parametrize("what", ["shares", "requests"])
def test_either_form_is_shown_and_ended_twice(
    user: Terminal, service: RunningService, what: str
) -> None:
    code = (shared if what == "shares" else asked)(user, service, "a b")
    assert user.sealpipe(what, "show", "--output", "json", "a%20b").json["short_code"] == code
    assert user.sealpipe(what, "expire", "a%20b").code == 0
    for word in ("a%20b", "a b"):
        again = user.sealpipe(what, "expire", "--output", "json", word).json
        assert (again["short_code"], again["outcome"]) == (code, "already-expired")


@pytest.mark.parametrize("what", ["shares", "requests"])
@pytest.mark.parametrize("command", ["show", "expire"])
def test_a_word_that_names_two_is_refused_and_neither_is_ended(
    user: Terminal, service: RunningService, what: str, command: str
) -> None:
    make = shared if what == "shares" else asked
    for code in ("a/b", "a%2Fb"):
        make(user, service, code)
    done = user.sealpipe(what, command, "a%2Fb")
    assert (done.code, done.out) == (2, "")
    assert "a%2Fb is ambiguous" in done.err
    assert "write the first as a%252Fb, the second as the plain code" in done.err
    assert ended(service) == []
    assert (
        user.sealpipe(what, "expire", "a%252Fb", "--output", "json").json["short_code"] == "a%2Fb"
    )
    assert user.sealpipe(what, "expire", "a/b", "--output", "json").json["short_code"] == "a/b"
    assert ended(service) == ["a%252Fb", "a%2Fb"]


@pytest.mark.parametrize("what", ["shares", "requests"])
def test_one_that_this_machine_has_ended_still_counts(
    user: Terminal, service: RunningService, what: str
) -> None:
    """Run again, a script must not end what came to be called so in the meantime."""
    make = shared if what == "shares" else asked
    make(user, service, "a/b")
    assert user.sealpipe(what, "expire", "a%2Fb").code == 0
    make(user, service, "a%2Fb")
    done = user.sealpipe(what, "expire", "a%2Fb")
    assert (done.code, "is ambiguous" in done.err) == (2, True)
    assert ended(service) == ["a%2Fb"]


def test_a_key_that_may_not_look_ends_nothing_by_a_word_that_may_be_two(
    user: Terminal, service: RunningService
) -> None:
    for code in ("a/b", "a b"):
        shared(user, service, code)
    user.at(service, scopes=["shares:write"])
    assert user.sealpipe("shares", "expire", "a%2Fb").code == 4
    assert ended(service) == []
    assert user.sealpipe("shares", "expire", "a b").code == 0, (
        "one that can only be itself is not looked for"
    )


def test_purging_takes_no_word_for_another_one(user: Terminal, service: RunningService) -> None:
    for code in ("a/b", "a%2Fb"):
        asked(user, service, code)
    for words in (
        ("a%2Fb", "--confirm", "a%2Fb"),
        ("a%2Fb",),
        ("a%2Fb", "--confirm", "a"),
        ("a/b", "--confirm", "a%252Fb"),
    ):
        done = user.sealpipe("requests", "purge", *words)
        assert (done.code, done.out) == (2, "")
        assert ended(service) == []
    done = user.sealpipe("requests", "purge", "a%2Fb", "--confirm", "a/b", "--output", "json")
    assert (done.json["short_code"], done.json["outcome"]) == ("a/b", "deleted")
    assert set(ended(service)) == {"a%2Fb"}
    done = user.sealpipe("requests", "purge", "a%2Fb", "--confirm", "a%252Fb", "--output", "json")
    assert (done.json["short_code"], done.json["outcome"]) == ("a%2Fb", "deleted")


@given(CODES)
def test_what_an_error_says_to_run_purges_that_code_and_no_other(code: str) -> None:
    *_, option, confirm, dashes, word = shlex.split(format_purge_command(code))
    assert (option, dashes) == ("--confirm", "--")
    assert confirm_code(word, confirm) == code


@pytest.mark.parametrize("code", ["a b", "$(id)", "#x", "é", "a%b"])
def test_collect_takes_the_encoded_form(
    user: Terminal, service: RunningService, code: str, tmp_path: Path
) -> None:
    made = user.sealpipe("request", "-a", "Password", "--output", "json").json
    service.submitter().submit(made["collect_link"], {"Password": "hunter22"})
    renamed(service, "requests", made["short_code"], code)
    done = user.sealpipe(
        "collect", encoded(code), "--to", f"file:{tmp_path}/answer", "--output", "json"
    )
    assert done.json["short_code"] == code
    assert (tmp_path / "answer").read_text() == "hunter22"
    assert (
        user.sealpipe("collect", encoded(code), code, "--to", f"file:{tmp_path}/{{request}}").code
        == 2
    )


def test_what_a_ci_step_is_handed_is_encoded_and_ends_the_share(
    user: Terminal, service: RunningService
) -> None:
    output = user.here / "output"
    # -__- ...
    service.service.token_bytes, drawn = (
        (lambda _: b"\xfb\xff\xfe" * 3),
        service.service.token_bytes,
    )
    try:
        done = user.sealpipe(
            "share",
            "-f",
            "text:x",
            "--link-file",
            "l",
            GITHUB_ACTIONS="true",
            GITHUB_OUTPUT=str(output),
        )
    finally:
        service.service.token_bytes = drawn
    assert done.code == 0, done
    assert "-__--__--__-" in output.read_text()


@given(CODES)
def test_an_output_of_any_code_is_one_plain_word(code: str) -> None:
    from sealpipe.cli.deliver import _describe_outputs
    from sealpipe.secret import Secret
    from sealpipe.share.post import Share

    told = _describe_outputs(
        Share(Secret("https://l/a#1x"), code, None, "none", "created", None, ())
    )
    assert told == {"short-code": encoded(code), "expires-at": ""}
