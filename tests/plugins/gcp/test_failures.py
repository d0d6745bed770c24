"""What goes wrong at Google Secret Manager and its login, and how each is told."""

from __future__ import annotations

from typing import Any

import pytest
from google_crc32c import value as crc32c

from plugins.gcp.fake_secret_manager import FORBIDDEN, REFRESH_TOKEN, TOKEN, FakeSecretManager
from sealpipe.errors import (
    AccessDeniedError,
    BackendAuthError,
    NotConfiguredError,
    PluginError,
    ReferenceValueError,
    SecretNotFoundError,
    UnavailableError,
)
from sealpipe.testing.contract import CANARY
from support.failures import Row, Table
from support.fake_web import Reply, drop


def says(code: int, **error: Any) -> Reply:
    return Reply(code, {"error": {"message": CANARY, **error}, "payload": {"data": CANARY}})


def error(error: object, description: str = "") -> Reply:
    return Reply(400, {"error": error, "error_description": description})


def disabled(service: str) -> Reply:
    return says(403, details=[{"reason": f"{service}_DISABLED"}])


NOT_ITS_CHECKSUM = Reply(
    200,
    {
        "name": "projects/1/secrets/db/versions/1",
        "payload": {"data": "eQ==", "dataCrc32c": str(crc32c(b"x"))},
    },
)

APART = {
    "nothing": Row(SecretNotFoundError, "does not exist", "nothing"),
    "off": Row(SecretNotFoundError, "disabled or destroyed", "off"),
    "denied": Row(AccessDeniedError, "secretmanager.versions.access", f"{FORBIDDEN}"),
    "no project": Row(
        NotConfiguredError,
        "names no project",
        remedy="gcp-sm:PROJECT/db",
        environ={"GOOGLE_CLOUD_PROJECT": ""},
    ),
    "no service": Row(NotConfiguredError, "is not enabled", answer=disabled("SERVICE")),
    "no billing": Row(NotConfiguredError, "billing", answer=disabled("BILLING")),
    "wrong key": Row(
        BackendAuthError,
        "the key of",
        answer=error("invalid_grant", "Invalid JWT Signature."),
        at="/token",
    ),
    "wrong account": Row(
        BackendAuthError,
        "does not know",
        answer=error("invalid_grant", "account not found"),
        at="/token",
    ),
    "expired login": Row(
        BackendAuthError,
        "expired or was revoked",
        answer=error("invalid_grant", CANARY),
        at="/token",
    ),
    "another's answer": Row(PluginError, "is not Google Secret Manager's", answer=says(200)),
}
MORE = {
    "no such version": Row(SecretNotFoundError, "no such version", "db?version=7"),
    "another project": Row(NotConfiguredError, "its project does not exist", "other-project/db"),
    "403": Row(AccessDeniedError, "does not allow", answer=says(403, details="odd")),
    "401": Row(BackendAuthError, "refused the token", answer=says(401, status="UNAUTHENTICATED")),
    "400": Row(ReferenceValueError, "is not valid", answer=says(400, status="INVALID_ARGUMENT")),
    "500": Row(UnavailableError, "failed", answer=says(500)),
    "418": Row(PluginError, "refused", remedy=None, answer=says(418)),
    "checksum": Row(UnavailableError, "checksum", answer=NOT_ITS_CHECKSUM),
    "no path": Row(ReferenceValueError, "version=", "db?version=1/..", calls=0),
    **{
        f"the name {body}": Row(ReferenceValueError, "is not a valid name", body, calls=0)
        for body in ("", "a/b/c", "A B", "p/", "../x", "acme-prod/a.b", "p/é")
    },
    **{
        f"a login that {name}": Row(kind, words, answer=answer, at="", calls=1)
        for name, kind, words, answer in (
            ("is 503", UnavailableError, "", Reply(503)),
            ("is 429", UnavailableError, "", Reply(429)),
            ("is lost", UnavailableError, "", drop),
            (
                "has no client",
                BackendAuthError,
                "client of",
                Reply(400, {"error": "invalid_client"}),
            ),
            ("is odd", BackendAuthError, "refused the login (400)", error(CANARY)),
            ("is coded", AccessDeniedError, "may not act as", error({"code": 400})),
            ("is no JSON", BackendAuthError, "refused the login", Reply(400, CANARY)),
        )
    },
    **{
        f"a token of {body[:40]!r}": Row(
            BackendAuthError,
            "the login of gcp-sm to Google failed",
            answer=Reply(200, body, {"content-type": "application/json"}),
            at="",
        )
        for body in (
            b'{"expires_in": 1}',
            b"[]",
            b"[" * 100_000,
            *(
                b'{"access_token": "x", "expires_in": %s}' % end
                for end in (b"[]", b"1e999", b"1e30")
            ),
        )
    },
}
ROWS = {**APART, **MORE}


@pytest.fixture
def table(google: FakeSecretManager, environ: dict[str, str]) -> Table:
    google.hold("db", b"x")
    google.hold(FORBIDDEN, b"x")
    google.hold("off").versions = [(b"x", "ENABLED"), (b"y", "DISABLED")]
    return Table(
        "gcp-sm", "db", environ, google, ":access", (TOKEN, REFRESH_TOKEN, "Canary-client")
    )


@pytest.mark.parametrize("name", ROWS)
def test_a_failure_reads_as_what_it_is(name: str, table: Table) -> None:
    table.tell(ROWS[name])


def test_what_needs_another_next_step_is_told_apart(table: Table) -> None:
    table.tell_apart(APART)
