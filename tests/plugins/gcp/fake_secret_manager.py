"""A fake of Google Secret Manager and of Google's login, written from their public REST interfaces.

Secrets, versions and etags of `secretmanager.googleapis.com`, version 1; service accounts' keys and
refresh tokens of `oauth2.googleapis.com`; token exchange of `sts.googleapis.com` and impersonation
of `iamcredentials.googleapis.com`. Google's own client accepts it (test_official_client.py).
"""

from __future__ import annotations

import base64
import itertools
import json
import re
import threading
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from google_crc32c import value as crc32c

from support.ci_jobs import job_token
from support.fake_web import Asked, FakeWeb, Reply

PROJECT = "acme-prod"
NUMBER = "123456789012"
EMAIL = f"handover@{PROJECT}.iam.gserviceaccount.com"
PROVIDER = f"projects/{NUMBER}/locations/global/workloadIdentityPools/ci/providers/github"
FORBIDDEN = "forbidden"
"""A secret that no login may access."""
REFRESH_TOKEN = "Canary-refresh-token-3d"
AUDIENCE = "https://oauth2.googleapis.com/token"
"""Of a service account's assertion, wherever it is sent."""
TOKEN = "Canary-token-"
"""How every access token begins."""

_HTTP = {
    "INVALID_ARGUMENT": 400,
    "FAILED_PRECONDITION": 400,
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "ALREADY_EXISTS": 409,
}


