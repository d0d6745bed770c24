"""How postgres-role connects: by settings, by PostgreSQL's variables for the default store only,
with verified TLS.
"""

from __future__ import annotations

import itertools
import socket
import threading
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
import trustme

from plugins.postgres_role.conftest import Sinks
from sealpipe.errors import (
    BackendAuthError,
    NotConfiguredError,
    PluginError,
    SettingError,
    UnavailableError,
)
from sealpipe_plugins.postgres_role.parameters import make_parameters
from sealpipe_plugins.postgres_role.settings import PostgresSettings
from support.leaks import Detector, exposed
from support.ports import silent_port
from support.roles import ADMIN_PASSWORD, ELSEWHERE, THERE, Roles

DETECTOR = Detector({"of the administrator": ADMIN_PASSWORD.encode()})
PROD = "SEALPIPE_STORE__PROD__"


def url(roles: Roles, query: str = "", host: str = "") -> str:
    place = host or str(roles.server.folder).replace("/", "%2F")
    return f"postgresql://admin:{ADMIN_PASSWORD}@{place}:{roles.port}/postgres{query}"


class TestStores:
    def test_a_named_store_has_its_settings_from_the_config(
        self, roles: Roles, sinks: Sinks, password: str
    ) -> None:
        role = roles.create()
        table = {
            "plugin": "postgres-role",
            "host": str(roles.server.folder),
            "user": "admin",
            "dbname": "postgres",
        }
        environ = {f"{PROD}PASSWORD": ADMIN_PASSWORD, f"{PROD}PORT": str(roles.port)}
        assert sinks.put(
            environ, f"prod:{role}", password, config={"stores": {"prod": table}}
        ).known

    def test_or_from_an_address(self, roles: Roles, sinks: Sinks, password: str) -> None:
        role = roles.create()
        environ = {f"{PROD}PLUGIN": "postgres-role", f"{PROD}URL": url(roles)}
        assert sinks.put(environ, f"prod:{role}", password).known

    def test_no_variable_and_no_file_of_postgresql_counts_for_it(
        self,
        roles: Roles,
        sinks: Sinks,
        password: str,
        monkeypatch: pytest.MonkeyPatch,
        tmp_path: Path,
    ) -> None:
        """Of what libpq itself reads: host, login, database, options and more of it, and
        `.pgpass`.
        """
        role = roles.create()
        (tmp_path / ".pgpass").write_text(f"*:*:*:*:{ADMIN_PASSWORD}\n")
        (tmp_path / ".pgpass").chmod(0o600)
        wrong = {
            "HOST": "nowhere.invalid",
            "PORT": "1",
            "USER": "nobody",
            "PASSWORD": "x",
            "DATABASE": "none",
        }
        wrong |= {
            "HOSTADDR": "192.0.2.1",
            "SSLMODE": "verify-full",
            "OPTIONS": "-cbogus=1",
            "REQUIREAUTH": "gss",
        }
        wrong |= {
            "TARGETSESSIONATTRS": "standby",
            "CHANNELBINDING": "require",
            "SSLCERT": "/x",
            "CONNECT_TIMEOUT": "x",
        }
        for name, value in wrong.items():
            monkeypatch.setenv(f"PG{name}", value)
        monkeypatch.setenv("HOME", str(tmp_path))
        environ = {f"{PROD}PLUGIN": "postgres-role", f"{PROD}URL": url(roles)}
        assert sinks.put(environ, f"prod:{role}", password).known
        environ[f"{PROD}URL"] = url(roles).replace(f":{ADMIN_PASSWORD}", "")
        with pytest.raises(NotConfiguredError, match="asks for a password, and none is set"):
            sinks.put(environ, f"prod:{role}", password)

    def test_a_service_of_libpq_adds_nothing_to_it(
        self,
        roles: Roles,
        sinks: Sinks,
        password: str,
        monkeypatch: pytest.MonkeyPatch,
        tmp_path: Path,
    ) -> None:
        """`PGSERVICE` is read whatever else is named: what a service may add is named, too."""
        (tmp_path / "services").write_text("[other]\nreplication=true\nhost=192.0.2.1\n")
        monkeypatch.setenv("PGSERVICE", "other")
        monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / "services"))
        environ = {f"{PROD}PLUGIN": "postgres-role", f"{PROD}URL": url(roles)}
        assert sinks.put(environ, f"prod:{roles.create()}", password).known

    def test_a_key_log_is_never_written_for_it(self) -> None:
        context: Any = SimpleNamespace(named=True, store="prod", environ={})
        known = {each.keyword.decode() for each in psycopg.pq.Conninfo.get_defaults()}
        found = make_parameters(PostgresSettings(host="127.0.0.1"), context)
        assert found.get("sslkeylogfile") == ("" if "sslkeylogfile" in known else None)

    def test_the_default_store_takes_a_passfile(
        self, roles: Roles, sinks: Sinks, password: str, tmp_path: Path
    ) -> None:
        file = tmp_path / "pass"
        file.write_text(f"*:*:*:admin:{ADMIN_PASSWORD}\n")
        file.chmod(0o600)
        environ = {**roles.environ(), "PGPASSWORD": "", "PGPASSFILE": str(file)}
        assert sinks.put(environ, roles.create(), password).known

    @pytest.mark.parametrize(
        ("environ", "words"),
        [
            ({}, "lacks the setting host"),
            ({"PGHOST": "localhost", "PGSERVICE": "prod"}, "PGSERVICE is set"),
            (
                {"SEALPIPE_PLUGIN_POSTGRES_ROLE__URL": f"mysql://u:{ADMIN_PASSWORD}@h/d"},
                "is not an address of PostgreSQL",
            ),
            (
                {"SEALPIPE_PLUGIN_POSTGRES_ROLE__URL": f"postgresql://u:{ADMIN_PASSWORD}@[h/d"},
                "is not an address",
            ),
            (
                {
                    "SEALPIPE_PLUGIN_POSTGRES_ROLE__URL": (
                        f"postgresql://u:{ADMIN_PASSWORD}@h/d?hostaddr=192.0.2.1"
                    )
                },
                "must not have hostaddr",
            ),
            ({"PGHOST": "db.example", "PGSSLMODE": "require"}, "must be verified TLS"),
            ({"PGHOST": "localhost,db.example", "PGSSLMODE": "prefer"}, "must be verified TLS"),
        ],
    )
    def test_settings_that_cannot_be_used(
        self, sinks: Sinks, environ: dict[str, str], words: str
    ) -> None:
        with pytest.raises(NotConfiguredError, match=words) as refused:
            sinks.put(environ, "app", "x")
        assert refused.value.remedy
        assert DETECTOR.find(exposed(refused.value).encode()) == set()

    def test_a_password_in_the_config_file_is_refused(self, sinks: Sinks) -> None:
        config = {"plugins": {"postgres-role": {"host": "localhost", "password": ADMIN_PASSWORD}}}
        with pytest.raises(SettingError, match="in plain text"):
            sinks.put({}, "app", "x", config=config)


