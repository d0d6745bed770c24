"""Links, key pairs, tokens: what they are made of, and what they are never made of."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from sealpipe.errors import (
    BoxError,
    EnvelopeError,
    FragmentError,
    PasscodeError,
    SeedError,
    UsageError,
    WireError,
)
from sealpipe.wire import envelope, keys, link, sealed_box, tokens

KEY = bytes(range(32))
FRAGMENT = "1AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"
PAIR = keys.from_seed(KEY)
CUSTODY = keys.from_custody_secret("NNY6bLKghJislAP-sRWdHiSlgw1UB3x7ui3diYhA2Z4")


@pytest.mark.parametrize("base", ["https://s.example", "https://s.example/", "https://s.example//"])
def test_the_three_links(base: str) -> None:
    assert link.share_link(base, "aBc", KEY) == f"https://s.example/aBc#{FRAGMENT}"
    assert link.collect_link(base, "aBc") == "https://s.example/r/aBc"
    assert link.access_link(base, "aBc", KEY) == f"https://s.example/r/aBc#{FRAGMENT}"


def test_a_base_with_a_path_keeps_it() -> None:
    assert link.collect_link("https://s.example/x/y/", "c") == "https://s.example/x/y/r/c"


@pytest.mark.parametrize(
    ("short_code", "segment"),
    [
        ("a/b", "a%2Fb"),
        ("a#b?c", "a%23b%3Fc"),
        ("a b%", "a%20b%25"),
        ("...", "..."),
        ("../x", "..%2Fx"),
        ("é\n", "%C3%A9%0A"),
        ("~-_.", "~-_."),
        ("%2e%2e", "%252e%252e"),
    ],
)
def test_a_short_code_is_always_one_segment(short_code: str, segment: str) -> None:
    assert (
        link.share_link("https://s.example", short_code, KEY)
        == f"https://s.example/{segment}#{FRAGMENT}"
    )
    assert link.collect_link("https://s.example", short_code) == f"https://s.example/r/{segment}"


@pytest.mark.parametrize("short_code", ["", ".", "..", "\ud800", None, 7])
def test_no_link_is_made_of_what_is_no_short_code(short_code: Any) -> None:
    call: Callable[[], object]
    for call in (
        lambda: link.share_link("https://s.example", short_code, KEY),
        lambda: link.collect_link("https://s.example", short_code),
        lambda: link.access_link("https://s.example", short_code, KEY),
    ):
        with pytest.raises(UsageError, match="short code"):
            call()


@pytest.mark.parametrize(
    "given",
    ["https://s.example/AbC", "http://127.0.0.1:1/s/r/AbC", "HTTPS://x", f"x://y#{FRAGMENT}"],
)
def test_a_link_is_no_short_code_to_call_for(given: str) -> None:
    with pytest.raises(UsageError, match="this is a link"):
        link.called(given)


@pytest.mark.parametrize("short_code", ["AbC", "a/b", "r/x", "é\n", "a b", "%2F", "a#b", "~-_."])
@pytest.mark.parametrize(
    "base", ["https://s.example", "http://127.0.0.1:1/s", "https://s.example/r/x"]
)
def test_a_collect_link_is_taken_apart_as_it_was_made(base: str, short_code: str) -> None:
    assert link.split_collect_link(link.collect_link(base, short_code)) == (base, short_code)


@pytest.mark.parametrize(
    "given",
    [
        "https://s.example/AbC", "https://s.example/r/", "https://s.example/r/AbC/",
        "https://s.example/r/AbC?x=1", "https://s.example/r/A%2", "https://s.example/r/%41",
        "/r/AbC", "https://s.example/r/\u00e9",
    ],
)  # fmt: skip
def test_what_is_no_collect_link_is_not_taken_for_one(given: str) -> None:
    with pytest.raises(UsageError, match="not a collect link"):
        link.split_collect_link(given)


@pytest.mark.parametrize(
    "given", [link.access_link("https://s.example", "AbC", KEY), "https://s.example/r/AbC#", "#"]
)
def test_an_access_link_is_refused_and_not_shown(given: str) -> None:
    with pytest.raises(UsageError, match="a link with its key") as caught:
        link.split_collect_link(given)
    assert FRAGMENT not in f"{caught.value.message} {caught.value.remedy}"


@pytest.mark.parametrize("opaque", ["a/b", "a:b", "//", "a#b", "r/AbC?x=1"])
def test_whatever_else_is_opaque_and_one_segment(opaque: str) -> None:
    assert "/" not in link.called(opaque)


@pytest.mark.parametrize("base", ["", "https://s.example/#x", "https://s.example/?x"])
def test_no_link_is_made_on_a_base_that_would_break_it(base: str) -> None:
    with pytest.raises(UsageError, match="base address"):
        link.collect_link(base, "c")


def test_a_link_without_a_fragment_has_no_key() -> None:
    with pytest.raises(FragmentError) as caught:
        link.decode_fragment(None)
    assert caught.value.reason == "missing-key"


@pytest.mark.parametrize("key", [b"", KEY[:31], KEY + b"\0", "x" * 32, None])
def test_a_key_of_another_size_is_refused_everywhere(key: Any) -> None:
    for call, error, reason in (
        (lambda: link.encode_fragment(key), FragmentError, "malformed-key"),
        (lambda: link.share_link("https://s.example", "c", key), FragmentError, "malformed-key"),
        (lambda: link.access_link("https://s.example", "c", key), SeedError, "bad-seed"),
        (lambda: tokens.access_token(key), EnvelopeError, "bad-content-key"),
        (lambda: envelope.seal(key, b""), EnvelopeError, "bad-content-key"),
        (lambda: envelope.open(key, "A" * 60), EnvelopeError, "bad-content-key"),
        (lambda: keys.from_seed(key), SeedError, "bad-seed"),
        (lambda: keys.private_key(key), SeedError, "bad-scalar"),
    ):
        with pytest.raises(WireError) as caught:
            call()
        assert (type(caught.value), caught.value.reason) == (error, reason)


@pytest.mark.parametrize(("name", "size"), [("salt", 16), ("iv", 12)])
@pytest.mark.parametrize("off_by", [-1, 1])
def test_salt_and_iv_have_their_sizes(name: str, size: int, off_by: int) -> None:
    wrong: dict[str, Any] = {name: bytes(size + off_by)}
    with pytest.raises(EnvelopeError) as envelope_error:
        envelope.seal(KEY, b"", **wrong)
    with pytest.raises(BoxError) as box_error:
        sealed_box.seal(PAIR.public_key, b"", **wrong)
    assert envelope_error.value.reason == box_error.value.reason == f"bad-{name}"


@pytest.mark.parametrize(
    ("passcode", "reason"),
    [("", "empty-passcode"), ("a\ud800", "lone-surrogate"), (b"x", "not-text"), (4711, "not-text")],
)
def test_what_is_no_passcode_is_refused_and_never_taken_for_none(
    passcode: Any, reason: str
) -> None:
    sealed = envelope.seal(KEY, b"")
    for call in (
        lambda: tokens.passcode_verifier(passcode),
        lambda: envelope.seal(KEY, b"", passcode),
        lambda: envelope.open(KEY, sealed, passcode),
    ):
        with pytest.raises(PasscodeError) as caught:
            call()
        assert caught.value.reason == reason


def test_a_passcode_is_used_exactly_as_typed() -> None:
    verifiers = {
        tokens.passcode_verifier(typed)
        for typed in ("a", "A", " a", "a ", "a\n", "é", "e\u0301", "\ufeffa")
    }
    assert len(verifiers) == 8


@pytest.mark.parametrize("scalar", [0, keys.GROUP_ORDER, keys.GROUP_ORDER + 1, 2**256 - 1])
def test_a_scalar_outside_the_group_is_refused(scalar: int) -> None:
    with pytest.raises(SeedError) as caught:
        sealed_box.seal(PAIR.public_key, b"", ephemeral=scalar.to_bytes(32, "big"))
    assert caught.value.reason == "bad-scalar"


def test_the_first_and_the_last_scalar_of_the_group_serve() -> None:
    for scalar in (1, keys.GROUP_ORDER - 1):
        blob = sealed_box.seal(PAIR.public_key, b"x", ephemeral=scalar.to_bytes(32, "big"))
        assert sealed_box.open(PAIR, blob) == b"x"


@pytest.mark.parametrize("tag", ["", "SVC", "s-v", "s v", "svc\n", "é", "１", None])  # noqa: RUF001
def test_what_is_no_tag_is_refused(tag: Any) -> None:
    blob = sealed_box.seal(PAIR.public_key, b"x")
    for call in (
        lambda: keys.from_seed(KEY, tag=tag),
        lambda: keys.from_custody_secret("secret", tag=tag),
        lambda: sealed_box.seal(PAIR.public_key, b"x", tag=tag),
        lambda: sealed_box.open(PAIR, blob, tag=tag),
    ):
        with pytest.raises(UsageError, match="tag"):
            call()


@pytest.mark.parametrize("secret", ["", "\ud800", None, b"bytes"])
def test_what_is_no_custody_secret_is_refused(secret: Any) -> None:
    with pytest.raises(SeedError) as caught:
        keys.from_custody_secret(secret)
    assert caught.value.reason == "bad-custody-secret"


def test_a_tag_makes_another_pair_of_the_same_seed() -> None:
    assert keys.from_seed(KEY, tag="crs") != PAIR == keys.from_seed(KEY)
    assert len({keys.from_seed(KEY), PAIR, CUSTODY}) == 2


def test_the_seed_of_a_custody_secret_never_becomes_a_link() -> None:
    assert CUSTODY.custody
    assert not PAIR.custody
    for seed in (CUSTODY.seed, keys.from_seed(CUSTODY.seed).seed, copy.deepcopy(CUSTODY).seed):
        with pytest.raises(UsageError, match="custody") as caught:
            link.access_link("https://s.example", "c", seed)
        assert caught.value.exit_code == 2
        with pytest.raises(UsageError, match="custody"):
            link.share_link("https://s.example", "c", seed)
        with pytest.raises(UsageError, match="custody"):
            link.encode_fragment(seed)


def test_the_seed_of_a_custody_secret_shows_nothing_and_is_still_bytes() -> None:
    seed = CUSTODY.seed
    assert isinstance(seed, tokens.CustodySeed)
    assert len(seed) == 32
    assert keys.from_seed(bytes(seed)).public_key == CUSTODY.public_key
    assert repr(seed) == str(seed) == f"{seed}" == f"{seed!r}" == "CustodySeed(...)"
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(TypeError, match="cannot be pickled"):
            pickle.dumps(seed, protocol)


@pytest.mark.parametrize("pair", [PAIR, CUSTODY], ids=["seed", "custody"])
def test_a_key_pair_gives_nothing_secret_away(pair: keys.KeyPair) -> None:
    shown = f"{pair} {pair!r} {vars(pair) if hasattr(pair, '__dict__') else ''}"
    assert pair.public_key.hex() in shown
    for secret in (pair.seed, pair.scalar):
        assert bytes(secret).hex() not in shown
        assert repr(bytes(secret)) not in shown
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(pair)
    with pytest.raises(TypeError):
        json.dumps(pair)
    assert copy.copy(pair) is copy.deepcopy(pair) is pair


def test_a_token_tells_nothing_apart_from_its_key() -> None:
    assert tokens.access_token(KEY) == tokens.access_token(bytearray(KEY))  # type: ignore[arg-type]
    assert tokens.access_token(KEY) != tokens.access_token(bytes(32))
    assert len(tokens.access_token(KEY)) == 43
