"""postgres-role: sets the password of the role that is named, of no other, and claims only what a
login has shown.
"""

from __future__ import annotations

import threading

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plugins.postgres_role.conftest import Sinks
from sealpipe.errors import (
    AccessDeniedError,
    PluginError,
    ReferenceValueError,
    SecretNotFoundError,
    UnavailableError,
    UnsupportedError,
    WriteConflictError,
)
from sealpipe_plugins.confirm import has_marker
from sealpipe_plugins.postgres_role.role import Role, append_marker
from support.leaks import Detector
from support.roles import ADMIN_PASSWORD, Roles


def test_a_client_gets_in_with_the_new_password_only(
    roles: Roles, sinks: Sinks, password: str
) -> None:
    role = roles.create(password="old")
    assert sinks.put(roles.environ(), role, password, "replace").known
    assert roles.accepts(role, password)
    assert not roles.accepts(role, "old")
    assert (roles.verifier(role) or "").startswith("SCRAM-SHA-256$")


def test_the_servers_log_of_every_statement_has_no_password(
    roles: Roles, sinks: Sinks, password: str
) -> None:
    role = roles.create()
    sinks.put(roles.environ(), role, password)
    log = roles.log()
    assert f'ALTER ROLE "{role}" PASSWORD \'SCRAM-SHA-256$' in log
    assert (
        Detector({"new": password.encode(), "of the administrator": ADMIN_PASSWORD.encode()}).find(
            log.encode()
        )
        == set()
    )


@pytest.mark.parametrize(
    "name",
    [
        'a"; DROP ROLE "admin',
        "it's",
        "Ann Müller",
        "$$x$$",
        "a\\b",
        "select",
        "%s {} %%",
        "x" * 63,
        "ü" * 31,
        "current_user",
    ],
)
def test_a_hostile_name_is_a_name(roles: Roles, sinks: Sinks, password: str, name: str) -> None:
    roles.create(name)
    sinks.put(roles.environ(), name.replace("%", "%25"), password)
    assert roles.accepts(name, password)
    assert roles.accepts("admin", ADMIN_PASSWORD)


def test_a_name_that_is_cut_off_would_be_another_role(
    roles: Roles, sinks: Sinks, password: str
) -> None:
    short = roles.create("y" * 63, password="old")
    with pytest.raises(ReferenceValueError, match="is not the name of a role"):
        sinks.put(roles.environ(), f"{short}y", password, "replace")
    assert roles.accepts(short, "old")


@pytest.mark.parametrize("name", ["nobody", "public", "none", "Admin"])
def test_a_role_that_does_not_exist_is_not_made(
    roles: Roles, sinks: Sinks, password: str, name: str
) -> None:
    with pytest.raises(SecretNotFoundError, match=f"has no role {name}"):
        sinks.put(roles.environ(), name, password, "replace")


@pytest.mark.parametrize(
    "password",
    [
        "ﬁ\u00ad\u2168",
        "pass word\u00a0",
        "\u0627\u0031",
        "\U0001f511\u0378",
        "a\x07\r\n\tb",
        "'\\ \"$",
        "x" * 3000,
    ],
)
def test_an_odd_password_is_the_one_that_clients_use(
    roles: Roles, sinks: Sinks, password: str
) -> None:
    role = roles.create()
    assert sinks.put(roles.environ(), role, password).known
    assert roles.accepts(role, password)


@pytest.mark.parametrize("value", ["", "a\0b", "\0", b"\xff"])
def test_what_no_password_can_be_changes_nothing(
    roles: Roles, sinks: Sinks, value: str | bytes
) -> None:
    role = roles.create(password="old")
    with pytest.raises(UnsupportedError):
        sinks.put(roles.environ(), role, value, "replace")
    assert roles.accepts(role, "old")


@pytest.mark.parametrize(
    ("rights", "words"),
    [("NOLOGIN", "cannot log in"), ("LOGIN VALID UNTIL '2020-01-01'", "have expired")],
)
def test_a_role_that_cannot_log_in_gets_no_password(
    roles: Roles, sinks: Sinks, password: str, rights: str, words: str
) -> None:
    role = roles.create(rights=rights)
    with pytest.raises(UnsupportedError, match=words):
        sinks.put(roles.environ(), role, password)
    assert roles.verifier(role) is None


class TestWithoutProof:
    """Logins from here that say nothing of the password."""

    @pytest.fixture(params=["trusted", "spelled", "outsider"])
    def role(self, request: pytest.FixtureRequest, roles: Roles) -> str:
        """Let in without a password, with one that the server reads in clear, and not at all."""
        name: str = request.param
        roles.run("DROP ROLE IF EXISTS {}", name)
        return roles.create(name)

    def test_a_superuser_compares_what_is_stored(
        self, roles: Roles, sinks: Sinks, password: str, role: str
    ) -> None:
        assert sinks.put(roles.environ(), role, password).known

    def test_anybody_else_is_told_so(
        self, roles: Roles, sinks: Sinks, password: str, role: str
    ) -> None:
        before = roles.log()
        assert not sinks.put(roles.environ("deputy"), role, password, "replace").known
        assert (roles.verifier(role) or "").startswith("SCRAM-SHA-256$")
        assert (
            Detector({"new": password.encode()}).find(roles.log()[len(before) :].encode()) == set()
        )

    def test_a_role_without_access_to_the_database_has_proved_its_password(
        self, roles: Roles, sinks: Sinks, password: str
    ) -> None:
        role = roles.create()
        roles.run("GRANT CONNECT ON DATABASE closed TO deputy")
        assert sinks.put(
            roles.environ("deputy", PGDATABASE="closed"), role, password, "replace"
        ).known


