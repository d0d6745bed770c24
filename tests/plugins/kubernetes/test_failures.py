"""What goes wrong at Kubernetes, and how each is told."""

from __future__ import annotations

import pytest

from sealpipe.errors import (
    AccessDeniedError,
    BackendAuthError,
    NotConfiguredError,
    PluginError,
    ReferenceValueError,
    SecretNotFoundError,
    UnavailableError,
)
from support.failures import Row, Table
from support.kubernetes import TOKEN, Cluster, status

DEFAULT, STORE = "SEALPIPE_PLUGIN_K8S__", "SEALPIPE_STORE__OTHER__"
SERVER = "https://k8s.example"


def named(words: str, **settings: str) -> Row:
    """A named store, with these settings alone."""
    environ = {STORE + name: value for name, value in settings.items()}
    return Row(NotConfiguredError, words, "other:a/b", {f"{STORE}PLUGIN": "k8s", **environ})


APART = {
    "no Secret": Row(SecretNotFoundError, "the namespace prod has no Secret db"),
    "no namespace": Row(SecretNotFoundError, "has no namespace dev", "dev/db"),
    "a wrong token": Row(
        BackendAuthError, "401", environ={f"{DEFAULT}TOKEN": "Canary-another-token"}
    ),
    "denied": Row(AccessDeniedError, "denies `get` to this login", answer=status(403)),
    "no base64": Row(PluginError, "a value that is not base64", "prod/odd"),
    "no cluster": named("no cluster is configured"),
    "unencrypted": named("not an https address", SERVER="http://k8s.example", TOKEN=TOKEN),
    "no token": named("a server but no token", SERVER=SERVER),
    "two tokens": named(
        "both a token and a token_file", SERVER=SERVER, TOKEN=TOKEN, TOKEN_FILE="x"
    ),
}
MORE = {
    "401": Row(BackendAuthError, "does not accept the login", answer=status(401)),
    "500": Row(
        UnavailableError, "failed (500)", answer=status(500, **{"retry-after": "2"}), waits=2
    ),
    "418": Row(PluginError, "responded with 418", answer=status(418), remedy=None),
    "another's answer": Row(
        PluginError, "the response is not a Secret of Kubernetes", answer=status(200)
    ),
    "a login in the address": named(
        "not an https address", SERVER="https://u:p@k8s.example", TOKEN=TOKEN
    ),
    "no CA file": named("/none cannot be read", SERVER=SERVER, TOKEN=TOKEN, CA_FILE="/none"),
    "no kubeconfig": named("the kubeconfig /none cannot be read: No such file", KUBECONFIG="/none"),
    **{
        f"the name {body[:12]}": Row(ReferenceValueError, body=body, calls=0)
        for body in ("", "/", "a/b/c", "Prod/db", "prod/", "/db", "prod/..", "prod/a%252fb")
    },
    **{
        f"the long or odd name {body[:8]}": Row(ReferenceValueError, body=body, calls=0)
        for body in ("prod/a b", "-a/b", "prod/" + "a" * 254)
    },
}
ROWS = {**APART, **MORE}


@pytest.fixture
def table(cluster: Cluster) -> Table:
    cluster.secret("prod", "odd", {}, data={"pw": "c3Vw*cmV0"})
    environ = {f"{DEFAULT}SERVER": cluster.base_url, f"{DEFAULT}TOKEN": TOKEN}
    return Table("k8s", "prod/db", environ, cluster, secrets=(TOKEN, "Canary-another-token"))


@pytest.mark.parametrize("name", ROWS)
def test_a_failure_reads_as_what_it_is(name: str, table: Table) -> None:
    table.tell(ROWS[name])


def test_what_needs_another_next_step_is_told_apart(table: Table) -> None:
    table.tell_apart(APART)


def test_who_may_not_look_for_the_namespace_is_told_that(cluster: Cluster, table: Table) -> None:
    cluster.rule = lambda asked: status(403) if asked.path.endswith("/dev") else None
    table.tell(Row(SecretNotFoundError, "has no Secret db, or no such namespace", "dev/db"))