class TestTls:
    @pytest.fixture
    def ca_file(self, roles: Roles, tmp_path: Path) -> Path:
        """The certificates to trust: the server's own authority."""
        authority = trustme.CA()
        roles.offer_tls(authority)
        authority.cert_pem.write_to_path(tmp_path / "ca.pem")
        return tmp_path / "ca.pem"

    def test_over_a_network_certificate_and_name_are_verified(
        self, roles: Roles, sinks: Sinks, password: str, ca_file: Path
    ) -> None:
        """The role's login is verified, too."""
        role = roles.create()
        there = roles.environ(PGHOST=THERE)
        assert sinks.put(there, role, password, ca_file=ca_file).known
        with pytest.raises(
            NotConfiguredError, match="from an authority that is not trusted here"
        ) as unknown:
            sinks.put(there, role, password)
        assert "SEALPIPE_CA_FILE" in unknown.value.remedy
        with pytest.raises(NotConfiguredError, match="has a certificate for another host"):
            sinks.put({**there, "PGHOST": ELSEWHERE}, role, password, ca_file=ca_file)

    def test_a_file_of_ones_own_is_trusted_instead(
        self, roles: Roles, sinks: Sinks, password: str, ca_file: Path
    ) -> None:
        environ = roles.environ(PGHOST=THERE, PGSSLROOTCERT=str(ca_file))
        assert sinks.put(environ, roles.create(), password).known

    def test_a_server_without_tls_is_not_talked_to(self, sinks: Sinks) -> None:
        with socket.create_server((THERE, 0)) as server:

            def refuse() -> None:
                line, _ = server.accept()
                with line:
                    line.recv(8)
                    line.sendall(b"N")

            threading.Thread(target=refuse, daemon=True).start()
            with pytest.raises(NotConfiguredError, match="does not offer TLS"):
                sinks.put(
                    {"PGHOST": THERE, "PGPORT": str(server.getsockname()[1]), "PGUSER": "u"},
                    "app",
                    "x",
                )

    @pytest.mark.skipif(
        psycopg.pq.version() < 160000, reason="libpq before 16 sends the password whoever asks"
    )
    def test_a_port_of_this_machine_that_asks_for_the_password_gets_none(
        self, sinks: Sinks
    ) -> None:
        received = list[bytes]()
        with socket.create_server(("127.0.0.1", 0)) as server:

            def ask() -> None:
                line, _ = server.accept()
                with line:
                    line.recv(8)
                    line.sendall(b"N")
                    line.recv(4096)
                    line.sendall(b"R\0\0\0\x08\0\0\0\x03")
                    received.append(line.recv(4096))

            thread = threading.Thread(target=ask, daemon=True)
            thread.start()
            login = {
                "PGUSER": "admin",
                "PGPASSWORD": ADMIN_PASSWORD,
                "PGPORT": str(server.getsockname()[1]),
            }
            with pytest.raises(NotConfiguredError, match="the password itself in clear"):
                sinks.put({"PGHOST": "127.0.0.1", **login}, "app", "x")
            thread.join(5)
        assert received == [b""]


