"""The address of a shared database: verified TLS over a network, and no part of a password in any
message.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
import trustme

from sealpipe.batch.database.interface import DatabaseUnavailableError
from sealpipe.batch.database.opening import open_database
from sealpipe.batch.database.postgres import check_address
from sealpipe.errors import SettingError, StateError
from sealpipe.secret import Secret
from support.leaks import Detector, exposed
from support.parts import run_postgres
from support.ports import free_port
from unit.batch.stores import Place, PostgresPlace, add_rows

PASSWORD = "canary-7391-kangaroo"
DETECTOR = Detector({"password": PASSWORD.encode()})


def test_over_a_network_tls_is_verified(tmp_path: Path) -> None:
    bundle = tmp_path / "ca.pem"
    for address in (
        f"postgresql://kim:{PASSWORD}@db.example/batches",
        f"host=db.example password={PASSWORD}",
    ):
        settings = check_address(Secret(address), bundle)
        assert (settings["sslmode"], settings["sslrootcert"]) == ("verify-full", str(bundle))
        assert Path(check_address(Secret(address), None)["sslrootcert"]).exists()
    own = check_address(
        Secret("postgresql://db.example/x?sslmode=verify-full&sslrootcert=/own.pem"), bundle
    )
    assert own["sslrootcert"] == "/own.pem"


# Nobody listens there: it is where a client connects.
THERE, ELSEWHERE = "0.0.0.0", "127.1"  # noqa: S104
"""Both are this machine, but not by their spelling (`is_loopback`), so TLS is verified."""


def test_a_server_with_a_certificate_of_another_ca_is_refused(tmp_path: Path) -> None:
    ours, other = trustme.CA(), trustme.CA()
    for name, authority in (("ours", ours), ("other", other)):
        authority.cert_pem.write_to_path(tmp_path / f"{name}.pem")
    certificate, port = ours.issue_cert(THERE), free_port()

    def connect(host: str, authority: str) -> list[tuple[object, ...]]:
        address = Secret(f"postgresql://tests@{host}:{port}/postgres")
        with closing(open_database(tmp_path, address, tmp_path / f"{authority}.pem")) as database:
            return list(database.read("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"))

    with run_postgres() as server:
        server.stop()
        key, chain = server.folder / "key.pem", server.folder / "chain.pem"
        certificate.private_key_pem.write_to_path(key)
        certificate.cert_chain_pems[0].write_to_path(chain)
        for file in (key, chain):
            file.chmod(0o600)
            owner = server.folder.stat()
            os.chown(file, owner.st_uid, owner.st_gid)
        server.start(
            "listen_addresses=127.0.0.1",
            "ssl=on",
            f"ssl_key_file={key}",
            f"ssl_cert_file={chain}",
            port=port,
        )
        assert connect(THERE, "ours") == [(True,)]
        for host, authority in ((THERE, "other"), (ELSEWHERE, "ours")):
            with pytest.raises(DatabaseUnavailableError):
                connect(host, authority)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "%2Fvar%2Frun%2Fpostgresql"])
def test_on_this_machine_tls_is_left_to_the_address(host: str) -> None:
    assert "sslmode" not in check_address(Secret(f"postgresql://kim@{host}/batches"), None)


@pytest.mark.parametrize("mode", ["disable", "allow", "prefer", "require", "verify-ca"])
@pytest.mark.parametrize("hosts", ["db.example", "localhost,db.example"])
def test_less_than_verified_tls_is_refused(mode: str, hosts: str) -> None:
    with pytest.raises(SettingError, match="must be verified TLS") as refused:
        check_address(Secret(f"postgresql://kim:{PASSWORD}@{hosts}/batches?sslmode={mode}"), None)
    assert "sslmode=verify-full" in refused.value.remedy


@pytest.mark.parametrize(
    "address",
    [
        PASSWORD,
        "",
        f"postgresql://kim:{PASSWORD}@/batches",
        f"postgresql://kim:{PASSWORD}@[db.example/batches",
        f"mysql://kim:{PASSWORD}@db.example/batches",
        f"host=localhost {PASSWORD}",
        f"host=localhost hostaddr=192.0.2.1 password={PASSWORD}",
        f"host=localhost service=other password={PASSWORD}",
        f"postgresql://kim:p@{PASSWORD}@db.example/batches",
        f"postgresql://kim:p/{PASSWORD}@db.example/batches",
        f"postgresql://kim:12/{PASSWORD}@db.example/batches",
    ],
)
def test_what_is_no_address_is_refused_and_not_shown(address: str) -> None:
    with pytest.raises(SettingError, match="is not one of PostgreSQL") as refused:
        check_address(Secret(address), None)
    assert DETECTOR.find(exposed(refused.value).encode()) == set()


@pytest.mark.parametrize("name", ["PGHOSTADDR", "PGSERVICE"])
def test_the_environment_leads_nowhere_else(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "192.0.2.1")
    for host in ("localhost", "db.example"):
        with pytest.raises(
            SettingError, match=f"{name} is set, and could lead elsewhere"
        ) as refused:
            check_address(Secret(f"postgresql://kim:{PASSWORD}@{host}/batches"), None)
        assert f"unset {name}" in refused.value.remedy
        assert DETECTOR.find(exposed(refused.value).encode()) == set()


def test_a_server_that_does_not_answer_shows_no_password(tmp_path: Path) -> None:
    database = open_database(
        tmp_path, Secret(f"postgresql://kim:{PASSWORD}@%2Fnonexistent/batches")
    )
    with pytest.raises(DatabaseUnavailableError, match="does not answer") as refused:
        database.read_clock()
    said = exposed(refused.value) + refused.value.remedy + database.description
    assert DETECTOR.find(said.encode()) == set()


def test_a_role_without_rights_is_told_so_and_a_small_one_is_enough(in_postgres: Place) -> None:
    assert isinstance(in_postgres, PostgresPlace)
    add_rows(in_postgres.store(), 1)
    in_postgres.change("DROP ROLE IF EXISTS small")
    in_postgres.change("CREATE ROLE small LOGIN")
    address = in_postgres.server.address.replace("user=tests", "user=small")
    in_postgres.server.address, whole = address, in_postgres.server.address
    try:
        with pytest.raises(StateError, match="refused a statement: InsufficientPrivilege"):
            in_postgres.database().read("SELECT value FROM sealpipe_meta")
        in_postgres.server.address = whole
        tables = "SELECT, INSERT, UPDATE, DELETE ON ALL TABLES"
        for rights in (tables, "USAGE ON ALL SEQUENCES"):  # as the guide to batches has it
            in_postgres.change(f"GRANT {rights} IN SCHEMA public TO small")
        in_postgres.server.address = address
        store = in_postgres.open()
        batch = add_rows(store, 3)
        assert store.count_states(batch) == {"new": 3}
        store.rate.acquire()
        store.purge_batch(batch)
    finally:
        in_postgres.close()
        in_postgres.server.address = whole
        in_postgres.change("DROP OWNED BY small")
        in_postgres.change("DROP ROLE small")


def test_without_its_packages_the_error_says_what_to_install() -> None:
    program = """
import sys
sys.modules["psycopg"] = None
from pathlib import Path
from sealpipe.batch.database.opening import open_database
from sealpipe.errors import SettingError
from sealpipe.secret import Secret
try:
    open_database(Path("/"), Secret("postgresql://localhost/x"))
except SettingError as error:
    print(error.remedy)
"""
    done = subprocess.run(
        [sys.executable, "-I", "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "pip install 'sealpipe[batch]'\n"


def test_the_embedded_database_loads_nothing_of_postgresql(tmp_path: Path) -> None:
    program = f"""
import sys
from pathlib import Path
from sealpipe.batch.database.opening import open_database
open_database(Path({str(tmp_path / "state")!r}))
loaded = {{name.partition(".")[0] for name in sys.modules}}
print(sorted(loaded & {{"psycopg", "procrastinate", "httpx", "click"}}))
"""
    done = subprocess.run(
        [sys.executable, "-I", "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
