"""`sealpipe.wire` as a reader of the vectors in tests/wire/cctv/ (their form: its README.md)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from sealpipe.errors import SealpipeError, UsageError, WireError
from sealpipe.wire import encoding, envelope, fields, keys, link, sealed_box, tokens

Result = dict[str, Any]


class Header(dict[str, str]):
    """The header lines by name, and their values in the three forms that they have."""

    def hex(self, name: str) -> bytes:
        return bytes.fromhex(self[name])

    def json(self, name: str) -> Any:
        return json.loads(self[name]) if name in self else None


def parsed(raw: bytes) -> tuple[Header, bytes]:
    head, _, body = raw.partition(b"\n\n")
    lines = [line.partition(": ") for line in head.decode().split("\n")]
    header = Header({name: value for name, _, value in lines})
    assert len(header) == len(lines), "a header stands twice"
    return header, body


def again(write: Callable[[], object], what: object) -> None:
    """What was read is written as it stood. A refusal to write must not pass for one to read."""
    try:
        written = write()
    except SealpipeError as error:
        raise AssertionError("what was read is not written again") from error
    assert written == what


def base64(_: Header, body: bytes) -> Result:
    data = encoding.decode_base64(body.decode())
    again(lambda: encoding.encode_base64(data), body.decode())
    return {"bytes": data.hex()}


def base64url(_: Header, body: bytes) -> Result:
    data = encoding.decode_base64url(body.decode())
    again(lambda: encoding.encode_base64url(data), body.decode())
    return {"bytes": data.hex()}


def fragment(_: Header, body: bytes) -> Result:
    key = link.decode_fragment(body.decode())
    again(lambda: link.encode_fragment(key), body.decode().removeprefix("#"))
    return {"content key": key.hex()}


def open_envelope(header: Header, body: bytes) -> Result:
    return {"plaintext": envelope.open(header.hex("content key"), body.decode(), header.json("passcode")).decode()}


def seal_envelope(header: Header, body: bytes) -> Result:
    key, passcode = header.hex("content key"), header.json("passcode")
    return {"data": envelope.seal(key, body, passcode, salt=header.hex("salt"), iv=header.hex("iv"))}


def open_box(header: Header, body: bytes) -> Result:
    tag = header.json("tag")
    pair = keys.from_seed(header.hex("seed"), tag=tag)
    return {"payload": sealed_box.open(pair, body.decode(), tag=tag).hex()}


def seal_box(header: Header, body: bytes) -> Result:
    drawn = {name: header.hex(name) for name in ("ephemeral", "salt", "iv")}
    return {"data": sealed_box.seal(header.hex("public key"), body, tag=header.json("tag"), **drawn)}


def read_fields(_: Header, body: bytes) -> Result:
    array = fields.load(body)
    again(lambda: fields.dump(array), body)
    return {"fields": [[field.key, field.value, field.type] for field in array]}


def write_fields(_: Header, body: bytes) -> Result:
    def field(key: Any, value: Any, type: Any, **rest: Any) -> fields.Field:  # noqa: A002  # the member's own name
        language, filename = rest.pop(fields.LANGUAGE, None), rest.pop(fields.FILENAME, None)
        return fields.Field(key, value, type, language=language, filename=filename, extra=rest)

    return {"plaintext": fields.dump(field(**members) for members in json.loads(body)).decode()}


def derive_tokens(header: Header, _: bytes) -> Result:
    token = {"access token": tokens.access_token(header.hex("content key"))}
    return token | ({"verifier": tokens.passcode_verifier(header.json("passcode"))} if "passcode" in header else {})


def derive_keys(header: Header, _: bytes) -> Result:
    tag = header.json("tag")
    if "seed" in header:
        pair = keys.from_seed(header.hex("seed"), tag=tag)
    else:
        pair = keys.from_custody_secret(header.json("custody secret"), tag=tag)
    return {"scalar": pair.scalar.hex(), "public key": pair.public_key.hex()}


KINDS: Mapping[str, Callable[[Header, bytes], Result]] = {
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
JSON_RESULTS = {"plaintext", "fields"}


def verdict(call: Callable[[], Result]) -> tuple[str, Result]:
    """`success` and the results, or the part at fault and the reason."""
    try:
        return "success", call()
    except WireError as error:
        return f"{type(error).__name__.removesuffix('Error').lower()} {error.reason}", {}
    except UsageError:
        return "usage", {}


def read(raw: bytes) -> tuple[str, Result]:
    header, body = parsed(raw)
    return verdict(lambda: KINDS[header["kind"]](header, body))


def demanded(raw: bytes) -> tuple[str, Result]:
    """What the vector's own header says must come of it."""
    header, _ = parsed(raw)
    given = {"expect", "kind", "comment", "passcode", "tag", "seed", "custody secret", "ephemeral", "salt", "iv"}
    given |= {"public key"} if header["kind"] == "seal box" else set()
    given |= {"content key"} if header["kind"] != "fragment" else set()
    results = {name: header.json(name) if name in JSON_RESULTS else header[name] for name in header.keys() - given}
    return header["expect"], results
