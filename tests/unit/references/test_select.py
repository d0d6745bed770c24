"""What a reference takes out of a document."""

from __future__ import annotations

import base64
import importlib.util
from typing import Any

import pytest

from sealpipe.errors import (
    NotConfiguredError,
    PayloadTooLargeError,
    PluginError,
    ReferenceValueError,
    SecretNotFoundError,
)
from sealpipe.plugin import Document
from sealpipe.reference import parse
from sealpipe.sources import documents
from sealpipe.sources.select import select
from sealpipe.wire.encoding import PLAINTEXT_LIMIT
from sealpipe.wire.fields import Field
from support.backends import opened

MAP = {
    "user": "bob",
    "pass.word": "s3cret",
    "n": 1.5,
    "t": True,
    "none": None,
    "": "nameless",
    "raw": b"\x00a",
}
DEEP = b'{"conn": [{"pw": "p0", "a/b": 1.10}, "x"], "m~n": "tilde"}'
CANARY = "Canary-7f3a"


def taken(content: Any, text: str, **more: Any) -> list[Field]:
    return select(Document(content), parse(text), **more)


def pairs(content: Any, text: str, **more: Any) -> list[tuple[str, bytes]]:
    return [(field.key, opened(field)) for field in taken(content, text, **more)]


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("env:DB_PASSWORD", "DB_PASSWORD"),
        ("file:a/deploy.pem", "deploy.pem"),
        ("file:a/b/", "b"),
        ("op://Vault/Item/field", "field"),
        ("stdin:", "stdin"),
    ],
)
def test_a_value_alone_is_labelled_by_its_path(text: str, label: str) -> None:
    assert pairs("x", text) == [(label, b"x")]
    assert pairs("x", text, label="Mine") == [("Mine", b"x")]


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("v:a#user", [("user", b"bob")]),
        ("v:a#pass.word", [("pass.word", b"s3cret")]),
        ("v:a#Name=user,user,n", [("Name", b"bob"), ("user", b"bob"), ("n", b"1.5")]),
        ("v:a#t", [("t", b"true")]),
        ("v:a#raw", [("raw", b"\x00a")]),
        ('v:path/last#""', [("last", b"nameless")]),
        ("v:a#/user", [("user", b"bob")]),
        ("v:a#no?,user", None),
        ("v:a?optional=1#no,user,none", [("user", b"bob")]),
    ],
)
def test_keys_are_taken_literally(text: str, fields: list[tuple[str, bytes]] | None) -> None:
    text = text.replace("v:", "vault:")
    if fields is None:
        with pytest.raises(SecretNotFoundError, match=r'no key "no\?"'):
            pairs(MAP, text)
    else:
        assert pairs(MAP, text) == fields


@pytest.mark.parametrize(
    ("selector", "fields"),
    [
        ("/conn/0/pw", [("pw", b"p0")]),
        ("pw=/conn/0/a~1b", [("pw", b"1.10")]),
        ("/conn/1", [("1", b"x")]),
        ("/m~0n", [("m~n", b"tilde")]),
    ],
)
def test_a_pointer_goes_down_a_document(selector: str, fields: list[tuple[str, bytes]]) -> None:
    assert pairs(DEEP, f"file:x?format=json#{selector}") == fields


@pytest.mark.parametrize(
    "pointer", ["/conn/2", "/conn/-", "/conn/00", "/conn/+1", "/conn/²", "/conn/1/x", "/zz/0"]
)
def test_a_pointer_into_nothing_is_an_error_unless_it_is_optional(pointer: str) -> None:
    with pytest.raises(SecretNotFoundError, match="nothing at"):
        taken(DEEP, f"file:x?format=json#{pointer}")
    assert taken(DEEP, f"file:x?format=json&optional=1#{pointer}") == []


def test_a_star_is_every_top_level_key() -> None:
    assert pairs({"a": "1", "b": "2"}, "vault:x#*") == [("a", b"1"), ("b", b"2")]
    assert pairs({"a": "1"}, "vault:x#*,c=a") == [("a", b"1"), ("c", b"1")]
    with pytest.raises(SecretNotFoundError, match="without any key"):
        taken({}, "vault:x#*")
    assert taken({}, "vault:x?optional=1#*") == []


def test_a_map_without_a_selector_names_its_keys_and_never_a_value() -> None:
    with pytest.raises(ReferenceValueError) as caught:
        taken({"user": CANARY, "a\x1b[2Jb": CANARY}, "vault:secret/app")
    error = caught.value
    assert 'its keys: "user", "a\\u001b[2Jb"' in error.remedy
    assert (error.locator, error.exit_code) == ("vault:secret/app", 2)
    assert CANARY not in f"{error} {error.remedy}"


