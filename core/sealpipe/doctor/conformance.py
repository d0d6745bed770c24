"""Test this installation against the wire format's vectors.

Fixed inputs with the reference's results.

`vectors.json` has for each vector: kind, name, expected outcome (`success`, or class and reason of
the refusal), inputs and results. Nothing in it is secret or used anywhere else. No network,
credential or file is needed. Specification: Client-side encryption, "Client checks".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from importlib.resources import files
from typing import Any, Final

from cryptography import __version__
from cryptography.hazmat.backends.openssl import backend

from sealpipe.doctor.findings import Finding, report_failure, report_ok
from sealpipe.errors import UsageError, WireError
from sealpipe.wire import encoding, envelope, fields, keys, link, sealed_box, tokens

VectorInput = Mapping[str, Any]
Result = dict[str, Any]

ROUNDS: Final = 8
"""How often a value is sealed and opened: the random bytes must differ each time."""
_KEY: Final = bytes(range(32))
_REMEDY: Final = (
    "do not share with this installation: reinstall sealpipe and cryptography, and report the "
    "problem"
)


def check_conformance() -> Iterator[Finding]:
    """Yield a finding for each kind of vector that passes, and one for each vector that fails."""
    yield report_ok("cryptography", _describe_library())
    by_kind: dict[str, list[VectorInput]] = {kind: [] for kind in _KINDS}
    for vector in load_vectors():
        by_kind[vector["kind"]].append(vector)
    for kind, group in by_kind.items():
        outcomes = [(vector["name"], _find_problem(vector)) for vector in group]
        yield from _report_outcomes(
            kind, outcomes or [("all", "no vector of this kind is installed")]
        )
    yield from _report_outcomes("round trip", _run_round_trips())


def load_vectors() -> list[VectorInput]:
    """Return the vectors, in the order of their file."""
    text = files("sealpipe.doctor").joinpath("vectors.json").read_text(encoding="utf-8")
    vectors: list[VectorInput] = json.loads(text)["vectors"]
    return vectors


def _report_outcomes(kind: str, outcomes: list[tuple[str, str]]) -> Iterator[Finding]:
    failures = [(name, problem) for name, problem in outcomes if problem]
    for name, problem in failures:
        yield report_failure(
            f"vector {kind}", WireError("not-conformant", f"{name}: {problem}", remedy=_REMEDY)
        )
    if not failures:
        yield report_ok(f"vectors {kind}", f"{len(outcomes)} of {len(outcomes)}")


def _find_problem(vector: VectorInput) -> str:
    """Return how a vector's outcome differs from the expected one; empty if it does not."""
    actual, result = _run_case(lambda: _KINDS[vector["kind"]](vector["given"]))
    if actual != vector["expect"]:
        return f"{actual}, and must be {vector['expect']}"
    differing = sorted(
        name for name, value in vector.get("result", {}).items() if result.get(name) != value
    )
    return f"{', '.join(differing)}: not the reference's" if differing else ""


def _run_case(call: Callable[[], Result]) -> tuple[str, Result]:
    try:
        return "success", call()
    except WireError as error:
        return f"{type(error).__name__} {error.reason}", {}
    except UsageError:
        return "UsageError", {}
    except Exception as error:  # noqa: BLE001 - a broken installation may raise anything
        return f"raised an unexpected {type(error).__name__}", {}


def _run_round_trips() -> list[tuple[str, str]]:
    """Seal and open with random salt, iv and ephemeral key, which no fixed vector covers."""
    plaintext = b'[{"key":"Password","value":"correct horse","type":"password"}]'
    cases: Mapping[str, tuple[Callable[[], str], Callable[[str], bytes]]] = {
        "envelope": (
            lambda: envelope.seal(_KEY, plaintext),
            lambda data: envelope.open(_KEY, data),
        ),
        "envelope in pieces": (
            lambda: _seal_in_chunks(plaintext),
            lambda data: envelope.open(_KEY, data)[-len(plaintext) :],
        ),
        "envelope with passcode": (
            lambda: envelope.seal(_KEY, plaintext, "hunter2"),
            lambda data: envelope.open(_KEY, data, "hunter2"),
        ),
        "sealed box": (
            lambda: sealed_box.seal(keys.from_seed(_KEY).public_key, plaintext),
            lambda data: sealed_box.open(keys.from_seed(_KEY), data),
        ),
    }

    def find_problem(make: Callable[[], str], open_: Callable[[str], bytes]) -> str:
        sealed: list[str] = []

        def call() -> Result:
            sealed.extend(make() for _ in range(ROUNDS))
            return {"same": [open_(each) for each in sealed] == [plaintext] * ROUNDS}

        verdict, result = _run_case(call)
        if verdict != "success" or not result["same"]:
            return (
                verdict if verdict != "success" else "the opened value differs from the sealed one"
            )
        heads = {encoding.decode_base64(each)[:_HEAD_SIZE] for each in sealed}
        return "" if len(heads) == ROUNDS else "the same random bytes were drawn twice"

    return [(name, find_problem(*case)) for name, case in cases.items()]