class TestTrouble:
    def test_one_that_falls_silent_later_is_not_either(
        self, roles: Roles, sinks: Sinks, password: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(
            "sealpipe_plugins.postgres_role.server._SESSION", "SELECT pg_sleep(600)"
        )
        with pytest.raises(UnavailableError, match="did not respond in time"):
            sinks.put(roles.environ(), roles.create(), password, deadline=0.3)

    def test_the_login_shows_nowhere(self, roles: Roles, sinks: Sinks) -> None:
        for environ, kind in (
            (roles.environ(PGPASSWORD="canary-that-is-wrong"), BackendAuthError),
            (roles.environ(PGDATABASE="nowhere"), NotConfiguredError),
            (roles.environ(PGPORT=str(silent_port())), UnavailableError),
        ):
            with pytest.raises(kind) as refused:
                sinks.put(environ, "app", "canary-of-a-value")
            assert (
                Detector({"login": environ["PGPASSWORD"].encode()}).find(
                    exposed(refused.value).encode()
                )
                == set()
            )
            assert "canary" not in f"{refused.value!r} {refused.value.remedy}"

    def test_check_tells_what_the_user_may_do(self, roles: Roles, sinks: Sinks) -> None:
        for user, words in (
            ("deputy", "may set passwords of other roles"),
            (roles.create(password=ADMIN_PASSWORD), "only"),
        ):
            health = sinks.registry(roles.environ(user)).check("sink", "postgres-role")
            assert health.ok
            assert words in health.detail


class TestLostCommit:
    """The server ends the connection as it is told to commit: it has, or it has not."""

    @pytest.fixture(params=[True, False], ids=["committed", "not committed"])
    def is_committed(
        self, request: pytest.FixtureRequest, roles: Roles, monkeypatch: pytest.MonkeyPatch
    ) -> bool:
        """Whether it has; the first transaction only reads."""
        execute, commits = psycopg.Connection.execute, itertools.count()

        def losing(connection: Any, statement: Any, *more: Any, **options: Any) -> Any:
            if statement == "COMMIT" and connection.info.user == "deputy" and next(commits) == 1:
                if request.param:
                    execute(connection, "COMMIT")
                roles.run(f"SELECT pg_terminate_backend({connection.info.backend_pid})")
            return execute(connection, statement, *more, **options)

        monkeypatch.setattr(psycopg.Connection, "execute", losing)
        return bool(request.param)

    def test_it_looks_before_it_does_anything_again(
        self, roles: Roles, sinks: Sinks, password: str, *, is_committed: bool
    ) -> None:
        role = roles.create()
        before = len(roles.log())
        with (
            nullcontext()
            if is_committed
            else pytest.raises(UnavailableError, match="was not written")
        ):
            assert sinks.put(roles.environ("deputy"), role, password, "replace").known
        assert roles.log()[before:].count(f'ALTER ROLE "{role}" PASSWORD') == 1
        assert roles.accepts(role, password) is is_committed
        assert sinks.put(roles.environ("deputy"), role, password, "replace").already is is_committed


def test_a_connection_that_ends_while_it_only_looks_has_set_nothing(
    roles: Roles, sinks: Sinks, password: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute, role = psycopg.Connection.execute, roles.create()

    def losing(connection: Any, statement: Any, *more: Any, **options: Any) -> Any:
        if statement == "COMMIT":
            roles.run(f"SELECT pg_terminate_backend({connection.info.backend_pid})")
        return execute(connection, statement, *more, **options)

    monkeypatch.setattr(psycopg.Connection, "execute", losing)
    with pytest.raises(UnavailableError, match=r"ended the connection|cannot do it now"):
        sinks.put(roles.environ(), role, password)
    assert roles.verifier(role) is None


def test_an_unexpected_state_is_told_by_its_number(
    roles: Roles, sinks: Sinks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sealpipe_plugins.postgres_role.server._SESSION", "SELECT 1/0")
    with pytest.raises(PluginError, match=r"refused the statement \(SQLSTATE 22012\)"):
        sinks.put(roles.environ(), "app", "x")
