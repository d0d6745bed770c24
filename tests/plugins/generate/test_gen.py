"""gen: what it draws is what it says: alphabet, length, entropy, key pairs; and each mention is a
value of its own.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import math
import re
import subprocess
import uuid
from collections import Counter
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import load_ssh_private_key, load_ssh_public_key

from sealpipe.errors import ReferenceSyntaxError, ReferenceValueError
from sealpipe.reference import parse, parse_field
from sealpipe.sources.resolve import Cache, collect_remarks, resolve, resolve_value
from sealpipe.wire.fields import Field
from sealpipe_plugins.generate import drawing
from sealpipe_plugins.generate.drawing import read_words
from sealpipe_plugins.generate.source import KINDS
from sealpipe_plugins.local.dotenv_lines import is_plain
from sealpipe_rehearsal.server import start
from support.backends import fetched, opened, registry, value_of
from support.parts import ROOT, program
from support.terminal import Terminal
from support.terminal import opened as at_recipient

OFFICIAL = "addd35536511597a02fa0a9ff1e5284677b8883b83e986e43f15a3db996b903e"
"""SHA-256 of the list as EFF publishes it."""


def value(text: str) -> str:
    found = value_of(text)
    assert found is not None
    return found


def unlikely(counts: Counter[str], alphabet: str) -> bool:
    """Whether a chi-square test says (one in some ten million) that a character is drawn too often
    or too seldom.
    """
    expected = sum(counts.values()) / len(alphabet)
    assert expected > 100
    statistic = sum((counts[sign] - expected) ** 2 / expected for sign in alphabet)
    freedom = len(alphabet) - 1
    return statistic > freedom + 8 * math.sqrt(2 * freedom)


class TestWhatIsDrawn:
    """Form and alphabet."""

    def test_a_password_has_24_characters_of_every_kind(self) -> None:
        for _ in range(200):
            drawn = value("gen:password")
            assert len(drawn) == 24
            assert all(set(kind) & set(drawn) for kind in drawing.WITH_SYMBOLS)
            assert set(drawn) <= set("".join(drawing.WITH_SYMBOLS))

    def test_its_symbols_are_those_that_nothing_reads_in_two_ways(self) -> None:
        """Every sink takes it: GitLab masks it in its older versions, too, and it may stand in a
        URL as it is.
        """
        symbols = drawing.WITH_SYMBOLS[-1]
        assert set(symbols) <= set("_+=/@:.~-"), "masked by GitLab before 16"
        assert set(symbols) <= set("-._~!$&'()*+,;=:"), "userinfo of RFC 3986"
        assert all(is_plain(f"{first}{second}") for first in symbols for second in symbols)

    def test_all_symbols_are_drawn_where_all_are_asked_for(self) -> None:
        drawn = "".join(value("gen:password?symbols=all&length=200") for _ in range(50))
        assert set(drawn) == set("".join(drawing.ALL_SYMBOLS))

    def test_without_symbols_it_has_letters_and_digits(self) -> None:
        for _ in range(200):
            assert re.fullmatch("[A-Za-z0-9]{11}", value("gen:password?length=11&symbols=0"))

    @pytest.mark.parametrize(
        "kinds",
        [drawing.PLAIN, drawing.WITH_SYMBOLS, drawing.ALL_SYMBOLS],
        ids=["plain", "symbols", "all"],
    )
    def test_every_character_is_drawn_as_often(self, kinds: tuple[str, ...]) -> None:
        counts: Counter[str] = Counter()
        for _ in range(250):
            counts.update(drawing.draw_password(200, kinds))
        assert set(counts) == set("".join(kinds))
        assert not unlikely(counts, "".join(kinds))

    def test_the_test_for_it_sees_what_a_remainder_does(self) -> None:
        biased: Counter[str] = Counter(
            "".join(drawing.PLAIN)[byte % 62] for _ in range(200) for byte in range(256)
        )
        assert unlikely(biased, "".join(drawing.PLAIN))

    def test_every_place_of_a_pin_has_every_digit_as_often(self) -> None:
        pins = [value("gen:pin?length=4") for _ in range(1500)]
        for place in range(4):
            assert not unlikely(Counter(pin[place] for pin in pins), "0123456789")

    def test_a_passphrase_is_words_of_the_list(self) -> None:
        assert set(value("gen:passphrase?separator=%26").split("&")) <= set(read_words())
        assert len(value("gen:passphrase?words=8&separator= ").split(" ")) == 8
        assert re.fullmatch("[a-z-]+", value("gen:passphrase?separator="))
        drawn = {
            word
            for _ in range(3000)
            for word in drawing.draw_passphrase(6, " ", read_words()).split(" ")
        }
        assert len(drawn) > 0.85 * 7776

    def test_hex_uuid_and_pin_have_their_form(self) -> None:
        assert re.fullmatch("[0-9a-f]{64}", value("gen:hex"))
        assert re.fullmatch("[0-9a-f]{16}", value("gen:hex?bytes=8"))
        made = uuid.UUID(value("gen:uuid"))
        assert (made.version, made.variant) == (4, uuid.RFC_4122)
        assert re.fullmatch("[0-9]{6}", value("gen:pin"))
        assert len({value("gen:uuid") for _ in range(50)}) == 50

    def test_the_word_list_is_the_one_that_eff_publishes(self) -> None:
        import sealpipe_plugins.generate as room

        (folder,) = room.__path__
        assert (
            hashlib.sha256((Path(folder) / "eff_large_wordlist.txt").read_bytes()).hexdigest()
            == OFFICIAL
        )
        told = (Path(folder) / "eff_large_wordlist.md").read_text()
        assert OFFICIAL in told
        assert "CC BY 3.0" in told


class TestEntropy:
    """The bits that are told are those that are there."""

    @pytest.mark.parametrize("kinds", [("ab", "c"), ("ab", "cde", "f"), ("a", "b", "c", "de")])
    @pytest.mark.parametrize("length", range(1, 6))
    def test_the_number_of_passwords_is_counted_exactly(
        self, kinds: tuple[str, ...], length: int
    ) -> None:
        every = itertools.product("".join(kinds), repeat=length)
        fitting = sum(all(set(kind) & set(one) for kind in kinds) for one in every)
        assert drawing.count_passwords(length, kinds) == fitting

    def test_no_word_begins_another_so_no_two_draws_make_the_same_passphrase(self) -> None:
        ordered = sorted(read_words())
        assert len(set(ordered)) == 7776 == 6**5
        assert [pair for pair in itertools.pairwise(ordered) if pair[1].startswith(pair[0])] == []

    def test_bits_are_rounded_down(self) -> None:
        assert [drawing.entropy_bits(count) for count in (0, 1, 2, 3, 10**6)] == [0, 0, 1, 1, 19]
        assert [drawing.entropy_bits(2**1000 + more) for more in (-1, 0, 1)] == [999, 1000, 1000]

    @pytest.mark.parametrize(
        ("text", "remark"),
        [
            ("gen:password", "24 characters of 68, 145 bits"),
            ("gen:password?symbols=all", "24 characters of 94, 157 bits"),
            ("gen:password?symbols=0", "24 characters of 62, 142 bits"),
            ("gen:password?length=11", "11 characters of 68, 65 bits"),
            ("gen:passphrase", "6 words of 7776, 77 bits"),
            ("gen:passphrase?words=5", "5 words of 7776, 64 bits"),
            ("gen:pin", "6 digits, 19 bits"),
            ("gen:hex", "32 bytes, 256 bits"),
            ("gen:uuid", "version 4, 122 bits"),
        ],
    )
    def test_each_document_tells_its_entropy_and_the_docs_say_the_same(
        self, text: str, remark: str
    ) -> None:
        cache: Cache = {}
        found = registry()
        resolve_value(parse(text), lambda: found, cache)
        assert collect_remarks(cache) == (f"{text}: {remark}",)
        if "?" not in text:
            size, _, entropy = remark.partition(", ")
            assert (
                f"| `{text}` | {size} | {entropy} |"
                in (ROOT / "docs/products/generate.md").read_text()
            )


class TestBadParameters:
    """Each error names the parameter and what it takes; all of them end with 2."""

    @pytest.mark.parametrize(
        ("text", "told"),
        [
            ("gen:password?length=9", "length=11 or more is safe (64 bits)"),
            ("gen:password?length=10&symbols=0", "length=11 or more is safe (64 bits)"),
            ("gen:password?length=3", "length=11 or more is safe (64 bits)"),
            ("gen:passphrase?words=4", "words=5 or more is safe (64 bits)"),
            ("gen:password?length=0", "length= is a whole number, 1 to 1024"),
            ("gen:password?length=1025", "length= is a whole number, 1 to 1024"),
            ("gen:password?length=-24", "length= is a whole number, 1 to 1024"),
            ("gen:password?length=2_4", "length= is a whole number, 1 to 1024"),
            ("gen:password?length=²4", "length= is a whole number, 1 to 1024"),
            ("gen:password?symbols=yes", "symbols= is 0 (none), 1 (+-.:=_) or all"),
            ("gen:passphrase?words=65", "words= is a whole number, 1 to 64"),
            ("gen:passphrase?separator=12345678901234567", "separator= is at most 16 characters"),
            ("gen:pin?length=3", "length= is a whole number, 4 to 64"),
            ("gen:hex?bytes=7", "bytes= is a whole number, 8 to 4096"),
            ("gen:uuid?length=4", "it takes name="),
            ("gen:pin?words=4", "it takes length= and name="),
        ],
    )
    def test_they_are_refused(self, text: str, told: str) -> None:
        with pytest.raises(ReferenceValueError) as caught:
            value_of(text)
        assert caught.value.exit_code == 2
        assert caught.value.remedy == told
        assert caught.value.locator == text

    def test_what_gen_does_not_make_is_refused_without_repeating_it(self) -> None:
        with pytest.raises(ReferenceValueError) as caught:
            value_of("gen:hunter2-was-here")
        assert "hunter2" not in f"{caught.value} {caught.value.remedy} {caught.value.locator}"
        assert all(kind in caught.value.remedy for kind in KINDS)

    def test_a_parameter_that_nothing_has_is_refused_by_the_core(self) -> None:
        with pytest.raises(ReferenceSyntaxError) as caught:
            value_of("gen:password?lenght=20")
        assert "did you mean length" in caught.value.remedy


def texts(fields: list[Field]) -> list[str]:
    return [opened(field).decode() for field in fields]


class TestSsh:
    """gen:ssh"""

    def test_both_halves_are_one_key_pair_that_libraries_load(self) -> None:
        private, public, fingerprint = fetched("gen:ssh?comment=me@host#private,public,fingerprint")
        key = load_ssh_private_key(opened(private), None)
        assert isinstance(key, Ed25519PrivateKey)
        line = opened(public).decode()
        assert load_ssh_public_key(line.encode()) == key.public_key()
        assert line.endswith(" me@host")
        digest = hashlib.sha256(base64.b64decode(line.split()[1])).digest()
        assert opened(fingerprint).decode() == "SHA256:" + base64.b64encode(digest).decode().rstrip(
            "="
        )

    def test_ssh_keygen_reads_the_private_half_and_gets_the_public_one(
        self, tmp_path: Path
    ) -> None:
        keygen = program("ssh-keygen")
        private, public, fingerprint = texts(
            fetched("gen:ssh#private", "gen:ssh#public", "gen:ssh#fingerprint")
        )
        path = tmp_path / "key"
        path.write_text(private)
        path.chmod(0o600)
        run_ = subprocess.run(
            [keygen, "-y", "-f", str(path)], check=True, capture_output=True, text=True
        )
        assert run_.stdout.split()[:2] == public.split()[:2]
        listed = subprocess.run(
            [keygen, "-l", "-f", str(path)], check=True, capture_output=True, text=True
        )
        assert listed.stdout.split()[:2] == ["256", fingerprint]

    def test_only_the_private_half_is_a_secret(self) -> None:
        private, public, fingerprint = fetched("gen:ssh#*")
        assert (private.key, private.type) == ("private", "multiline")
        assert (public.key, public.type, fingerprint.type) == ("public", "text", "text")
        assert isinstance(public.value, str)
        assert isinstance(fingerprint.value, str)
        assert not isinstance(private.value, str)
        (pointed,) = fetched("gen:ssh#/public")
        assert isinstance(pointed.value, str)

    def test_without_a_key_the_error_lists_the_keys(self) -> None:
        with pytest.raises(ReferenceValueError) as caught:
            fetched("gen:ssh")
        assert "fingerprint" in caught.value.remedy
        assert "PRIVATE" not in f"{caught.value} {caught.value.remedy}"


class TestMentions:
    """Each mention draws anew; parts of one thing stay together; a name makes several mentions
    one.
    """

    def test_two_fields_have_two_passwords(self) -> None:
        values = texts(
            fetched("App=gen:password", "Root=gen:password", "Third=gen:password?trim=1")
        )
        assert len(set(values)) == 3

    def test_the_halves_of_a_key_pair_stay_together_and_a_second_pair_is_another(self) -> None:
        mentions = [
            "A=gen:ssh#private",
            "B=gen:ssh#public",
            "C=gen:ssh#private",
            "D=gen:ssh?type=text#public",
        ]
        first, first_public, second, second_public = map(str.encode, texts(fetched(*mentions)))
        for private, public in ((first, first_public), (second, second_public)):
            assert load_ssh_private_key(private, None).public_key() == load_ssh_public_key(public)
        assert first != second

    def test_the_same_name_is_the_same_value(self) -> None:
        one, other, third = texts(
            fetched(
                "A=gen:password?name=db", "B=gen:password?name=db&type=qr", "C=gen:password?name=x"
            )
        )
        assert one == other != third

    def test_a_passcode_is_not_the_field_that_looks_like_it(self) -> None:
        found, cache = registry(), Cache()
        (field,) = resolve([parse_field("gen:pin?length=12")], lambda: found, cache)
        passcode = resolve_value(parse("gen:pin?length=12"), lambda: found, cache)
        assert opened(field) != passcode.reveal_bytes()
        assert len(collect_remarks(cache)) == 2

    def test_other_sources_are_still_read_once(self) -> None:
        assert texts(fetched("A=stdin:", "B=stdin:", stdin=b"x")) == ["x", "x"]


def test_a_share_tells_the_entropy_on_stderr_and_the_value_nowhere(tmp_path: Path) -> None:
    words_ = [
        "share",
        "-f",
        "App=gen:password",
        "-f",
        "Root=gen:password",
        "-f",
        "gen:ssh#private,public",
    ]
    with start() as service:
        user = Terminal(tmp_path).at(service)
        done = user.sealpipe(*words_)
        assert done.code == 0, done
        seen = at_recipient(service, done.out)
        dry, dry_json = (
            user.sealpipe(*words_, "--dry-run"),
            user.sealpipe(*words_, "--dry-run", "--output", "json"),
        )
    assert seen["App"] != seen["Root"]
    assert done.err.count("gen:password: 24 characters of 68, 145 bits\n") == 2
    assert "gen:ssh: ed25519 (128 bits of strength), SHA256:" in done.err
    assert seen["App"] not in done.err
    assert dry.out.count("gen:password: 24 characters of 68, 145 bits\n") == 2
    assert dry_json.json["remarks"][0] == "gen:password: 24 characters of 68, 145 bits"
