"""A fake of Azure Key Vault and of Microsoft's login, written from their public REST interfaces.

Secrets, versions, tags and deleted secrets of a vault, version 7.4; client secrets and assertions
of the tenant's token endpoint; the token service of a virtual machine. Microsoft's own client
accepts it (test_official_client.py).
"""

from __future__ import annotations

import itertools
import re
import threading
import time
from typing import Any

from support.ci_jobs import job_token
from support.fake_web import Asked, FakeWeb, Reply

VAULT = "acme"
HOST = f"{VAULT}.vault.azure.net"
LOGIN = "login.microsoftonline.com"
TENANT = "11111111-2222-3333-4444-555555555555"
OTHER_TENANT = "99999999-2222-3333-4444-555555555555"
CLIENT = "aaaaaaaa-2222-3333-4444-555555555555"
SECRET = "Canary-client-secret-4e"
EXPIRED = "Canary-expired-secret-4e"
FORBIDDEN = "forbidden"
"""A secret that no login may access."""
TOKEN = "Canary-token-"
"""How every access token begins."""
AUDIENCE = "api://AzureADTokenExchange"

_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"


class Held:
    """A secret: its versions in order, each what the vault answers about it."""

    def __init__(self) -> None:
        self.versions: list[dict[str, Any]] = []
        self.deleted = False


class RefusalError(Exception):
    """An error of the vault."""

    def __init__(self, status: int, code: str, inner: str = "") -> None:
        super().__init__(code)
        error: dict[str, Any] = {"code": code, "message": "canary in a message"}
        self.reply = Reply(
            status, {"error": {**error, **({"innererror": {"code": inner}} if inner else {})}}
        )


