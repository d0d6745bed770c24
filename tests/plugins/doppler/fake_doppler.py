"""A fake of Doppler's API, version 3, written from its public reference: secrets of configs, notes,
OIDC, tokens.

Paths, parameters, members, token formats and rate limit headers are those of the reference;
statuses of refusals, where it names none, are those that its users report. Doppler's own command
line, which tests run against it, is the proof.
"""

from __future__ import annotations

import base64
import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from support.fake_web import Asked, FakeWeb, Reply

_REFERENCE = re.compile(r"\$\{(?:(?:([a-z0-9_-]+)\.)?([a-z0-9_-]+)\.)?([A-Z_][A-Z0-9_]*)\}")
_NAME = re.compile(r"[A-Z_][A-Z0-9_]*")
_END = "bAqhcVzrhy5cRHkOlNTc0Ve6w5NUDCpcutm8vGE9"
PERSONAL, SERVICE, ACCOUNT = f"dp.pt.{_END}pers", f"dp.st.dev.{_END}serv", f"dp.sa.{_END}acco"
IDENTITY = "5ba6e0fd-a80a-4c39-9e85-3d5230d44e62"

Config = tuple[str, str]


@dataclass
class Kept:
    """A secret as somebody wrote it."""

    raw: str
    visibility: str = "masked"


@dataclass
class Token:
    """What a token may see: some projects (None: all), or one config; and whether it may write."""

    kind: str = "service_account"
    config: Config | None = None
    projects: set[str] | None = None
    writes: bool = True
    notes: bool = True


