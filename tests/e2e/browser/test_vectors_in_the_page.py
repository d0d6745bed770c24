"""wire.js in a real browser, byte for byte: the shared vectors both ways, tests/unit/wire/vectors,
and the page.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from e2e.browser.chrome import Browser
from e2e.browser.sending import post
from sealpipe_rehearsal.running_service import RunningService
from support.parts import ROOT, shared

# A module's exports under `wire`; what a script returns or is refused with comes back as JSON.
_CALL = """
const [body, given, done] = arguments;
const un = (hex) => Uint8Array.from(hex.match(/../g) ?? [], (pair) => parseInt(pair, 16));
const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
import("/page/wire.js").then(async (wire) => {
  const read = READERS;
  const answers = [];
  for (const each of JSON.parse(given)) {
    try { answers.push(await read[body](wire, each, un, hex)); }
    catch (error) { answers.push({ refused: error.reason ?? String(error) }); }
  }
  done(answers);
});
"""
_READERS = """{
  async share(wire, v, un, hex) {
    const key = un(v.content_key_hex);
    const plaintext = new TextEncoder().encode(v.plaintext);
    return {
      opened: hex(await wire.openEnvelope(key, v.data, v.passcode)),
      sealed: await wire.sealEnvelope(
        key, plaintext, v.passcode, { salt: un(v.salt_hex), iv: un(v.iv_hex) }),
      token: await wire.accessToken(key),
      verifier: v.passcode === null ? null : await wire.passcodeVerifier(v.passcode),
      fragment: wire.encodeFragment(key),
      written: hex(wire.writeFields(wire.readFields(plaintext))),
    };
  },
  async custody(wire, v, un, hex) {
    const seed = await wire.seedFromCustodySecret(v.custody_secret);
    const pair = await wire.keyFromSeed(seed, v.service_tag);
    const { wrap } = v;
    const pins = {
      ephemeral: un(wrap.ephemeral_scalar_hex), salt: un(wrap.salt_hex), iv: un(wrap.iv_hex) };
    const payload = un(wrap.content_key_hex);
    return {
      seed: hex(seed), scalar: hex(pair.scalar), point: hex(pair.publicKey),
      opened: hex(await wire.openBox(pair, wrap.item_key_wrap, v.service_tag)),
      sealed: await wire.sealBox(pair.publicKey, payload, v.service_tag, pins),
      again: hex(await wire.openBox(
        pair, await wire.sealBox(pair.publicKey, payload, v.service_tag), v.service_tag)),
    };
  },
  fragment: (wire, text, un, hex) => hex(wire.decodeFragment(text)),
  base64: (wire, text, un, hex) => ({ bytes: hex(wire.decodeBase64(text)) }),
  base64url: (wire, text, un, hex) => ({ bytes: hex(wire.decodeBase64url(text)) }),
  async envelope(wire, v, un, hex) {
    return hex(await wire.openEnvelope(un(v.key), v.body, v.passcode));
  },
  async box(wire, v, un, hex) {
    return hex(await wire.openBox(await wire.keyFromSeed(un(v.seed), v.tag), v.body, v.tag));
  },
}"""

OURS = ROOT / "tests/unit/wire/vectors"
Reader = Callable[[str, list[Any]], list[Any]]
Members = dict[str, Any]


@pytest.fixture
def read(browser: Browser) -> Reader:
    """What wire.js, loaded in the browser, makes of each of a list."""
    browser.open(f"{browser.origin}/s/none#1")
    browser.one("#reason")
    script = _CALL.replace("READERS", _READERS)
    # As a JSON text: half a surrogate pair passes no other way.
    return lambda what, given: list(
        browser.driver.execute_async_script(script, what, json.dumps(given))
    )


def vectors() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(shared("vectors/wire.json").read_bytes())
    return found


def test_shares_are_opened_and_sealed_byte_for_byte(read: Reader) -> None:
    shares = vectors()["shares"]
    assert len(shares) == 7
    for share, came in zip(shares, read("share", shares), strict=True):
        plaintext = share["plaintext"].encode()
        # JSON.stringify writes U+0000 and the like as the shortest escape, as it was written there.
        assert came == {
            "opened": plaintext.hex(), "sealed": share["data"], "token": share["access_token"],
            "verifier": share["passcode_verifier"], "fragment": share["fragment"],
            "written": plaintext.hex(),
        }, share["name"]  # fmt: skip


def test_key_pairs_and_sealed_boxes_are_those_of_either_tag(read: Reader) -> None:
    custody = vectors()["custody"]
    assert {each["service_tag"] for each in custody} == {"svc", "acme"}
    for each, came in zip(custody, read("custody", custody), strict=True):
        content_key = each["wrap"]["content_key_hex"]
        assert came == {
            "seed": each["intermediate_hex"], "scalar": each["scalar_hex"],
            "point": each["public_key_hex"],
            "opened": content_key, "sealed": each["wrap"]["item_key_wrap"], "again": content_key,
        }  # fmt: skip


def test_a_box_of_one_tag_opens_under_no_other(read: Reader) -> None:
    custody = vectors()["custody"][0]
    for tag, expected in (
        ("svc", custody["wrap"]["content_key_hex"]),
        ("acme", {"refused": "cannot-decrypt"}),
    ):
        given = {
            "seed": custody["intermediate_hex"],
            "body": custody["wrap"]["item_key_wrap"],
            "tag": tag,
        }
        assert read("box", [given]) == [expected]


def test_fragments_are_read_or_refused_with_their_reason(read: Reader) -> None:
    fragments = vectors()["fragments"]
    expected = [each.get("content_key_hex") or {"refused": each["reason"]} for each in fragments]
    assert read("fragment", [each["in"] for each in fragments]) == expected


# What wire.js is given of a vector's inputs, and what must come of it.
_GIVEN: dict[str, Callable[[Members], Any]] = {
    "base64": lambda given: given["text"],
    "base64url": lambda given: given["text"],
    "fragment": lambda given: given["fragment"],
    "envelope": lambda given: {
        "key": given["content key"], "passcode": given.get("passcode"), "body": given["data"],
    },
    "box": lambda given: {"seed": given["seed"], "tag": given["tag"], "body": given["data"]},
}  # fmt: skip
_RESULT: dict[str, Callable[[Members], Any]] = {
    "base64": lambda result: {"bytes": result["bytes"]},
    "base64url": lambda result: {"bytes": result["bytes"]},
    "fragment": lambda result: result["content key"],
    "envelope": lambda result: result["plaintext"].encode().hex(),
    "box": lambda result: result["payload"],
}


@pytest.mark.parametrize("kind", _GIVEN)
def test_our_own_vectors_are_opened_and_refused_alike(read: Reader, kind: str) -> None:
    lines = [line for file in OURS.glob("*.jsonl") for line in file.read_text("ascii").splitlines()]
    known = [vector for vector in map(json.loads, lines) if vector["kind"] == kind]
    assert len(known) > 15
    came = read(kind, [_GIVEN[kind](vector["given"]) for vector in known])
    for vector, got in zip(known, came, strict=True):
        name = vector["name"]
        if vector["expect"] == "success":
            assert got == _RESULT[kind](vector["result"]), name
        else:
            assert isinstance(got, dict), (name, got)
            assert set(got) == {"refused"}, name
            if kind == "fragment":
                assert got["refused"] == vector["expect"].split()[1], name


def test_the_page_shows_every_shared_vector_as_it_was_sealed(
    browser: Browser, service: RunningService
) -> None:
    for share in vectors()["shares"]:
        body = {"data": share["data"], "access_token": share["access_token"]}
        if share["passcode"] is not None:
            body["passcode_verifier"] = share["passcode_verifier"]
        browser.open(f"{service.link_base_url}/{post(service, body)}#{share['fragment']}")
        if share["passcode"] is not None:
            # A keyboard driver has no keys for all of it: the text is put as a paste puts it.
            browser.run(
                "arguments[0].value = arguments[1]", browser.one("#passcode"), share["passcode"]
            )
        browser.one("#open").click()
        browser.one("#hide")
        for button in browser.all(".field button.reveal"):
            button.click()
        fields = json.loads(share["plaintext"])
        assert browser.run(
            "return [...document.querySelectorAll('.value')].map(e => e.textContent)"
        ) == [field["value"] for field in fields], share["name"]
        assert [label.text for label in browser.all(".label")] == [field["key"] for field in fields]
        assert share["fragment"][1:].encode() not in browser.heard()