@cache
def key() -> rsa.RSAPrivateKey:
    """The service account's key."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


class Held:
    """A secret: its annotations, its etag, and its versions in order, each the value and its
    state.
    """

    def __init__(
        self, annotations: dict[str, str] | None = None, versions: tuple[bytes, ...] = ()
    ) -> None:
        self.annotations = annotations or {}
        self.versions = [(value, "ENABLED") for value in versions]
        self.etag = 1


class RefusalError(Exception):
    """An error of the API. `reason` is that of its ErrorInfo."""

    def __init__(self, status: str, reason: str = "") -> None:
        super().__init__(status)
        info = {
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": reason,
            "domain": "googleapis.com",
        }
        body = {"code": _HTTP[status], "message": "canary in a message", "status": status}
        self.reply = Reply(
            _HTTP[status], {"error": {**body, **({"details": [info]} if reason else {})}}
        )


class FakeSecretManager(FakeWeb):
    """One project; `secrets` by name. `accounts` are the service accounts that exist."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.secrets: dict[str, Held] = {}
        self.tokens: set[str] = set()
        self.accounts = {EMAIL}
        self._numbers = itertools.count()
        self._lock = threading.Lock()

    def credentials(self, **members: Any) -> str:
        """The credentials file of the service account, whose key only this fake knows."""
        pem = key().private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        return json.dumps(
            {
                "type": "service_account",
                "project_id": PROJECT,
                "private_key_id": "k1",
                "private_key": pem.decode(),
                "client_email": EMAIL,
                "token_uri": f"{self.base_url}/token",
                **members,
            }
        )

    def user_credentials(self, **members: Any) -> str:
        """The file of `gcloud auth application-default login`."""
        client = {
            "client_id": "1.apps.example",
            "client_secret": "Canary-client",
            "refresh_token": REFRESH_TOKEN,
        }
        return json.dumps(
            {"type": "authorized_user", **client, "token_uri": f"{self.base_url}/token", **members}
        )

    def hold(self, name: str, *values: bytes) -> Held:
        """Make a secret with these versions."""
        self.secrets[name] = Held(versions=values)
        return self.secrets[name]

    def add(self, name: str, value: bytes) -> None:
        """Add a version, as somebody else does."""
        self.secrets[name].versions.append((value, "ENABLED"))

    def newest(self, name: str) -> bytes:
        return self.secrets[name].versions[-1][0]

    def answer(self, asked: Asked) -> Reply:
        with self._lock:
            try:
                return self._answer(asked)
            except RefusalError as refusal:
                return refusal.reply

    def _answer(self, asked: Asked) -> Reply:
        match asked.path.split("/")[1:]:
            case ["token"]:
                return self._grant(asked)
            case ["id-token"] if asked.query == {"api-version": "2.0", "audience": "a"}:
                return Reply(200, {"value": job_token(f"https://iam.googleapis.com/{PROVIDER}")})
            case ["expired"]:
                return _refuse("invalid_grant", "Token has been expired or revoked.")
            case ["v1", "token"]:
                return self._exchange(asked)
            case ["v1", "projects", "-", "serviceAccounts", account]:
                return self._impersonate(asked, account)
            case ["v1", "projects", project, "secrets", *rest]:
                self._check(asked, project)
                return Reply(200, self._serve(asked, rest))
        return Reply(404, "<html>not found</html>")

    # Login

    def _grant(self, asked: Asked) -> Reply:
        form = asked.members
        if form.get("grant_type") == "refresh_token":
            good = form.get("refresh_token") == REFRESH_TOKEN
            return (
                self._issue()
                if good
                else _refuse("invalid_grant", "Token has been expired or revoked.")
            )
        try:
            claims = jwt.decode(form["assertion"], key().public_key(), ["RS256"], audience=AUDIENCE)
        except jwt.InvalidSignatureError:
            return _refuse("invalid_grant", "Invalid JWT Signature.")
        if claims["iss"] not in self.accounts:
            return _refuse("invalid_grant", "Invalid grant: account not found")
        assert claims["scope"].startswith("https://www.googleapis.com/auth/")
        return self._issue()

    def _exchange(self, asked: Asked) -> Reply:
        form = asked.members
        assert form["grant_type"] == "urn:ietf:params:oauth:grant-type:token-exchange"
        assert form["subject_token_type"] == "urn:ietf:params:oauth:token-type:jwt"
        if form["audience"] != f"//iam.googleapis.com/{PROVIDER}":
            return _refuse(
                "invalid_target", "The target service indicated by the audience is invalid."
            )
        if form["subject_token"] != job_token(f"https://iam.googleapis.com/{PROVIDER}"):
            return _refuse(
                "invalid_grant", "The audience in ID Token does not match the expected audience."
            )
        return self._issue()

    def _impersonate(self, asked: Asked, account: str) -> Reply:
        self._check(asked, PROJECT)
        if account != f"{EMAIL}:generateAccessToken":
            raise RefusalError("PERMISSION_DENIED", "IAM_PERMISSION_DENIED")
        end = datetime.now(UTC) + timedelta(hours=1)
        return Reply(
            200,
            {"accessToken": self._make_token(), "expireTime": end.strftime("%Y-%m-%dT%H:%M:%SZ")},
        )

    def _issue(self) -> Reply:
        return Reply(
            200, {"access_token": self._make_token(), "expires_in": 3599, "token_type": "Bearer"}
        )

    def _make_token(self) -> str:
        token = f"{TOKEN}{next(self._numbers)}"
        self.tokens.add(token)
        return token

    def _check(self, asked: Asked, project: str) -> None:
        kind, _, token = asked.headers.get("authorization", "").partition(" ")
        if kind != "Bearer" or token not in self.tokens:
            raise RefusalError("UNAUTHENTICATED", "ACCESS_TOKEN_INVALID")
        if project not in (PROJECT, NUMBER):
            raise RefusalError("PERMISSION_DENIED", "CONSUMER_INVALID")

    # Secret Manager

    def _serve(self, asked: Asked, rest: list[str]) -> dict[str, Any]:
        match asked.method, rest:
            case "GET", []:
                return {
                    "secrets": [self._secret(name) for name in self.secrets],
                    "totalSize": len(self.secrets),
                }
            case "POST", []:
                return self._create(asked)
            case "GET", [name]:
                return self._secret(name)
            case "PATCH", [name]:
                return self._patch(asked, name)
            case "POST", [name] if name.endswith(":addVersion"):
                return self._add_version(asked, name.removesuffix(":addVersion"))
            case "GET", [name, "versions", version]:
                found, _, verb = version.partition(":")
                return (
                    self._access(name, found)
                    if verb == "access"
                    else self._version(name, self._number(name, found))
                )
        raise RefusalError("NOT_FOUND")

    def _held(self, name: str) -> Held:
        if name not in self.secrets:
            raise RefusalError("NOT_FOUND")
        return self.secrets[name]

    def _secret(self, name: str) -> dict[str, Any]:
        held = self._held(name)
        members: dict[str, Any] = {
            "name": f"projects/{NUMBER}/secrets/{name}",
            "replication": {"automatic": {}},
        }
        if held.annotations:
            members["annotations"] = held.annotations
        return {**members, "createTime": "2026-11-01T00:00:00.000001Z", "etag": f'"{held.etag:x}"'}

    def _create(self, asked: Asked) -> dict[str, Any]:
        name = asked.query["secretId"]
        if name in self.secrets:
            raise RefusalError("ALREADY_EXISTS")
        assert "replication" in asked.json, "a secret needs a replication policy"
        self.secrets[name] = Held(annotations=_checked(asked.json.get("annotations", {})))
        return self._secret(name)

    def _patch(self, asked: Asked, name: str) -> dict[str, Any]:
        held = self._held(name)
        assert asked.query["updateMask"] == "annotations"
        if asked.json.get("etag") not in (None, "", f'"{held.etag:x}"'):
            raise RefusalError("FAILED_PRECONDITION")
        held.annotations = _checked(asked.json["annotations"])
        held.etag += 1
        return self._secret(name)

    def _add_version(self, asked: Asked, name: str) -> dict[str, Any]:
        held, payload = self._held(name), asked.json["payload"]
        data = base64.b64decode(payload.get("data", ""), validate=True)
        if not 0 < len(data) <= 65536 or int(payload.get("dataCrc32c", crc32c(data))) != crc32c(
            data
        ):
            raise RefusalError("INVALID_ARGUMENT")
        held.versions.append((data, "ENABLED"))
        return self._version(name, len(held.versions))

    def _number(self, name: str, version: str) -> int:
        held = self._held(name)
        number = (
            len(held.versions) if version == "latest" else int(version) if version.isdigit() else 0
        )
        if not 0 < number <= len(held.versions):
            raise RefusalError("NOT_FOUND")
        return number

    def _version(self, name: str, number: int) -> dict[str, Any]:
        state = self.secrets[name].versions[number - 1][1]
        return {
            "name": f"projects/{NUMBER}/secrets/{name}/versions/{number}",
            "state": state,
            "etag": '"1"',
        }

    def _access(self, name: str, version: str) -> dict[str, Any]:
        if name == FORBIDDEN:
            raise RefusalError("PERMISSION_DENIED", "IAM_PERMISSION_DENIED")
        number = self._number(name, version)
        data, state = self.secrets[name].versions[number - 1]
        if state != "ENABLED":
            raise RefusalError("FAILED_PRECONDITION")
        payload = {"data": base64.b64encode(data).decode(), "dataCrc32c": str(crc32c(data))}
        return {"name": self._version(name, number)["name"], "payload": payload}


class FakeMetadata(FakeWeb):
    """A Google machine's metadata server, with the token of its service account."""

    def __init__(self, token: str, flavor: str = "Google") -> None:
        super().__init__()
        self.token, self.flavor = token, flavor

    def answer(self, asked: Asked) -> Reply:
        assert asked.headers.get("metadata-flavor") == "Google"
        flavor = {"metadata-flavor": self.flavor}
        account = "/computeMetadata/v1/instance/service-accounts/default/"
        if asked.path == "/":
            return Reply(200, "", flavor)
        if asked.path == account:
            return Reply(
                200, {"email": EMAIL, "scopes": []}, {**flavor, "content-type": "application/json"}
            )
        if asked.path == f"{account}token":
            members = {"access_token": self.token, "expires_in": 3599, "token_type": "Bearer"}
            return Reply(200, members, {**flavor, "content-type": "application/json"})
        return Reply(404, "not found", flavor)


def _refuse(code: str, description: str) -> Reply:
    return Reply(400, {"error": code, "error_description": description})


def _checked(annotations: dict[str, str]) -> dict[str, str]:
    for name in annotations:
        if not re.fullmatch("[A-Za-z0-9._-]{1,63}", name):
            raise RefusalError("INVALID_ARGUMENT")
    return annotations
