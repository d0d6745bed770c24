"""Which token a vault wants: its challenge to a request without one."""

from __future__ import annotations

import re
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from sealpipe.plugin import NotConfiguredError

_PARAMETER: Final = re.compile(r'(?<![A-Za-z_])([A-Za-z_]+)\s*=\s*(?:"([^"]*)"|([^\s",]+))')
"""A name begins only where a word does: otherwise a long header takes minutes."""
_RESOURCE: Final = re.compile(r"https://[A-Za-z0-9.-]+(?::[0-9]+)?")
"""A resource, and nothing that could be read as the scope of another one as well."""
_GUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Challenge(NamedTuple):
    """The tenant of a vault (empty if unknown), and the resource that a token for it names."""

    tenant: str
    resource: str


def parse_challenge(header: str) -> Challenge | None:
    """Return the challenge in a WWW-Authenticate header; None if it is not one of a vault."""
    kind, _, rest = header.strip().partition(" ")
    if kind.lower() != "bearer":
        return None
    parameters = {name.lower(): quoted or plain for name, quoted, plain in _PARAMETER.findall(rest)}
    resource = parameters.get("resource") or parameters.get("scope", "").removesuffix("/.default")
    tenant = (
        _path(parameters.get("authorization") or parameters.get("authorization_uri", ""))
        .strip("/")
        .lower()
    )
    return (
        Challenge(tenant if _GUID.fullmatch(tenant) else "", resource.rstrip("/"))
        if resource
        else None
    )


def require_own_resource(challenge: Challenge, vault: str, tenant: str | None) -> str:
    """Return the resource.

    Raises NotConfiguredError unless it is the vault's own domain, and the tenant the login's.

    Otherwise a server could get a token that other vaults accept: a token for vault.azure.net goes
    to NAME.vault.azure.net and to nobody else.
    """
    host, resource = _host(vault), _host(challenge.resource)
    if not _RESOURCE.fullmatch(challenge.resource) or not (
        host == resource or host.endswith(f".{resource}")
    ):
        raise NotConfiguredError(
            f"the server at {host} wants a token for another service, which it does not get",
            remedy="check the vault's name, or the setting url",
        )
    if tenant and _GUID.fullmatch(tenant.lower()) and challenge.tenant not in ("", tenant.lower()):
        raise NotConfiguredError(
            f"the vault at {host} belongs to another tenant than the login",
            remedy="check the vault's name, and the setting tenant_id (AZURE_TENANT_ID)",
        )
    return challenge.resource


def _host(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").lower()
    except ValueError:
        return ""


def _path(url: str) -> str:
    try:
        return urlsplit(url).path
    except ValueError:
        return ""