class FakeKeyVault(FakeWeb):
    """One vault and one tenant; `secrets` by name.

    `tokens` are the resources of those that were issued.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.secrets: dict[str, Held] = {}
        self.tokens: dict[str, str] = {}
        self.tenant = TENANT
        """Of the vault."""
        self.resource = ""
        """That the challenge names; empty for the vault's own."""
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    def hold(self, name: str, *values: str, **members: Any) -> Held:
        """Make a secret with these versions."""
        held = self.secrets[name] = Held()
        for value in values:
            self.add(name, value, **members)
        return held

    def add(self, name: str, value: str, **members: Any) -> dict[str, Any]:
        """Add a version, as somebody else does."""
        version = f"{next(self._numbers):032x}"
        bundle = {"value": value, "version": version, "attributes": {"enabled": True}, **members}
        self.secrets.setdefault(name, Held()).versions.append(bundle)
        return bundle

    def newest(self, name: str) -> str:
        value: str = self.secrets[name].versions[-1]["value"]
        return value

    def tags(self, name: str) -> dict[str, str]:
        return dict(self.secrets[name].versions[-1].get("tags") or {})

    def answer(self, asked: Asked) -> Reply:
        with self._lock:
            try:
                return self._answer(asked)
            except RefusalError as refusal:
                return refusal.reply

    def _answer(self, asked: Asked) -> Reply:
        match asked.parts:
            case [tenant, "v2.0", ".well-known", "openid-configuration"]:
                return self._discover(tenant)
            case [_, "oauth2", "v2.0", "token"]:
                return self._log_in(asked.members)
            case ["metadata", "identity", "oauth2", "token"]:
                assert asked.headers["metadata"] == "true"
                token = self.issue(asked.query["resource"])
                return Reply(
                    200, {"access_token": token, "expires_in": "86400", "token_type": "Bearer"}
                )
        if (challenge := self._challenge(asked)) is not None:
            return challenge
        assert asked.query["api-version"] == "7.4" or asked.headers["user-agent"].startswith(
            "azsdk"
        )
        host = asked.headers["host"]
        match asked.method, asked.parts:
            case "GET", ["secrets"]:
                return Reply(
                    200,
                    {"value": [{"id": f"https://{host}/secrets/{name}"} for name in self.secrets]},
                )
            case "GET", ["secrets", name, *version]:
                return Reply(200, self._get(host, name, "".join(version)))
            case "PUT", ["secrets", name]:
                return Reply(200, self._put(host, name, asked.json))
            case "PATCH", ["secrets", name, *version]:
                found = self._find(name, "".join(version))
                found["tags"] = asked.json["tags"]
                return Reply(200, _bundle(host, name, found))
            case "GET", ["deletedsecrets", name] if (
                name in self.secrets and self.secrets[name].deleted
            ):
                return Reply(200, {"recoveryId": f"https://{host}/deletedsecrets/{name}"})
        raise RefusalError(404, "SecretNotFound")

    # Login

    def issue(self, resource: str) -> str:
        token = f"{TOKEN}{next(self._numbers)}"
        self.tokens[token] = resource
        return token

    def _discover(self, tenant: str) -> Reply:
        if tenant not in (TENANT, OTHER_TENANT):
            return _refuse("invalid_tenant", 90002)
        root = f"{self.base_url if self._scheme == 'https' else f'https://{LOGIN}'}/{tenant}"
        endpoints = {f"{name}_endpoint": f"{root}/oauth2/v2.0/{path}" for name, path in _ENDPOINTS}
        return Reply(200, {"issuer": f"{root}/v2.0", **endpoints})

    def _log_in(self, form: dict[str, Any]) -> Reply:
        assert form["grant_type"] == "client_credentials"
        resource = form["scope"].removesuffix("/.default")
        assert resource != form["scope"]
        if form["client_id"] != CLIENT:
            return _refuse("unauthorized_client", 700016)
        if "client_assertion" in form:
            assert form["client_assertion_type"] == _ASSERTION
            good, code = form["client_assertion"] == job_token(AUDIENCE), 700213
        else:
            good, code = (
                form["client_secret"] == SECRET,
                7000222 if form["client_secret"] == EXPIRED else 7000215,
            )
        if not good:
            return _refuse("invalid_client", code)
        return Reply(
            200, {"token_type": "Bearer", "expires_in": 3599, "access_token": self.issue(resource)}
        )

    def _challenge(self, asked: Asked) -> Reply | None:
        """What a request without a token for this vault gets."""
        host = asked.headers["host"].partition(":")[0]
        resource = self.resource or f"https://{host.partition('.')[2] if host == HOST else host}"
        kind, _, token = asked.headers.get("authorization", "").partition(" ")
        if kind == "Bearer" and self.tokens.get(token) == resource:
            return None
        assert asked.body in (b"", b"{}"), "a request without a token has no content"
        header = f'Bearer authorization="https://{LOGIN}/{self.tenant}", resource="{resource}"'
        return Reply(401, {"error": {"code": "Unauthorized"}}, {"www-authenticate": header})

    # The vault

    def _find(self, name: str, version: str) -> dict[str, Any]:
        if name == FORBIDDEN:
            raise RefusalError(403, "Forbidden", "ForbiddenByRbac")
        held = self.secrets.get(name)
        found = [] if held is None or held.deleted else held.versions
        matching = [each for each in found if version in ("", each["version"])]
        if not matching:
            raise RefusalError(404, "SecretNotFound")
        return matching[-1]

    def _get(self, host: str, name: str, version: str) -> dict[str, Any]:
        found = self._find(name, version)
        if not found["attributes"]["enabled"]:
            raise RefusalError(403, "Forbidden", "SecretDisabled")
        return _bundle(host, name, found)

    def _put(self, host: str, name: str, members: dict[str, Any]) -> dict[str, Any]:
        if name in self.secrets and self.secrets[name].deleted:
            raise RefusalError(409, "Conflict", "ObjectIsDeletedButRecoverable")
        tags = members.get("tags") or {}
        if (
            not re.fullmatch("[0-9A-Za-z-]{1,127}", name)
            or not 0 < len(members["value"].encode()) <= 25600
        ):
            raise RefusalError(400, "BadParameter")
        if len(tags) > 15 or any(len(text) > 256 for tag in tags.items() for text in tag):
            raise RefusalError(400, "BadParameter")
        content = {"contentType": members["contentType"]} if members.get("contentType") else {}
        return _bundle(host, name, self.add(name, members["value"], tags=tags, **content))


def _bundle(host: str, name: str, version: dict[str, Any]) -> dict[str, Any]:
    shown = {key: value for key, value in version.items() if key != "version"}
    shown["attributes"] = {
        **version["attributes"],
        "created": int(time.time()),
        "recoveryLevel": "Recoverable",
    }
    return {**shown, "id": f"https://{host}/secrets/{name}/{version['version']}"}


def _refuse(code: str, number: int) -> Reply:
    description = f"AADSTS{number}: canary in a description"
    return Reply(400, {"error": code, "error_description": description, "error_codes": [number]})


_ENDPOINTS = (
    ("authorization", "authorize"),
    ("token", "token"),
    ("device_authorization", "devicecode"),
)
