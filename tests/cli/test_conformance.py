"""`sealpipe doctor --conformance`: it needs nothing, and notices whatever is broken in the wire
format.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from sealpipe.doctor import conformance
from support.parts import ROOT
from support.terminal import Terminal

WIRE = ROOT / "core/sealpipe/wire"

MUTANTS = {
    "another hash": ("tokens", "algorithm=SHA256()", "algorithm=SHA512()", "tokens"),
    "no salt": ("tokens", "salt=salt, info=info", 'salt=b"", info=info', "envelope"),
    "a content key's info": ("tokens", '"content": "content"', '"content": "contents"',
        "seal envelope"),
    "a passcode's info": ("tokens", '"content|"', '"content:"', "seal envelope"),
    "an access token's info": ("tokens", '"access"', '"token"', "tokens"),
    "a verifier's info": ("tokens", '"verify"', '"verifier"', "tokens"),
    "a custody secret's info": ("tokens", '"custody": "custody"', '"custody": "owner"', "keys"),
    "a scalar's info": ("tokens", "{tag}-ecdh-p256-scalar", "{tag}-ecdh-p256", "keys"),
    "a box's info": ("tokens", "{tag}-request-submission", "{tag}-submission", "seal box"),
    "a tag that is not used": ("tokens", "INFO[name].format(tag=tag)",
        'INFO[name].format(tag="svc")', "keys"),
    "a passcode that is trimmed": ("tokens", "_utf8(passcode)", "_utf8(passcode.strip())",
        "tokens"),
    "an empty passcode": ("tokens", "    if not passcode:", "    if passcode is None:", "tokens"),
    "a passcode that is not used": ("tokens", "if passcode is not None:", "if False:",
        "seal envelope"),
    "a short content key": ("tokens", "KEY_SIZE: Final = 32", "KEY_SIZE: Final = 31", "fragment"),
    "iv before salt": ("envelope", "buffer[:held] = salt + iv", "buffer[:held] = iv + salt",
        "seal envelope"),
    "a tag that nobody checks": (
        "envelope", "decryptor.finalize_with_tag(bytes(raw[-tokens.TAG_SIZE :]))", "pass",
        "envelope",
    ),
    "the same salt and iv always": ("envelope", "os.urandom(", "bytes(", "round trip"),
    "an envelope's last piece": ("envelope", "buffer[: held - whole] = buffer[whole:held]", "pass",
        "round trip"),
    "a version of fragments": ("link", 'FRAGMENT_VERSION = "1"', 'FRAGMENT_VERSION = "2"',
        "fragment"),
    "a missing key that is called damaged": ("link", '"missing-key"', '"malformed-key"',
        "fragment"),
    "a sign that is not stripped": ("link", '.removeprefix("#")', "", "fragment"),
    "a key of any length": ("link", "if key is None or len(key) != KEY_SIZE", "if key is None",
        "fragment"),
    "a short code that is not quoted": ("link", 'quote(short_code, safe="")', "short_code",
        "links"),
    "a short code that climbs": ("link", '("", ".", "..")', '("",)', "links"),
    "a collect link's path": ("link", '_join(base, "r", short_code)',
        '_join(base, "c", short_code)', "links"),
    "a base's slash": ("link", 'base.rstrip("/")', "base", "links"),
    "bits after the last byte": (
        "encoding",
        "if encode_base64url(data[len(data) // 3 * 3 :]) != text[len(data) // 3 * 4 :]:",
        "if False:", "base64url",
    ),
    "the standard alphabet in a link": (
        "encoding", 'rstrip(b"=").translate(_TO_URL)', 'rstrip(b"=")', "tokens",
    ),
    "bits after the last byte in base64": ("encoding", "!= raw[len(data) // 3 * 4 :]", "is None",
        "base64"),
    "a scalar that is reduced by n": ("keys", "% (GROUP_ORDER - 1) + 1", "% GROUP_ORDER", "keys"),
    "a scalar read backwards": ("keys", 'int.from_bytes(wide, "big")',
        'int.from_bytes(wide, "little")', "keys"),
    "compressed points are taken": ("keys", "if data[0] != 4:", "if False:", "box"),
    "compressed points are written": ("keys", "PublicFormat.UncompressedPoint",
        "PublicFormat.CompressedPoint", "keys"),
    "a box's version": ("sealed_box", "VERSION = 1", "VERSION = 2", "box"),
    "any version of a box": ("sealed_box", "if data[:1] and data[0] != VERSION:", "if False:",
        "box"),
    "a box's parts": ("sealed_box", "+ salt + iv", "+ iv + salt", "seal box"),
    "the same ephemeral key always": (
        "sealed_box", "ec.generate_private_key(ec.SECP256R1())", 'keys.private_key(b"\\1" * 32)',
        "round trip",
    ),
    "NaN": ("jsontext", 'raise _RejectedError("not-finite")', "return 0.0  # type: ignore",
        "fields"),
    "a member twice": ("jsontext", "if len(members) != len(pairs):", "if False:", "fields"),
    "half a surrogate pair": ("jsontext", "_SURROGATE_ESCAPE.search(text) is not None", "False",
        "fields"),
    "controls that are not escaped": ("encoding", r'bytes(set(range(0x20)) - set(b"\n\r\t"))',
        'b""', "fields"),
    "quotes that are not escaped": ("encoding", r"""(b'"', b'\\"'), """, "", "fields"),
    "a module that does not load": ("tokens", "def access_token", "raise OSError\ndef access_token",
        ""),
}  # fmt: skip


@pytest.mark.parametrize("name", MUTANTS)
def test_each_primitive_that_breaks_is_noticed(tmp_path: Path, name: str) -> None:
    module, old, new, kind = MUTANTS[name]
    shutil.copytree(ROOT / "core/sealpipe", tmp_path / "sealpipe")  # with what is compiled
    file = tmp_path / f"sealpipe/wire/{module}.py"
    source = file.read_text()
    assert old in source
    file.write_text(source.replace(old, new))
    command = [
        sys.executable,
        "-P",
        "-B",
        "-m",
        "sealpipe",
        "doctor",
        "--conformance",
        "--output",
        "json",
    ]
    environ = {"PYTHONPATH": str(tmp_path), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    done = subprocess.run(
        command, capture_output=True, text=True, env=environ, cwd=tmp_path, timeout=60, check=False
    )
    if not kind:
        assert done.returncode == 1
        return
    assert done.returncode == 13, done
    failed = [each for each in json.loads(done.stdout)["checks"] if each["status"] == "fail"]
    assert f"vector {kind}" in {each["check"] for each in failed}, failed
    assert all(each["exit_code"] == 13 and "install sealpipe" in each["remedy"] for each in failed)


def test_it_needs_no_setting_no_credential_and_no_home(bare: Terminal) -> None:
    done = bare.sealpipe("doctor", "--conformance", HOME=None)
    assert (done.code, done.err) == (0, "")
    assert {line.split()[0] for line in done.out.splitlines()} == {"ok"}
    assert "cryptography" in done.out
    assert "OpenSSL" in done.out
    broken = bare.sealpipe(
        "doctor", "--conformance", SEALPIPE_CONFIG="/nowhere", SEALPIPE_BASE_URL="banana"
    )
    assert (broken.code, broken.out) == (0, done.out)


def test_json_has_the_shape_of_every_report(bare: Terminal) -> None:
    told = bare.sealpipe("doctor", "--conformance", "--output", "json").json
    assert list(told) == ["schema", "checks"]
    counts = {each["check"]: each["detail"] for each in told["checks"]}
    assert counts["vectors envelope"] == "11 of 11"
    assert (
        sum(int(detail.split()[0]) for check, detail in counts.items() if check != "cryptography")
        >= 65
    )


def test_it_opens_no_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a socket")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    assert {each.status for each in conformance.check_conformance()} == {"ok"}


@pytest.mark.parametrize("words", [["gen"], ["--roundtrip"]])
def test_it_stands_alone(bare: Terminal, words: list[str]) -> None:
    done = bare.sealpipe("doctor", "--conformance", *words)
    assert (done.code, done.out) == (2, "")
    assert "--conformance excludes NAME and --roundtrip" in done.err


def test_a_kind_without_vectors_does_not_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    some = [each for each in conformance.load_vectors() if each["kind"] != "box"]
    monkeypatch.setattr(conformance, "load_vectors", lambda: some)
    assert [each.check for each in conformance.check_conformance() if each.error] == ["vector box"]


def test_each_failing_vector_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every one counts: with another result, or another verdict, it fails."""
    honest = conformance.load_vectors()
    lying = [
        {**each, "result": dict.fromkeys(each["result"], "x")}
        if "result" in each
        else {**each, "expect": "success"}
        for each in honest
    ]
    monkeypatch.setattr(conformance, "load_vectors", lambda: lying)
    failed = [each.detail for each in conformance.check_conformance() if each.error]
    assert len(failed) == len(honest)
    assert all(each["name"] in " ".join(failed) for each in honest)