def test_many_keys_are_not_all_named() -> None:
    with pytest.raises(ReferenceValueError) as caught:
        taken({f"k{n}": "" for n in range(500)}, "vault:a")
    assert caught.value.remedy.endswith('"k19" and 480 more')


@pytest.mark.parametrize(
    ("content", "text", "reason"),
    [
        ("plain", "env:A#key", "is one value, not a map"),
        ("plain", "env:A#*", "is one value, not a map"),
        ("[1,2]", "env:A?format=json", "is a list of 2"),
        ("[1,2]", "env:A?format=json#key", "is a list of 2, not a map"),
        ('{"a":{"b":1}}', "env:A?format=json#a", "#a is a map, not a value"),
        ('{"a":[]}', "env:A?format=json#*", "#a is a list, not a value"),
        ({"a": "1"}, "vault:A?format=json#a", "is already a map"),
    ],
)
def test_a_selector_that_does_not_fit_is_the_references_fault(
    content: Any, text: str, reason: str
) -> None:
    with pytest.raises(ReferenceValueError) as caught:
        taken(content, text)
    assert reason in caught.value.message
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("content", ["", b"", " \n", None])
def test_an_empty_value_is_an_error_unless_it_is_optional(content: str | bytes | None) -> None:
    whole = {"k": content}
    with pytest.raises(SecretNotFoundError, match=r"vault:a\?trim=1#k is empty") as caught:
        taken(whole, "vault:a?trim=1#k")
    assert caught.value.exit_code == 14
    assert taken(whole, "vault:a?trim=1&optional=1#k") == []


@pytest.mark.parametrize(
    ("how", "text", "data"),
    [
        ("base64", "aGk+Pz8=", b"hi>??"),
        ("base64", "aGk+\n Pz8=\r\n", b"hi>??"),
        ("base64url", "aGk-Pz8", b"hi>??"),
        ("base64url", "aGk-Pz8=", b"hi>??"),
        ("hex", "68 69\n", b"hi"),
        ("hex", "C3A9", "é".encode()),
    ],
)
def test_a_value_is_decoded(how: str, text: str, data: bytes) -> None:
    assert pairs(text, f"env:A?decode={how}") == [("A", data)]
    assert pairs({"k": text.encode()}, f"vault:A?decode={how}#k") == [("k", data)]


@pytest.mark.parametrize(
    ("how", "text"),
    [
        ("base64", "aGk-Pz8="),
        ("base64", "aGk+Pz8"),
        ("base64", "aGl="),
        ("base64", f"{CANARY}!"),
        ("base64url", "aGk+Pz8"),
        ("base64url", "aGl"),
        ("base64url", "aGk-Pz8=="),
        ("hex", "abc"),
        ("hex", CANARY),
        ("hex", "é"),
        ("base64", b"\xff\xfe"),
    ],
)
def test_what_cannot_be_decoded_is_refused_without_being_shown(how: str, text: str | bytes) -> None:
    with pytest.raises(PluginError) as caught:
        taken(text, f"env:A?decode={how}")
    error = caught.value
    assert f"env:A?decode={how} is not {how}" in error.message
    assert error.exit_code == 14
    assert CANARY not in f"{error} {error.remedy} {error.__context__!r}"


def test_decode_applies_to_the_document_whose_format_the_reference_names() -> None:
    coded = base64.b64encode(b'{"pw": "aGk="}')
    assert pairs(coded, "env:A?decode=base64&format=json#pw") == [("pw", b"aGk=")]


def test_decode_applies_to_each_value_of_a_source_that_reads_a_format() -> None:
    """What was stored there as base64 is read so: `dotenv:app.env?decode=base64#KEY`."""
    assert pairs(b"A=aGk=\nB=x!\n", "dotenv:f?decode=base64#A", form="dotenv") == [("A", b"hi")]
    coded = base64.b64encode(b"A=aGk=")
    named = "dotenv:f?decode=base64&format=dotenv#A"
    assert pairs(coded, named, form="dotenv") == [("A", b"aGk=")]


def test_what_is_too_large_only_in_its_encoding_is_told_so() -> None:
    most = PLAINTEXT_LIMIT // 2
    assert len(opened(taken(bytes(most), "file:x?encode=hex")[0])) == PLAINTEXT_LIMIT
    with pytest.raises(PayloadTooLargeError, match="is more than 16 MiB in hex") as caught:
        taken(bytes(most + 1), "file:x?encode=hex")
    assert caught.value.exit_code == 2


ANY_BYTES = bytes(range(256))


