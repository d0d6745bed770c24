"""What each rule finds, and what it lets pass."""

from __future__ import annotations

import gc
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plugins.precommit.conftest import PASSED, found_by, key
from sealpipe import Client
from sealpipe.wire import link
from sealpipe_plugins.precommit.rules import HOOKS, RULES, compile_rules
from sealpipe_plugins.precommit.scanning import find_matches
from sealpipe_rehearsal.server import start

EVERY = [each for name in HOOKS for each in compile_rules(name)]
BASE64URL = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def names(text: str | bytes) -> list[str]:
    content = text.encode() if isinstance(text, str) else text
    return [rule.name for _, rule in find_matches(content, EVERY)]


@pytest.mark.parametrize("rule", [rule.name for rule in RULES])
def test_each_rule_finds_what_it_must(rule: str) -> None:
    for text in found_by()[rule]:
        for around in ("{}", "x = {}\n", "\n\n  {}  # note", "\x00\xff{}\n"):
            assert names(around.format(text)) == [rule], text


@pytest.mark.parametrize("text", PASSED)
def test_what_only_looks_alike_passes(text: str) -> None:
    assert names(text) == []


def test_every_link_that_is_made_is_found() -> None:
    with start() as service:
        credential = service.create_key()
        with Client(
            api_key=credential, base_url=service.base_url, link_base_url=service.link_base_url
        ) as client:
            share = client.share(["A=text:b"])
    assert names(share.link.reveal()) == ["link-with-key"]
    assert names(credential.reveal()) == ["credential-with-custody"]
    assert names(credential.reveal().rpartition(".")[0]) == ["credential"]


@given(
    st.binary(min_size=32, max_size=32),
    st.text(min_size=1, max_size=40).filter(lambda code: code not in (".", "..")),
)
@settings(max_examples=300)
def test_any_key_under_any_short_code_is_found(seed: bytes, code: str) -> None:
    for made in (
        link.share_link("https://l.example", code, seed),
        link.access_link("https://l.example", code, seed),
    ):
        assert names(made) == ["link-with-key"]


@given(st.binary(max_size=4096))
@settings(max_examples=300)
def test_any_bytes_are_read_and_random_ones_pass(content: bytes) -> None:
    assert names(content) == []


A_KEY = b"A" * 43
PARTS = b"_sk_live_" + b"A" * 16 + b"." + A_KEY
HARD = {
    "letters": b"a",
    "dots": b".",
    "dashes": b"-",
    "base64": b"QUJD",
    "new lines": b"\n",
    "http": b"http",
    "addresses": b"https://h/",
    "addresses in JSON": b"https:\\/\\/h\\/",
    "addresses without an end": b"https://",
    "long addresses": b"https://a/" + b"b" * 899 + b" ",
    "fragments": b"#1",
    "encoded fragments": b"%231",
    "keys without an address": b"%231" + A_KEY,
    "keys far behind addresses": b"https://h/" * 60 + b" " + (b"#1" + A_KEY + b" ") * 13,
    "lone keys": b"#1" + A_KEY + b" ",
    "links": b"https://h/x#1" + A_KEY + b" ",
    "links in lines": b"https://h/x#1" + A_KEY + b"\n",
    "links that are allowed": b"https://h/x#1" + A_KEY + b" sealpipe: allow\n",
    "one line of allowed links": b"https://h/x#1" + A_KEY + b" sealpipe: allow ",
    "backslashes": (b"\\" * 1300 + b"u00231" + A_KEY + b"A") * 2 + b"\\" * 60 + b"#1" + A_KEY,
    "percent signs": b"%25" * 500 + b"231" + A_KEY,
    "ampersands": b"&amp;" * 300 + b"#35;1" + A_KEY,
    "slashes": b"/" * 1300 + b"#1" + A_KEY,
    "encoded slashes": b"h%5C%2F" * 180 + b"%231" + A_KEY,
    "templates": b"}a" * 600 + b"#1" + A_KEY,
    "digits": b"231",
    "starts of credentials": b"_sk_live_",
    "halves of credentials": b"_sk_live_" + b"A" * 16 + b".",
    "credentials without a tag": PARTS + b" ",
    "credentials": b"svc" + PARTS + b" ",
    "credentials with custody": b"svc" + PARTS + b"." + A_KEY + b"\n",
    "seed": b"seed",
    "seeds with dots": b"seed.",
    "seeds without a key": b"seed        =        ",
    "seeds": b"seed=" + A_KEY + b" ",
}


@pytest.mark.parametrize("name", HARD)
def test_a_rule_takes_time_in_proportion_to_what_it_reads(name: str) -> None:
    """Eight times as much takes some eight times as long, all on one line or not; it was 64, and
    126 s for 4 MB.
    """

    def seconds(size: int) -> float:
        content = HARD[name] * (size // len(HARD[name]))
        # else thousands of matches make Python look through all that earlier tests hold
        gc.disable()
        began = process_time()
        find_matches(content, EVERY)
        spent = process_time() - began
        gc.enable()
        return spent

    assert seconds(500_000) < 20 * seconds(62_500) + 0.1


def test_what_is_passed_over_hides_nothing_that_begins_within() -> None:
    """A credential whose first parts look like the end of another one, which has no tag."""
    real = found_by()["credential-with-custody"][0]
    first = real.partition(".")[0]
    assert names("--_sk_live_" + "A" * 16 + "." + "A" * (43 - len(first)) + real) == []
    hiding = "--_sk_live_" + "A" * 16 + "." + "-" * (43 - len(first)) + real
    assert names(hiding) == ["credential-with-custody"]


def test_a_pragma_allows_its_whole_line_and_no_other() -> None:
    text = found_by()["link-with-key"][0]
    for line in (
        f"{text} # sealpipe: allow",
        f"sealpipe: allow {text} and {text}",
        f"#1 {text} sealpipe: allow {text}",
    ):
        assert names(f"x\n{line}\ny") == []
        content = f"{line}\n{text} {text}\n\n{line}\n{text}"
        assert [number for number, _ in find_matches(content.encode(), EVERY)] == [2, 5]


def test_only_the_named_service_is_looked_for_where_one_is_named() -> None:
    texts = found_by()
    mine, other = (compile_rules("no-credentials", tags=[tag]) for tag in ("svc", "other"))
    assert [rule.name for _, rule in find_matches(texts["credential"][0].encode(), mine)] == [
        "credential"
    ]
    assert find_matches(texts["credential"][0].encode(), other) == []
    hosts = compile_rules("no-links", hosts=["links.example"])
    assert find_matches(texts["link-with-key"][0].encode(), hosts)
    assert find_matches(f"https://links.example:8443/AbC#1{key()}".encode(), hosts)
    assert find_matches(f"https://links.example.evil/AbC#1{key()}".encode(), hosts) == []
    assert find_matches(f"https://linksXexample/AbC#1{key()}".encode(), hosts) == []


def test_each_expression_begins_with_its_literal() -> None:
    for each in EVERY:
        for text in found_by()[each.rule.name]:
            matches = {start.literal: start.pattern.search(text.encode()) for start in each.starts}
            assert any(matches.values()), text
            assert all(match[0].startswith(literal) for literal, match in matches.items() if match)
