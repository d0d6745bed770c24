"""What each rule finds, what it lets pass, and that gitleaks would say the same."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hooks.conftest import PASSED, found_by, key
from sealpipe import Client
from sealpipe.wire import link
from sealpipe_plugins.precommit.rules import HOOKS, RULES, compiled, for_gitleaks
from sealpipe_plugins.precommit.scanning import matches
from sealpipe_rehearsal.server import start
from support.parts import missing

EVERY = [each for name in HOOKS for each in compiled(name)]
GITLEAKS = Path(__file__).resolve().parents[2] / "docs" / "hooks" / "gitleaks.toml"
BASE64URL = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def names(text: str | bytes) -> list[str]:
    content = text.encode() if isinstance(text, str) else text
    return [rule.name for _, rule in matches(content, EVERY)]


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
        with Client(api_key=credential, base_url=service.base_url, link_base_url=service.link_base_url) as client:
            share = client.share(["A=text:b"])
    assert names(share.link.reveal()) == ["link-with-key"]
    assert names(credential.reveal()) == ["credential-with-custody"]
    assert names(credential.reveal().rpartition(".")[0]) == ["credential"]


@given(
    st.binary(min_size=32, max_size=32), st.text(min_size=1, max_size=40).filter(lambda code: code not in (".", ".."))
)
@settings(max_examples=300)
def test_any_key_under_any_short_code_is_found(seed: bytes, code: str) -> None:
    for made in (link.share_link("https://l.example", code, seed), link.access_link("https://l.example", code, seed)):
        assert names(made) == ["link-with-key"]


@given(st.binary(max_size=4096))
@settings(max_examples=300)
def test_any_bytes_are_read_and_random_ones_pass(content: bytes) -> None:
    assert names(content) == []


def test_a_rule_takes_time_in_proportion_to_what_it_reads() -> None:
    from time import process_time

    hard = {
        "http": b"http" * 500_000,
        "https": b"https://" + b"a" * 2_000_000,
        "slashes": b"https://h/" * 200_000,
        "hashes": b"#1" * 1_000_000,
        "keys": b"_sk_live_" * 200_000,
        "seeds": b"seed" + b"seed." * 400_000,
    }
    for name, content in hard.items():
        began = process_time()
        matches(content, EVERY)
        assert process_time() - began < 20, name


def test_only_the_named_service_is_looked_for_where_one_is_named() -> None:
    texts = found_by()
    mine, other = (compiled("no-credentials", tags=[tag]) for tag in ("svc", "other"))
    assert [rule.name for _, rule in matches(texts["credential"][0].encode(), mine)] == ["credential"]
    assert matches(texts["credential"][0].encode(), other) == []
    hosts = compiled("no-links", hosts=["links.example"])
    assert matches(texts["link-with-key"][0].encode(), hosts)
    assert matches(f"https://links.example:8443/AbC#1{key()}".encode(), hosts)
    assert matches(f"https://links.example.evil/AbC#1{key()}".encode(), hosts) == []
    assert matches(f"https://linksXexample/AbC#1{key()}".encode(), hosts) == []


def gitleaks() -> dict[str, str]:
    return {row["id"].removeprefix("sealpipe-"): row["regex"] for row in tomllib.loads(GITLEAKS.read_text())["rules"]}


def test_the_file_for_gitleaks_holds_the_same_rules() -> None:
    assert gitleaks() == {rule.name: for_gitleaks(rule) for rule in RULES}


def test_the_rules_for_gitleaks_find_and_pass_the_same_in_its_own_engine() -> None:
    try:
        import re2
    except ImportError:
        missing("google-re2, the engine of gitleaks, is not installed")
    rules = {name: re2.compile(pattern.encode()) for name, pattern in gitleaks().items()}
    for name, texts in found_by().items():
        for text in texts:
            hits = {rule for rule, pattern in rules.items() if pattern.search(f"\n{text}\n".encode())}
            # It cannot look ahead: a credential with its custody part is one without, too.
            assert hits - {"credential"} == {name} - {"credential"}, text
            assert name in hits
    for text in PASSED:
        assert not [name for name, pattern in rules.items() if pattern.search(text.encode())], text


def test_each_expression_begins_with_one_of_its_anchors() -> None:
    for each in EVERY:
        for texts in found_by()[each.rule.name]:
            match = re.search(each.pattern, texts.encode())
            assert match is not None
            assert match[0].startswith(each.anchors)