@pytest.mark.parametrize(
    ("how", "text"),
    [
        ("base64", base64.b64encode(ANY_BYTES)),
        ("base64url", base64.urlsafe_b64encode(ANY_BYTES).rstrip(b"=")),
        ("hex", ANY_BYTES.hex().encode()),
    ],
)
def test_a_value_of_any_bytes_is_encoded(how: str, text: bytes) -> None:
    assert pairs(ANY_BYTES, f"file:x?encode={how}") == [("x", text)]
    assert pairs({"k": ANY_BYTES}, f"k8s:a/b?encode={how}#k") == [("k", text)]
    assert taken(ANY_BYTES, f"file:x?encode={how}")[0].type == "password"


def test_what_is_text_is_encoded_all_the_same() -> None:
    assert pairs("é", "env:A?encode=hex") == [("A", b"c3a9")]
    assert pairs({"n": 1.5}, "vault:a?encode=hex#n") == [("n", b"312e35")]


@pytest.mark.parametrize(
    ("parameters", "content", "value"),
    [
        ("decode=base64&encode=hex", "aGk=", b"6869"),
        ("encode=hex&decode=base64", "aGk=", b"6869"),
        ("encode=hex&trim=1", b" hi\n", b"6869"),
        ("decode=hex&trim=1&encode=base64", "20686920", b"aGk="),
    ],
)
def test_encoding_comes_last(parameters: str, content: str | bytes, value: bytes) -> None:
    """Whichever stands first in the reference."""
    assert pairs(content, f"file:x?{parameters}") == [("x", value)]


def test_each_value_of_a_parsed_document_is_encoded() -> None:
    text = b'{"pw": "hi", "other": "\xc3\xa9"}'
    assert pairs(text, "file:x?format=json&encode=hex#*") == [("pw", b"6869"), ("other", b"c3a9")]


def test_an_empty_value_stays_empty_when_it_is_encoded() -> None:
    with pytest.raises(SecretNotFoundError):
        taken(b"", "file:x?encode=base64")
    assert taken(b"", "file:x?encode=base64&optional=1") == []


def test_text_that_its_source_knows_to_be_a_map_is_read_as_one() -> None:
    """Unless the reference says otherwise."""
    known = Document('{"pw": "Zm9v", "n": 1.10}', format="json")
    read = {
        text: [opened(field) for field in select(known, parse(text))]
        for text in ("vault:a#n", "vault:a?format=json#n")
    }
    assert set(map(tuple, read.values())) == {(b"1.10",)}
    assert [opened(field) for field in select(known, parse("vault:a?decode=base64#pw"))] == [
        b"foo"
    ], "each value"
    with pytest.raises(ReferenceValueError, match="is a map, and no key is selected"):
        select(known, parse("vault:a"))
    with pytest.raises(PluginError, match="cannot be read as dotenv"):
        select(known, parse("vault:a?format=dotenv#pw"))


def test_bytes_are_kept_exactly() -> None:
    value = b"\xef\xbb\xbf \tline\r\nline \n\n"
    assert pairs(value, "file:x") == [("x", value)]
    assert pairs(value, "file:x?trim=0") == [("x", value)]
    assert pairs(b" \n\ta b\xc2\xa0\r\n", "file:x?trim=1") == [("x", b"a b\xc2\xa0")]


def test_a_large_value_is_not_copied() -> None:
    data = b"x" * 1_000_000 + "é".encode()
    (field,) = taken(data, "file:x?trim=1")
    assert opened(field) is data


@pytest.mark.parametrize(
    "tail", [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80"]
)
@pytest.mark.parametrize("length", [0, 65_535, 65_536, 200_000])
def test_what_is_not_utf8_is_refused(tail: bytes, length: int) -> None:
    with pytest.raises(PluginError, match="file:x is not UTF-8 text") as caught:
        taken(b"a" * length + tail, "file:x")
    assert caught.value.exit_code == 14
    assert caught.value.__context__ is None
    assert "?encode=base64" in caught.value.remedy


def test_a_character_may_lie_across_slices() -> None:
    data = b"a" * 65_535 + "é𝄞".encode()
    assert pairs(data, "file:x") == [("x", data)]


def test_utf16_gets_advice_of_its_own() -> None:
    with pytest.raises(PluginError) as caught:
        taken("pass".encode("utf-16"), "file:x")
    assert "UTF-16" in caught.value.remedy


@pytest.mark.parametrize("parameter", ["", "?encode=base64"])
def test_half_a_surrogate_pair_has_no_bytes(parameter: str) -> None:
    with pytest.raises(PluginError, match="is not UTF-8 text") as caught:
        taken("\udc80", f"env:A{parameter}")
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    ("text", "value", "kind"),
    [
        ("env:A", "one line", "password"),
        ("env:A", "two\nlines", "multiline"),
        ("env:A", b"two\nlines", "multiline"),
        ("env:A?trim=1", "one line\n", "password"),
        ("env:A?type=date", "2026-01-01", "date"),
    ],
)
def test_the_type_follows_from_the_value(text: str, value: Any, kind: str) -> None:
    assert taken(value, text)[0].type == kind