def _seal_in_chunks(plaintext: bytes) -> str:
    """Seal as a large share is sealed.

    In chunks of odd sizes, larger than what is encrypted at a time.
    """
    out = bytearray()
    envelope.seal_chunks(_KEY, (b" " * 100_001, b"", b" " * 7, plaintext), out=out)
    return out.decode()


_HEAD_SIZE: Final = 28
"""Bytes at the start that are random: an envelope's salt and iv, or most of a box's ephemeral
key.
"""


def _describe_library() -> str:
    return f"{__version__}, {backend.openssl_version_text()}"


def _decode_fragment(vector: VectorInput) -> Result:
    return {"content key": link.decode_fragment(vector["fragment"]).hex()}


def _make_links(vector: VectorInput) -> Result:
    base, code, key = vector["base"], vector["short code"], bytes.fromhex(vector["key"])
    return {
        "share link": link.share_link(base, code, key),
        "collect link": link.collect_link(base, code),
        "access link": link.access_link(base, code, key),
    }


def _seal_envelope(vector: VectorInput) -> Result:
    salt, iv = bytes.fromhex(vector["salt"]), bytes.fromhex(vector["iv"])
    key, plaintext = bytes.fromhex(vector["content key"]), vector["plaintext"].encode()
    return {"data": envelope.seal(key, plaintext, vector.get("passcode"), salt=salt, iv=iv)}


def _open_envelope(vector: VectorInput) -> Result:
    key = bytes.fromhex(vector["content key"])
    return {"plaintext": envelope.open(key, vector["data"], vector.get("passcode")).decode()}


def _derive_keys(vector: VectorInput) -> Result:
    if "seed" in vector:
        pair = keys.from_seed(bytes.fromhex(vector["seed"]), tag=vector["tag"])
    else:
        pair = keys.from_custody_secret(vector["custody secret"], tag=vector["tag"])
    return {"scalar": pair.scalar.hex(), "public key": pair.public_key.hex()}


def _seal_box(vector: VectorInput) -> Result:
    randomness = {name: bytes.fromhex(vector[name]) for name in ("ephemeral", "salt", "iv")}
    public_key, payload = bytes.fromhex(vector["public key"]), bytes.fromhex(vector["payload"])
    return {"data": sealed_box.seal(public_key, payload, tag=vector["tag"], **randomness)}


def _open_box(vector: VectorInput) -> Result:
    pair = keys.from_seed(bytes.fromhex(vector["seed"]), tag=vector["tag"])
    return {"payload": sealed_box.open(pair, vector["data"], tag=vector["tag"]).hex()}


def _derive_tokens(vector: VectorInput) -> Result:
    derived = {"access token": tokens.access_token(bytes.fromhex(vector["content key"]))}
    return derived | (
        {"verifier": tokens.passcode_verifier(vector["passcode"])} if "passcode" in vector else {}
    )


def _read_fields(vector: VectorInput) -> Result:
    loaded = fields.load(vector["plaintext"].encode())
    written: str | None = None
    with suppress(WireError):  # an error of sealing must not count as an error of opening
        written = fields.dump(loaded).decode()
    return {
        "fields": [[each.key, each.value, each.type] for each in loaded],
        "written again": written,
    }


_KINDS: Final[Mapping[str, Callable[[VectorInput], Result]]] = {
    "base64": lambda vector: {"bytes": encoding.decode_base64(vector["text"]).hex()},
    "base64url": lambda vector: {"bytes": encoding.decode_base64url(vector["text"]).hex()},
    "fields": _read_fields,
    "fragment": _decode_fragment,
    "links": _make_links,
    "tokens": _derive_tokens,
    "keys": _derive_keys,
    "seal envelope": _seal_envelope,
    "envelope": _open_envelope,
    "seal box": _seal_box,
    "box": _open_box,
}
