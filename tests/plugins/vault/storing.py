"""Storing as the core does it, and what is there then, by the API itself."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from typing import Any

from sealpipe.errors import PluginError
from sealpipe.plugin import Mode, Secret, SinkField, WriteResult
from sealpipe.reference import parse
from sealpipe.registry import Registry
from sealpipe.registry.sinks import write_fields
from support.backends import opened, resolved
from support.openbao import Bao


def place(mount: str = "secret") -> str:
    """Where nothing is yet."""
    return f"{mount}/storing/{secrets.token_hex(6)}"


def put(
    registry: Registry,
    body: str,
    values: Mapping[str, str | bytes],
    mode: Mode = "create",
    marker: str = "m1",
) -> WriteResult:
    """Store some values."""
    locator = registry.locate(parse(f"vault:{body}"), "sink")
    return write_fields(
        registry,
        "vault",
        locator,
        [SinkField(key, Secret(each)) for key, each in values.items()],
        mode,
        marker,
    )


def refusal(
    registry: Registry,
    body: str,
    values: Mapping[str, str | bytes],
    mode: Mode = "create",
    marker: str = "m1",
) -> PluginError:
    """How storing ends where it does not succeed."""
    try:
        receipt = put(registry, body, values, mode, marker)
    except PluginError as error:
        return error
    raise AssertionError(receipt)


def values(registry: Registry, *texts: str) -> list[str]:
    """The values of some references."""
    return [opened(field).decode() for field in resolved(registry, *texts)]


def newest(bao: Bao, body: str, **how: str) -> Any:
    """The keys that are there."""
    return bao.call("GET", body.replace("/", "/data/", 1), **how)["data"]


def metadata(bao: Bao, body: str, **how: str) -> Any:
    """The key's metadata."""
    return bao.call("GET", body.replace("/", "/metadata/", 1), **how)


def marks(bao: Bao, body: str) -> list[str]:
    """The submissions that are marked there, oldest first."""
    return str((metadata(bao, body)["custom_metadata"] or {}).get("sealpipe", "")).split()


def versions(bao: Bao, body: str) -> int:
    """How many versions were ever made."""
    return int(metadata(bao, body)["current_version"])


def rights(bao: Bao, **capabilities: str) -> str:
    """A token with these capabilities, by the part of the API: data, metadata; `kv1` is the engine
    of that name.
    """
    paths = {
        "data": "secret/data/storing/*",
        "metadata": "secret/metadata/storing/*",
        "kv1": "kv1/storing/*",
    }
    rules = [
        f'path "{paths[part]}" {{ capabilities = {json.dumps(words.split())} }}'
        for part, words in capabilities.items()
    ]
    name = f"storing-{secrets.token_hex(4)}"
    bao.call("PUT", f"sys/policies/acl/{name}", {"policy": "\n".join(rules)})
    return bao.token(name)