def test_what_is_no_secret_is_text() -> None:
    (field,) = select(Document("bot", secret=False), parse("text:bot"))
    assert (field.key, field.value, field.type) == ("bot", "bot", "text")
    assert select(Document("x", secret=False), parse("text:x?type=url"))[0].type == "url"


def test_hints_reach_the_field() -> None:
    (field,) = taken("x = 1", "file:a.py?type=source_code&lang=python&filename=b.py")
    assert (field.type, field.language, field.filename) == ("source_code", "python", "b.py")


@pytest.mark.parametrize(
    ("form", "text", "fields"),
    [
        ("json", '\ufeff{"a": 1.10, "b": 1e3, "c": false}',
            [("a", b"1.10"), ("b", b"1e3"), ("c", b"false")]),
        ("dotenv", "export A=1\nB='x y' # c\n#D=1\nC=$A\nE=\"l\\nm\"\nNOTHING\nA=2", [
            ("A", b"2"), ("B", b"x y"), ("C", b"$A"), ("E", b"l\nm")]),
    ],
)  # fmt: skip
def test_formats_are_read_and_nothing_is_expanded(
    form: str, text: str, fields: list[tuple[str, bytes]]
) -> None:
    assert pairs(text, f"file:x?format={form}#*") == fields
    assert pairs(text.encode(), "dotenv:x#*", form=form) == fields


def test_a_json_value_alone_is_a_value() -> None:
    assert pairs('"s"', "file:x?format=json") == [("x", b"s")]


@pytest.mark.parametrize(
    ("form", "data", "reason"),
    [
        ("json", f'{{"a": "{CANARY}"', "cannot be read as json"),
        ("json", f'{{"a": "{CANARY}", "a": 1}}', "two members"),
        ("json", "NaN", "NaN"),
        ("json", "[" * 100_000, "levels"),
        ("json", b'"' + CANARY.encode() + b'\xff"', "not UTF-8"),
        ("dotenv", f"A=1\n-----BEGIN {CANARY}\n", "line 2 is not NAME=VALUE"),
        ("dotenv", f"A='{CANARY}", "line 1 is not"),
    ],
)
def test_a_document_that_cannot_be_read_is_not_shown(
    form: str, data: str | bytes, reason: str
) -> None:
    with pytest.raises(PluginError) as caught:
        taken(data, f"file:x?format={form}#a")
    error = caught.value
    assert reason in error.message
    assert CANARY not in f"{error} {error.remedy} {error.__context__!r}"


def test_a_line_of_a_secret_does_not_pass_for_a_key() -> None:
    with pytest.raises(ReferenceValueError) as caught:
        taken(f"{CANARY}\n", "file:x?format=dotenv")
    assert CANARY not in caught.value.remedy


def test_yaml_without_a_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(documents, "import_module", absent)
    with pytest.raises(NotConfiguredError) as caught:
        taken("a: 1", "file:x?format=yaml#a")
    assert caught.value.remedy == "pip install 'sealpipe[yaml]'"


@pytest.mark.skipif(importlib.util.find_spec("yaml") is None, reason="PyYAML is not installed")
class TestYaml:
    """With a YAML package at hand."""

    def test_scalars_keep_their_text(self) -> None:
        text = "a: 0123\nb: yes\nc: 1.10\nd: !!binary eA==\ne: |\n  two\n  lines\nf: 2026-01-01\n"
        assert pairs(text, "file:x?format=yaml#*") == [
            ("a", b"0123"), ("b", b"yes"), ("c", b"1.10"), ("d", b"eA=="), ("e", b"two\nlines\n"),
            ("f", b"2026-01-01")
        ]  # fmt: skip

    def test_a_null_is_empty(self) -> None:
        assert taken("a: ~\nb:\nc: null\n", "file:x?format=yaml&optional=1#*") == []

    def test_aliases_are_followed_and_do_no_harm(self) -> None:
        assert pairs("a: &x {k: v}\nb: *x", "file:x?format=yaml#/b/k") == [("k", b"v")]
        laughs = "a0: &a0 [x]\n" + "".join(
            f"a{n}: &a{n} [{f'*a{n - 1},' * 9}]\n" for n in range(1, 30)
        )
        assert pairs(laughs + "z: &z [*z]\nk: v", "file:x?format=yaml#k") == [("k", b"v")]

    @pytest.mark.parametrize(
        "text", ["a: 1\na: 2", "[a, b]: 1", "a: 'x", "a: \x00", "[" * 5000, "a: 1\n---\nb: 2"]
    )
    def test_what_is_no_map_of_one_meaning_is_refused(self, text: str) -> None:
        with pytest.raises(PluginError, match="cannot be read as yaml"):
            taken(text, "file:x?format=yaml#a")
