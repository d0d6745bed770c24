"""Make the vectors of `sealpipe doctor --conformance`, a choice of tests/unit/wire/vectors/.

python tests/unit/wire/make_conformance.py          writes the file; the same bytes on every run
"""

from __future__ import annotations

import base64
import json
import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from unit.wire import make_vectors
from unit.wire.making.primitives import Vector

FILE = Path(__file__).resolve().parents[3] / "core/sealpipe/doctor/vectors.json"
CHOSEN = re.findall(
    r"\S+",
    """
    base64_three-bytes base64_the-url-safe-alphabet base64_bits-set-after-one-byte
    base64_padding-left-out-after-one-byte base64url_two-bytes base64url_the-standard-alphabet
    base64url_bits-set-after-one-byte fields_one-field fields_controls-as-a-browser-writes-them
    fields_u-2028-del-and-slashes-as-they-are fields_a-lone-high-surrogate fields_a-member-twice
    fields_nan fields_no-key fragment_bare fragment_with-its-sign fragment_nothing-at-all
    fragment_the-sign-alone fragment_no-version fragment_version-2 fragment_31-bytes
    fragment_33-bytes fragment_the-standard-alphabet fragment_a-bit-set-after-the-last-byte
    tokens_of-a-content-key tokens_of-a-content-key-and-a-passcode
    tokens_a-passcode-is-used-as-typed tokens_an-empty-passcode keys_of-a-seed
    keys_of-a-seed-under-another-tag keys_of-a-custody-secret
    keys_of-a-custody-secret-under-another-tag keys_a-seed-of-31-bytes
    keys_an-empty-custody-secret seal-envelope_no-passcode seal-envelope_a-passcode
    seal-envelope_a-passcode-is-used-as-typed seal-envelope_an-empty-passcode
    envelope_no-passcode envelope_a-passcode envelope_a-passcode-is-used-as-typed
    envelope_many-blocks envelope_another-passcode envelope_the-passcode-left-out
    envelope_a-passcode-where-none-was-set envelope_the-first-bit-of-the-tag-flipped
    envelope_the-last-bit-of-the-ciphertext-flipped envelope_43-bytes
    envelope_an-empty-plaintext-has-44-bytes seal-box_a-submission seal-box_under-another-tag
    seal-box_to-a-compressed-point seal-box_to-the-point-0-0 box_a-submission
    box_a-wrapped-content-key-has-142-bytes box_opened-under-another-tag box_another-seed
    box_the-first-bit-of-the-tag-flipped box_version-2
    box_a-compressed-point-filled-up-with-zeros
""",
)

KEY = bytes(range(32))
PART = "1" + base64.urlsafe_b64encode(KEY).decode().rstrip("=")
LINKS: list[dict[str, Any]] = [
    {
        "kind": "links", "name": name, "expect": "success",
        "given": {"base": base, "short code": code, "key": KEY.hex()},
        "result": {
            "share link": f"https://links.example/{segment}#{PART}",
            "collect link": f"https://links.example/r/{segment}",
            "access link": f"https://links.example/r/{segment}#{PART}",
        },
    }
    for name, base, code, segment in (
        ("of a short code", "https://links.example", "Ab_3-x", "Ab_3-x"),
        ("a slash at the base's end", "https://links.example/", "Ab_3-x", "Ab_3-x"),
        ("a short code is opaque", "https://links.example", "a/b?c#d e%", "a%2Fb%3Fc%23d%20e%25"),
    )
] + [
    {
        "kind": "links", "name": name, "expect": "UsageError",
        "given": {"base": "https://links.example", "short code": code, "key": KEY.hex()},
    }
    for name, code in (("no short code", ""), ("a short code that climbs", ".."))
]  # fmt: skip

QUOTED = '[{"key":"k","value":"\\"\\\\\\n\\r\\t/\u00e9\U0001f511","type":"text"}]'
FIELDS = {
    "kind": "fields", "name": "quotes and line breaks, no other control", "expect": "success",
    "given": {"plaintext": QUOTED},
    "result": {"fields": [["k", '"\\\n\r\t/\u00e9\U0001f511', "text"]], "written again": QUOTED},
}  # fmt: skip


def row(vector: Vector) -> dict[str, Any]:
    """A vector as doctor runs it: its comment is the name, and a plaintext that is read is written
    again.
    """
    written = (
        {"written again": vector.given["plaintext"]}
        if vector.kind == "fields" and vector.result
        else {}
    )
    made = {
        "kind": vector.kind,
        "name": vector.comment,
        "expect": _expected(vector.expect),
        "given": vector.given,
    }
    return made | ({"result": vector.result | written} if vector.result else {})


def _expected(expect: str) -> str:
    part, _, reason = expect.partition(" ")
    if part in ("success", "usage"):
        return {"usage": "UsageError"}.get(part, part)
    return f"{part.capitalize()}Error {reason}"


def text() -> str:
    """The file: a vector a line."""
    made = make_vectors.vectors()
    rows = [*(row(made[name]) for name in CHOSEN), FIELDS, *LINKS]
    lines = ",\n".join(json.dumps(each, ensure_ascii=True) for each in rows)
    about = "made by tests/unit/wire/make_conformance.py; public test data, no secret"
    return f'{{"about": "{about}", "vectors": [\n{lines}\n]}}\n'


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
