"""Credentials that a real database makes for us: they live as long as their lease, and the lease as
our token.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from plugins.vault.conftest import Registries
from plugins.vault.redis import PASSWORD, logs_in, redis
from plugins.vault.storing import values
from sealpipe.sources.resolve import Cache, find_earliest_expiry
from sealpipe.wire.fields import Field
from sealpipe_rehearsal.running_service import RunningService
from support.backends import resolved
from support.openbao import Bao
from support.terminal import Terminal, opened

REF = "vault:database/creds/readonly#username,password"

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture(scope="module")
def database(one_bao: Bao, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a database for which database/creds/readonly lends users, for an hour each."""
    with redis(tmp_path_factory.mktemp("redis")) as port:
        one_bao.call("POST", "sys/mounts/database", {"type": "database"})
        config = {
            "plugin_name": "redis-database-plugin",
            "host": "127.0.0.1",
            "port": port,
            "allowed_roles": "*",
        }
        one_bao.call(
            "POST", "database/config/redis", {**config, "username": "default", "password": PASSWORD}
        )
        role = {"db_name": "redis", "creation_statements": '["~*", "+@read"]', "max_ttl": "2h"}
        one_bao.call("POST", "database/roles/readonly", {**role, "default_ttl": "1h"})
        one_bao.call("POST", "database/roles/hasty", {**role, "default_ttl": "30s"})
        one_bao.policy("lent", "database/creds/*", "secret/data/app/*")
        yield port
        one_bao.call("PUT", "sys/leases/revoke-prefix/database/creds")


def lent_for(cache: Cache) -> timedelta:
    found = find_earliest_expiry(cache)
    assert found is not None
    return found[0] - datetime.now(UTC)


def about(left: timedelta, expected: timedelta) -> bool:
    return expected - timedelta(minutes=1) < left <= expected


def login_by_approle(bao: Bao, name: str, **role: str | int) -> dict[str, str]:
    bao.call("POST", f"auth/approle/role/{name}", {"token_policies": ["lent"], **role})
    role_id = bao.call("GET", f"auth/approle/role/{name}/role-id")["role_id"]
    secret_id = bao.call("POST", f"auth/approle/role/{name}/secret-id")["secret_id"]
    return {"VAULT_ROLE_ID": role_id, "VAULT_SECRET_ID": secret_id}


def test_both_halves_are_of_one_lease_and_the_database_knows_them(
    database: int, bao: Bao, registry_of: Registries
) -> None:
    cache: Cache = {}
    registry = registry_of({"VAULT_TOKEN": bao.root})
    fields: list[Field] = resolved(
        registry, REF, "vault:database/creds/readonly#password", cache=cache
    )
    user, password, again = (
        field.value if isinstance(field.value, str) else field.value.reveal() for field in fields
    )
    assert password == again
    assert logs_in(database, user, password)
    assert not logs_in(database, user, f"{password}x")
    assert about(lent_for(cache), timedelta(hours=1)), "the root token never ends"


def test_a_lease_ends_with_the_token_where_that_is_sooner(
    bao: Bao, registry_of: Registries
) -> None:
    cache: Cache = {}
    resolved(registry_of({"VAULT_TOKEN": bao.token("lent", ttl="20m")}), REF, cache=cache)
    assert about(lent_for(cache), timedelta(minutes=20))
    cache = {}
    resolved(registry_of(login_by_approle(bao, "short", token_ttl="10m")), REF, cache=cache)
    assert about(lent_for(cache), timedelta(minutes=10))


def test_what_is_not_lent_has_no_end(bao: Bao, registry_of: Registries) -> None:
    cache: Cache = {}
    resolved(
        registry_of(login_by_approle(bao, "plain", token_ttl="10m")),
        "vault:secret/app/db#user",
        cache=cache,
    )
    assert find_earliest_expiry(cache) is None


def test_a_token_with_a_lease_is_not_revoked(
    database: int, bao: Bao, registry_of: Registries
) -> None:
    registry = registry_of(login_by_approle(bao, "lending", token_ttl="10m"))
    user, password = values(registry, REF)
    registry.close()
    assert logs_in(database, user, password)


def test_a_token_whose_end_or_uses_we_cannot_vouch_for_is_remarked_on(
    bao: Bao, registry_of: Registries
) -> None:
    cache: Cache = {}
    resolved(
        registry_of({"VAULT_TOKEN": bao.token("lent", no_default_policy=True)}), REF, cache=cache
    )
    assert [answer.remark for answer in cache.values()] == [  # type: ignore[union-attr]
        "the expiry of our token is unknown; the lease ends with it"
    ]
    cache = {}
    resolved(registry_of(login_by_approle(bao, "counted", token_num_uses=50)), REF, cache=cache)
    (answer,) = cache.values()
    assert "may be used 50 times" in answer.remark  # type: ignore[union-attr]


def test_a_share_ends_with_the_lease_that_is_in_it_and_says_so(
    database: int, bao: Bao, user: Terminal, service: RunningService
) -> None:
    vault = {"VAULT_ADDR": bao.addr, **login_by_approle(bao, "share", token_ttl="30m")}
    done = user.sealpipe("share", "-f", REF, "--expires-in", "72h", "--output", "json", **vault)
    assert done.code == 0, done
    ends = datetime.fromisoformat(done.json["expires_at"])
    assert about(ends - datetime.now(UTC), timedelta(minutes=30))
    assert (
        f"the share ends at {done.json['expires_at']}, with what "
        "vault:database/creds/readonly gives"
    ) in done.err
    fields = opened(service, done.json["link"])
    assert logs_in(database, fields["username"], fields["password"])


@pytest.mark.parametrize("words", [["--expires-in", "10m"], ["--expires-in", "10m", "--dry-run"]])
def test_a_share_that_ends_before_its_lease_is_left_as_it_was_asked_for(
    bao: Bao, user: Terminal, words: list[str]
) -> None:
    done = user.sealpipe("share", "-f", REF, *words, VAULT_ADDR=bao.addr, VAULT_TOKEN=bao.root)
    assert done.code == 0, done
    assert "the share ends at" not in done.err + done.out


def test_a_dry_run_tells_the_end_that_the_share_would_have(bao: Bao, user: Terminal) -> None:
    words = ["share", "-f", REF, "--no-expiry", "--dry-run", "--output", "json"]
    done = user.sealpipe(*words, VAULT_ADDR=bao.addr, VAULT_TOKEN=bao.root)
    assert done.code == 0, done
    assert about(
        datetime.fromisoformat(done.json["expires_at"]) - datetime.now(UTC), timedelta(hours=1)
    )
    assert "asked for without an end" in done.json["remarks"][0]


def test_what_is_lent_for_less_than_a_minute_is_not_shared(
    bao: Bao, user: Terminal, service: RunningService
) -> None:
    words = ["share", "-f", "vault:database/creds/hasty#password", "--output", "json"]
    done = user.sealpipe(*words, VAULT_ADDR=bao.addr, VAULT_TOKEN=bao.root)
    assert done.code == 14, done
    assert "too soon for a share" in done.error["message"]
    assert not [seen for seen in service.seen() if seen.method == "POST"]
