"""A fake of Infisical's API, written from its public reference: raw secrets (v3), logins of machine
identities.

Paths, parameters and members are those of the reference. It removes white space from the ends of
values, refuses to create what exists, answers a change with an `approval` where a policy wants one,
refuses an expired token with 403, and replaces a secret's whole metadata, as Infisical does.
Infisical's own SDK, which tests run against it, is the proof.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from support.fake_web import Asked, FakeWeb, Reply

PROJECT, SLUG = "3c90c3cc-0d44-4b50-8888-8dd25736052a", "backend-x-1y2z"
CLIENT_ID, CLIENT_SECRET = "6b579c00-5c85-4b44-aabe-f8a000000001", "Wq5tUz1oXe6gHi2rBy0fNa"
IDENTITY = "6b579c00-5c85-4b44-aabe-f8a000000002"
TOKEN = "eyQ9c.Zk3xQx0Vn8Jw7bWnT4vK.p9sLdmR3cYh8"
_REFERENCE = re.compile(r"\$\{(?:([a-z0-9_-]+)\.)?((?:[A-Za-z0-9_-]+\.)*)([A-Za-z0-9_]+)\}")
_NOW = "2026-11-23T12:00:00.000Z"

Place = tuple[str, str]
"""An environment and a folder of the one project."""


@dataclass
class Kept:
    """A secret as it is stored."""

    value: str
    version: int = 1
    comment: str = ""
    hidden: bool = False
    metadata: list[dict[str, Any]] = field(default_factory=list)


class FakeInfisical(FakeWeb):
    """One project: secrets by environment and folder, the imports of each, and what an identity may
    not do.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.folders: dict[Place, dict[str, Kept]] = {("dev", "/"): {}}
        self.imports: dict[Place, list[Place]] = {}
        self.tokens = {TOKEN}
        self.expired: set[str] = set()
        self.identities: dict[str, str] = {}
        self.denied: set[Place] = set()
        self.foreign = {"other-project"}
        self.approval = False
        self.reads_only = False
        self.revoked: list[str] = []
        self._numbers = itertools.count()

    def folder(self, environment: str, path: str = "/", **secrets: str) -> dict[str, Kept]:
        """Make a folder with these secrets."""
        self.folders[environment, path] = {name: Kept(value) for name, value in secrets.items()}
        return self.folders[environment, path]

    def answer(self, asked: Asked) -> Reply:
        match asked.method, asked.parts:
            case "GET", ["api", "status"]:
                return Reply(200, {"message": "Ok"})
            case "POST", ["api", "v1", "auth", ("universal-auth" | "oidc-auth") as method, "login"]:
                return self._log_in(method, asked.json)
            case "POST", ["api", "v1", "auth", "token", "revoke"]:
                self.revoked.append(asked.json["accessToken"])
                self.tokens.discard(asked.json["accessToken"])
                return Reply(200, {"message": "Successfully revoked access token"})
        token = asked.headers.get("authorization", "").removeprefix("Bearer ")
        if token in self.expired:
            return _error(403, "TokenError", "Your token has expired. Please re-authenticate.")
        if token not in self.tokens:
            return _error(401, "UnauthorizedError", "Token is not valid")
        if asked.parts[:4] == ["api", "v3", "secrets", "raw"]:
            return self._secrets(asked, asked.parts[4:])
        return _error(404, "NotFound", "no such route")

    def _secrets(self, asked: Asked, name: list[str]) -> Reply:
        query = asked.query if asked.method == "GET" else asked.json
        slug = query.get("workspaceSlug" if asked.method == "GET" else "projectSlug")
        if slug in self.foreign:
            return _error(
                403, "ForbiddenRequestError", "The identity is not a member of the project"
            )
        if query.get("workspaceId") != PROJECT and slug != SLUG:
            return _error(404, "NotFound", "Project not found")
        place = (query["environment"], query.get("secretPath", "/").rstrip("/") or "/")
        if place in self.denied or (self.reads_only and asked.method != "GET"):
            return _error(403, "PermissionDenied", "You are not allowed to read on secrets")
        match asked.method, name:
            case "GET", []:
                return Reply(200, self._list(place, asked.query))
            case "GET", [key] if key in self.folders.get(place, {}):
                return Reply(200, {"secret": self._show(place, key, asked.query)})
            case (("POST" | "PATCH"), [key]):
                return self._write(asked, place, key)
            case "DELETE", [key] if key in self.folders.get(place, {}):
                shown = self._show(place, key, {})
                self.folders[place].pop(key)
                return Reply(200, {"secret": shown})
        return _error(404, "NotFound", "Secret not found")

    def _list(self, place: Place, query: Mapping[str, str]) -> dict[str, Any]:
        imported = self.imports.get(place, []) if query.get("include_imports") == "true" else []
        return {
            "secrets": [self._show(place, key, query) for key in self.folders.get(place, {})],
            "imports": [
                {
                    "environment": each[0],
                    "secretPath": each[1],
                    "folderId": "f1",
                    "secrets": [self._show(each, key, query) for key in self.folders[each]],
                }
                for each in imported
            ],
        }

    def _show(self, place: Place, key: str, query: Mapping[str, str]) -> dict[str, Any]:
        kept = self.folders[place][key]
        value = (
            self._expand(place, kept.value)
            if query.get("expandSecretReferences") == "true"
            else kept.value
        )
        return {
            "id": f"id-of-{key}",
            "_id": f"id-of-{key}",
            "workspace": PROJECT,
            "environment": place[0],
            "secretPath": place[1],
            "version": kept.version,
            "type": "shared",
            "secretKey": key,
            "secretValue": "<hidden-by-infisical>" if kept.hidden else value,
            "secretValueHidden": kept.hidden,
            "secretComment": kept.comment,
            "secretMetadata": kept.metadata,
            "createdAt": _NOW,
            "updatedAt": _NOW,
            "tags": [],
        }

    def _expand(self, place: Place, value: str) -> str:
        def expand(match: re.Match[str]) -> str:
            folder = "/" + match[2].rstrip(".").replace(".", "/")
            where = (match[1], folder) if match[1] else place
            found = self.folders.get(where, {}).get(match[3])
            return self._expand(where, found.value) if found else match[0]

        return _REFERENCE.sub(expand, value)

    def _write(self, asked: Asked, place: Place, key: str) -> Reply:
        given, secrets = asked.json, self.folders.get(place)
        if secrets is None:
            return _error(404, "NotFound", "Folder not found")
        if asked.method == "POST" and key in secrets:
            return _error(400, "BadRequest", "Secret already exist")
        if asked.method == "PATCH" and key not in secrets:
            return _error(404, "NotFound", "Secret not found")
        if self.approval:
            return Reply(200, {"approval": {"id": "a1", "slug": "review-me", "status": "open"}})
        before = secrets.get(key, Kept("", 0))
        value, given_metadata = given.get("secretValue"), given.get("secretMetadata")
        if value is not None:
            value = value.strip("\t\n\v\f\r \u00a0\u2028\u2029\ufeff") + (
                "\n" if value.endswith("\n") else ""
            )
        secrets[key] = Kept(
            before.value if value is None else value,
            before.version + 1,
            given.get("secretComment", before.comment),
            before.hidden,
            before.metadata
            if given_metadata is None
            else [{"isEncrypted": False, **each} for each in given_metadata],
        )
        return Reply(200, {"secret": self._show(place, key, {})})

    def _log_in(self, method: str, given: Mapping[str, str]) -> Reply:
        if method == "universal-auth":
            is_right = (given["clientId"], given["clientSecret"]) == (CLIENT_ID, CLIENT_SECRET)
        else:
            is_right = self.identities.get(given["identityId"]) == given["jwt"]
        if not is_right:
            return _error(401, "UnauthorizedError", "Invalid credentials")
        token = f"eyLg7.{next(self._numbers)}mJ4kVd8PsT1w"
        self.tokens.add(token)
        told = {
            "accessToken": token,
            "expiresIn": 7200,
            "accessTokenMaxTTL": 7200,
            "tokenType": "Bearer",
        }
        return Reply(200, told)


def _error(status: int, kind: str, message: str) -> Reply:
    return Reply(
        status, {"reqId": "req-1", "statusCode": status, "error": kind, "message": message}
    )
