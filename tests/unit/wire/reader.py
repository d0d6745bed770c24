"""`sealpipe.wire` as a reader of the vectors in tests/unit/wire/vectors/ (their form: its
README.md).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from sealpipe.errors import SealpipeError, UsageError, WireError
from sealpipe.wire import encoding, envelope, fields, keys, link, sealed_box, tokens
from unit.wire import make_vectors

FOLDER = make_vectors.FOLDER
Vector = dict[str, Any]
Result = dict[str, Any]


class Given(dict[str, Any]):
    """The inputs of a vector by name."""

    def hex(self, name: str) -> bytes:
        return bytes.fromhex(self[name])


def vectors() -> dict[str, Vector]:
    """Every vector of the folder by its name."""
    found: dict[str, Vector] = {}
    for file in sorted(FOLDER.glob("*.jsonl")):
        for line in file.read_text("ascii").splitlines():
            vector = json.loads(line, object_pairs_hook=once)
            assert make_vectors.stem(vector["kind"]) == file.stem, (
                f"{vector['name']} stands in {file.name}"
            )
            assert vector["name"] not in found, f"two vectors are called {vector['name']}"
            found[vector["name"]] = vector
    return found


def once(members: list[tuple[str, Any]]) -> dict[str, Any]:
    read = dict(members)
    assert len(read) == len(members), "an object has a member twice"
    return read


def again(write: Callable[[], object], what: object) -> None:
    """What was read is written as it stood. A refusal to write must not pass for one to read."""
    try:
        written = write()
    except SealpipeError as error:
        raise AssertionError("what was read is not written again") from error
    assert written == what


def base64(given: Given) -> Result:
    data = encoding.decode_base64(given["text"])
    again(lambda: encoding.encode_base64(data), given["text"])
    return {"bytes": data.hex()}


def base64url(given: Given) -> Result:
    data = encoding.decode_base64url(given["text"])
    again(lambda: encoding.encode_base64url(data), given["text"])
    return {"bytes": data.hex()}


def fragment(given: Given) -> Result:
    key = link.decode_fragment(given["fragment"])
    again(lambda: link.encode_fragment(key), given["fragment"].removeprefix("#"))
    return {"content key": key.hex()}


def open_envelope(given: Given) -> Result:
    return {
        "plaintext": envelope.open(
            given.hex("content key"), given["data"], given.get("passcode")
        ).decode()
    }


def seal_envelope(given: Given) -> Result:
    drawn = {name: given.hex(name) for name in ("salt", "iv")}
    key, plaintext = given.hex("content key"), given["plaintext"].encode()
    return {"data": envelope.seal(key, plaintext, given.get("passcode"), **drawn)}


def open_box(given: Given) -> Result:
    pair = keys.from_seed(given.hex("seed"), tag=given["tag"])
    return {"payload": sealed_box.open(pair, given["data"], tag=given["tag"]).hex()}


def seal_box(given: Given) -> Result:
    drawn = {name: given.hex(name) for name in ("ephemeral", "salt", "iv")}
    return {
        "data": sealed_box.seal(
            given.hex("public key"), given.hex("payload"), tag=given["tag"], **drawn
        )
    }


def read_fields(given: Given) -> Result:
    data = given.hex("bytes") if "bytes" in given else given["plaintext"].encode()
    array = fields.load(data)
    again(lambda: fields.dump(array), data)
    return {"fields": [[field.key, field.value, field.type] for field in array]}


def write_fields(given: Given) -> Result:
    def field(key: Any, value: Any, type: Any, **rest: Any) -> fields.Field:  # noqa: A002
        language, filename = rest.pop(fields.LANGUAGE, None), rest.pop(fields.FILENAME, None)
        return fields.Field(key, value, type, language=language, filename=filename, extra=rest)

    return {
        "plaintext": fields.dump(
            field(**members) for members in json.loads(given["members"])
        ).decode()
    }


def derive_tokens(given: Given) -> Result:
    token = {"access token": tokens.access_token(given.hex("content key"))}
    return token | (
        {"verifier": tokens.passcode_verifier(given["passcode"])} if "passcode" in given else {}
    )


def derive_keys(given: Given) -> Result:
    if "seed" in given:
        pair = keys.from_seed(given.hex("seed"), tag=given["tag"])
    else:
        pair = keys.from_custody_secret(given["custody secret"], tag=given["tag"])
    return {"scalar": pair.scalar.hex(), "public key": pair.public_key.hex()}


KINDS: Mapping[str, Callable[[Given], Result]] = {
    "base64": base64,
    "base64url": base64url,
    "fragment": fragment,
    "envelope": open_envelope,
    "seal envelope": seal_envelope,
    "box": open_box,
    "seal box": seal_box,
    "fields": read_fields,
    "write fields": write_fields,
    "tokens": derive_tokens,
    "keys": derive_keys,
}


def verdict(call: Callable[[], Result]) -> tuple[str, Result]:
    """`success` and the results, or the part at fault and the reason."""
    try:
        return "success", call()
    except WireError as error:
        return f"{type(error).__name__.removesuffix('Error').lower()} {error.reason}", {}
    except UsageError:
        return "usage", {}


def read(vector: Vector) -> tuple[str, Result]:
    """What comes of the vector."""
    return verdict(lambda: KINDS[vector["kind"]](Given(vector["given"])))


def expected(vector: Vector) -> tuple[str, Result]:
    """What the vector says must come of it."""
    return vector["expect"], vector.get("result", {})
