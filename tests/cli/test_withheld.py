"""A secret that was given in another thing's place is in no message: neither a link's key nor a
credential.
"""

from __future__ import annotations

import pytest

from support.ci_jobs import ROWS, job
from support.terminal import Terminal

KEY = "1QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWY"
LINK = f"https://share.example/s/AbCd1234#{KEY}"
WORDS = (
    (LINK,),
    ("shares", LINK),
    ("share", f"--{LINK}"),
    ("share", "-f", "env:HOME", "--message-template", LINK),
    ("share", "-f", "env:HOME", "--state-dir", f"/proc/{LINK}", "--seal-link"),
    ("audit", "verify", LINK),
    ("completion", LINK),
    ("rehearse", "--", LINK),
)
PLACES = ("SEALPIPE_API_KEY_FILE", "SEALPIPE_CONFIG", "SEALPIPE_CA_FILE", "SEALPIPE_STATE_DIR")


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("words", WORDS, ids=lambda words: " ".join(words).replace(LINK, "LINK"))
def test_a_link_in_the_place_of_another_word_is_not_repeated(
    user: Terminal, words: tuple[str, ...], form: str
) -> None:
    done = user.sealpipe(*words, **{**job(ROWS["github"]), "SEALPIPE_OUTPUT": form})
    assert done.code == 2
    assert "[withheld]" in done.err
    for part in (KEY, KEY[1:], KEY[-16:]):
        assert part not in done.out + done.err


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("place", PLACES)
def test_a_credential_in_a_paths_place_is_not_repeated(
    user: Terminal, place: str, form: str
) -> None:
    credential = user.environ["SEALPIPE_API_KEY"]
    given: dict[str, str | None] = {**job(ROWS["github"]), place: credential}
    if place == "SEALPIPE_API_KEY_FILE":
        given["SEALPIPE_API_KEY"] = None
    for words in (
        ("doctor",),
        ("share", "-f", "env:HOME", "--seal-link"),
        ("custody", "public-key"),
    ):
        done = user.sealpipe(*words, "--output", form, **given)
        assert not any(part in done.out + done.err for part in credential.split(".")[1:]), words


def test_a_credential_given_as_a_path_is_reported(user: Terminal) -> None:
    done = user.sealpipe(
        "stats", SEALPIPE_API_KEY=None, SEALPIPE_API_KEY_FILE=user.environ["SEALPIPE_API_KEY"]
    )
    assert done.code == 2
    assert "the path of the credential file is itself a credential" in done.err


@pytest.mark.parametrize("part", [1, 2], ids=["auth", "custody"])
@pytest.mark.parametrize(
    "option", ["--restrict-domain", "--restrict-address", "--expires-in", "--max-submissions"]
)
def test_a_part_of_the_credential_in_a_words_place_is_not_repeated(
    user: Terminal, option: str, part: int
) -> None:
    secret = user.environ["SEALPIPE_API_KEY"].split(".")[part]
    done = user.sealpipe("request", "-a", "Password", option, secret)
    assert done.code == 2
    assert not any(piece in done.out + done.err for piece in (secret[:12], secret[-12:]))


@pytest.mark.parametrize("secret", ["aB" * 21 + "c", "-" + "aB" * 21, "_" + "Ab" * 20 + "1_"])
def test_what_such_a_part_may_look_like_decides_nothing(user: Terminal, secret: str) -> None:
    done = user.sealpipe("request", "-a", "Password", "--restrict-address", secret)
    assert done.code == 2
    assert "[withheld]" in done.err
    assert not any(piece in done.out + done.err for piece in (secret[:12], secret[-12:]))


def test_what_only_looks_a_little_like_it_stays(user: Terminal) -> None:
    name = "no#a-file-with-a-long-name_of-more-than-thirty-two-letters"
    done = user.sealpipe("share", "-f", "env:HOME", "--message-template", name)
    assert name in done.err