class TestModes:
    def test_create_is_for_a_role_without_a_password(
        self, roles: Roles, sinks: Sinks, password: str
    ) -> None:
        role = roles.create(password="old")
        with pytest.raises(WriteConflictError, match="already has other content"):
            sinks.put(roles.environ(), role, password)
        assert roles.accepts(role, "old")

    def test_create_does_not_replace_what_this_user_cannot_see(
        self, roles: Roles, sinks: Sinks, password: str
    ) -> None:
        role = roles.create()
        with pytest.raises(WriteConflictError, match="which this user cannot see") as refused:
            sinks.put(roles.environ("deputy"), role, password)
        assert "?mode=replace" in refused.value.remedy
        assert roles.verifier(role) is None

    def test_what_gets_in_already_is_not_set_again(
        self, roles: Roles, sinks: Sinks, password: str
    ) -> None:
        role = roles.create(password=password)
        before = roles.verifier(role)
        assert sinks.put(roles.environ("deputy"), role, password, "replace").already
        assert roles.verifier(role) == before


class TestMarkers:
    def test_the_comment_of_others_stays(self, roles: Roles, sinks: Sinks, password: str) -> None:
        role = roles.create()
        roles.run("COMMENT ON ROLE {} IS 'of the billing team\nsee the wiki'", role)
        sinks.put(roles.environ("deputy"), role, password, "replace", "AbC.1")
        sinks.put(roles.environ("deputy"), role, f"{password}2", "replace", "AbC.2")
        assert roles.comment(role) == "of the billing team\nsee the wiki\n[sealpipe: AbC.1 AbC.2]"

    def test_a_password_that_was_changed_since_is_left_alone(
        self, roles: Roles, sinks: Sinks, password: str
    ) -> None:
        role = roles.create()
        sinks.put(roles.environ("deputy"), role, password, "replace")
        roles.set(role, "changed by hand")
        assert sinks.put(roles.environ("deputy"), role, password, "replace").already
        assert roles.accepts(role, "changed by hand")

    def test_a_role_sets_its_own_password_without_a_marker(
        self, roles: Roles, sinks: Sinks, password: str
    ) -> None:
        role = roles.create(password="old")
        own = roles.environ(role, PGPASSWORD="old")
        assert sinks.put(own, role, password, "replace").known
        assert roles.comment(role) is None
        assert sinks.put({**own, "PGPASSWORD": password}, role, password, "replace").already

    @settings(max_examples=50, suppress_health_check=[HealthCheck.too_slow])
    @given(
        st.text(),
        st.lists(st.from_regex(r"[A-Za-z0-9._-]{1,80}", fullmatch=True), min_size=1, max_size=12),
    )
    def test_any_comment_keeps_its_text_and_finds_the_last_markers(
        self, comment: str, markers: list[str]
    ) -> None:
        text = comment
        for marker in markers:
            text = append_marker(text, marker)
        assert text.startswith(comment) or "[sealpipe: " in comment
        assert has_marker(
            Role(1, can_log_in=True, is_expired=False, comment=text, is_visible=True).markers,
            markers[-1],
        )
        assert text.count("[sealpipe: ") == max(1, comment.count("[sealpipe: "))


def test_a_user_without_the_right_is_told_which_one(
    roles: Roles, sinks: Sinks, password: str
) -> None:
    weak, other = roles.create(password=ADMIN_PASSWORD), roles.create(password="old")
    for user, role in ((weak, other), ("deputy", "admin")):
        with pytest.raises(AccessDeniedError) as refused:
            sinks.put(roles.environ(user), role, password, "replace")
        assert "CREATEROLE" in refused.value.remedy
    assert roles.accepts(other, "old")


def test_of_two_at_the_same_moment_one_wins_with_create(
    roles: Roles, sinks: Sinks, password: str
) -> None:
    role = roles.create()
    ends: list[str] = []

    def put(number: int) -> None:
        try:
            sinks.put(roles.environ(), role, f"{password}{number}", marker=f"m{number}")
            ends.append(f"{password}{number}")
        except WriteConflictError:
            ends.append("")

    threads = [threading.Thread(target=put, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    [won] = filter(None, ends)
    assert roles.accepts(role, won)


def test_a_change_by_others_in_between_is_seen(roles: Roles, sinks: Sinks, password: str) -> None:
    """Somebody else holds the role in a transaction: it is waited for, and the password set after
    it.
    """
    role = roles.create()
    with psycopg.connect(roles.address) as other:
        other.execute(f'ALTER ROLE "{role}" CONNECTION LIMIT 3')
        committing = threading.Timer(0.2, other.commit)
        committing.start()
        sinks.put(roles.environ(), role, password)
        committing.join()
    assert roles.accepts(role, password)
    assert roles.comment(role) == "[sealpipe: m1]"


def test_one_that_is_held_for_long_is_for_later(
    roles: Roles, sinks: Sinks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "sealpipe_plugins.postgres_role.server._SESSION",
        "SELECT set_config('lock_timeout', '50ms', true)",
    )
    role = roles.create()
    with psycopg.connect(roles.address) as other:
        other.execute(f'ALTER ROLE "{role}" CONNECTION LIMIT 3')
        with pytest.raises(UnavailableError, match="has the role locked"):
            sinks.put(roles.environ(), role, "x")
        other.rollback()


def test_a_login_that_is_refused_after_the_write_is_an_error(
    roles: Roles, sinks: Sinks, password: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    role = roles.create(password="old")
    monkeypatch.setattr("sealpipe_plugins.postgres_role.sink.set_password", lambda *_: None)
    with pytest.raises(PluginError, match="a login with it is refused") as refused:
        sinks.put(roles.environ(), role, password, "replace")
    assert password not in refused.value.message + refused.value.remedy