class FakeDoppler(FakeWeb):
    """Secrets by project and config, notes by project and name, tokens, and OIDC tokens by
    identity.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.configs: dict[Config, dict[str, Kept]] = {("app", "dev"): {}}
        self.notes: dict[Config, str] = {}
        self.tokens = {
            PERSONAL: Token("personal"),
            SERVICE: Token("service_token", ("app", "dev")),
            ACCOUNT: Token(projects={"app"}),
        }
        self.identities: dict[str, str] = {}
        self.revoked: list[str] = []
        self._numbers = itertools.count()

    def config(self, project: str, config: str, **secrets: str) -> dict[str, Kept]:
        """Make a config with these secrets."""
        self.configs[project, config] = {name: Kept(raw) for name, raw in secrets.items()}
        return self.configs[project, config]

    def answer(self, asked: Asked) -> Reply:
        query = {**({} if asked.method == "GET" else asked.json), **asked.query}
        match asked.method, asked.path:
            case "POST", "/v3/auth/oidc":
                return self._log_in(query)
            case "POST", "/v3/auth/revoke":
                self.revoked.append(query["token"])
                return (
                    Reply(200, {"success": True})
                    if self.tokens.pop(query["token"], None)
                    else _error(401, "token")
                )
        token = self.tokens.get(_bearer(asked))
        if token is None:
            return _error(401, "Invalid Auth token")
        if (asked.method, asked.path) == ("GET", "/v3/me"):
            return Reply(200, {"type": token.kind, "name": "ci", "token_preview": "dp.st...vGE9"})
        if (asked.method, asked.path) == ("POST", "/v3/projects/project/note"):
            return self._note(token, query["project"] or (token.config or ("",))[0], query)
        where = (query.get("project") or "", query.get("config") or "")
        if token.config is not None:  # of a service token both are optional, and it has no others
            where = token.config
        if not all(where):
            return _error(400, "You must specify a project and a config")
        if token.projects is not None and where[0] not in token.projects:
            known = any(where[0] == project for project, _ in self.configs)
            return (
                _error(403, "no access to it")
                if known
                else _error(404, "Could not find requested project")
            )
        if where not in self.configs:
            return _error(404, "Could not find requested config")
        return self._secrets(asked, token, where, query)

    def _secrets(
        self, asked: Asked, token: Token, where: Config, query: Mapping[str, Any]
    ) -> Reply:
        match asked.method, asked.path:
            case "GET", "/v3/configs/config/secrets":
                return Reply(200, {"secrets": self._shown(where, token, query.get("secrets"))})
            case "GET", "/v3/configs/config/secrets/download":
                shown = self._shown(where, token, query.get("secrets"))
                return Reply(200, {name: each["computed"] for name, each in shown.items()})
            case "POST", "/v3/configs/config/secrets":
                if not token.writes:
                    return _error(403, "This token does not have write access")
                return self._change(where, token, query)
        return _error(404, "no such path")

    def _shown(self, where: Config, token: Token, names: str | None = None) -> dict[str, Any]:
        managed = {
            "PROJECT": where[0],
            "ENVIRONMENT": where[1].partition("_")[0],
            "CONFIG": where[1],
        }
        secrets = {
            **self.configs[where],
            **{f"DOPPLER_{name}": Kept(raw) for name, raw in managed.items()},
        }
        wanted = set(names.split(",")) if names else set(secrets)
        return {
            name: self._show(where, token, name, each)
            for name, each in secrets.items()
            if name in wanted
        }

    def _show(self, where: Config, token: Token, name: str, secret: Kept) -> dict[str, Any]:
        hidden = secret.visibility == "restricted" and token.kind == "personal"
        return {
            "raw": None if hidden else secret.raw,
            "computed": None if hidden else self._compute(where, secret.raw),
            "note": self.notes.get((where[0], name), ""),
            "rawVisibility": secret.visibility,
            "computedVisibility": secret.visibility,
            "rawValueType": {"type": "string"},
            "computedValueType": {"type": "string"},
        }

    def _compute(self, where: Config, raw: str) -> str:
        def expand(match: re.Match[str]) -> str:
            project, config, name = match[1] or where[0], match[2] or where[1], match[3]
            found = self.configs.get((project, config), {}).get(name)
            return self._compute((project, config), found.raw) if found else match[0]

        return _REFERENCE.sub(expand, raw)

    def _change(self, where: Config, token: Token, query: Mapping[str, Any]) -> Reply:
        plain = [
            {"name": name, "originalName": name, "value": value}
            for name, value in query.get("secrets", {}).items()
        ]
        after = dict(self.configs[where])
        for change in query.get("change_requests") or plain:
            name, original = change["name"], change.get("originalName")
            existing = after.get(original or name)
            if not _NAME.fullmatch(name):
                return _error(400, "Invalid secret name")
            if change.get("originalValue") is not None and (
                existing is None or existing.raw != change["originalValue"]
            ):
                return _error(400, "The secret has been changed since")
            if existing is not None and original not in (None, name):
                after.pop(original)
            if change.get("shouldDelete"):
                after.pop(name, None)
            elif change.get("value") is not None:
                visibility = change.get("visibility") or (
                    existing.visibility if existing else "masked"
                )
                after[name] = Kept(change["value"], visibility)
        self.configs[where] = after
        return Reply(200, {"secrets": self._shown(where, token)})

    def _note(self, token: Token, project: str, query: Mapping[str, Any]) -> Reply:
        if not token.notes:
            return _error(403, "no access to notes")
        if not any(
            query["secret"] in secrets for (of, _), secrets in self.configs.items() if of == project
        ):
            return _error(404, "Could not find requested secret")
        self.notes[project, query["secret"]] = query["note"]
        return Reply(200, {"secret": query["secret"], "note": query["note"]})

    def _log_in(self, query: Mapping[str, Any]) -> Reply:
        if self.identities.get(query["identity"]) != query["token"]:
            return _error(401, "Invalid identity or token")
        token = f"dp.said.{_END}{next(self._numbers):04}"
        self.tokens[token] = Token("service_account_identity", projects={"app"})
        ends = (
            (datetime.now(UTC) + timedelta(hours=1))
            .isoformat(timespec="milliseconds")
            .replace("+00:00", "Z")
        )
        return Reply(
            200,
            {"success": True, "token": token, "expires_at": ends, "dashboard_url": self.base_url},
        )


def _bearer(asked: Asked) -> str:
    kind, _, word = asked.headers.get("authorization", "").partition(" ")
    return base64.b64decode(word).decode().partition(":")[0] if kind == "Basic" else word


def _error(status: int, message: str) -> Reply:
    return Reply(status, {"messages": [message], "success": False})
