"""The way to Vault: certificates, a proxy, a Vault that is sealed, gone, or away for a while."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import trustme

from plugins.vault.conftest import Registries
from plugins.vault.storing import values
from sealpipe.errors import (
    NotConfiguredError,
    PluginError,
    UnavailableError,
)
from sealpipe.plugin import Document
from sealpipe.reference import parse, parse_field
from sealpipe.sources.resolve import Cache, resolve
from support import faults
from support.backends import failed
from support.faults import says
from support.faulty import Faulty
from support.openbao import Bao, server
from support.playing import play
from support.stopwatch import stopwatch

HOST = "vault.example"
"""Behind a proxy: loopback is never reached through one."""
REF = "vault:secret/app/db"


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def ca_file(authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ca") / "ca.pem"
    authority.cert_pem.write_to_path(path)
    return path


@pytest.fixture(scope="module")
def tls_bao(authority: trustme.CA, ca_file: Path) -> Iterator[Bao]:
    certificate = authority.issue_cert("127.0.0.1", HOST)
    chain, key = ca_file.with_name("chain.pem"), ca_file.with_name("key.pem")
    certificate.private_key_pem.write_to_path(key)
    for number, blob in enumerate(certificate.cert_chain_pems):
        blob.write_to_path(chain, append=number > 0)
    with server(ca_file.parent, (chain, key, ca_file), unsealed=True) as bao:
        bao.call("POST", "sys/mounts/kv1", {"type": "kv", "options": {"version": "1"}})
        bao.call("POST", "kv1/a", {"x": "over TLS"})
        yield bao


@pytest.fixture
def proxied() -> Iterator[Callable[..., Faulty]]:
    """Starts servers that stand in a way, and stops them."""
    with ExitStack() as stack:
        yield lambda *each, **how: stack.enter_context(Faulty(("127.0.0.1", 9), *each, **how))


def tell(found: PluginError, kind: type[PluginError], *words: str) -> None:
    assert type(found) is kind, found
    for word in words:
        assert word in found.message, found.message
    assert found.locator == REF or found.locator.startswith("vault:")


def test_a_ca_is_trusted_that_vaults_or_sealpipes_setting_names(
    tls_bao: Bao, ca_file: Path, registry_of: Registries
) -> None:
    at = {"VAULT_ADDR": tls_bao.addr, "VAULT_TOKEN": tls_bao.root}
    for name in ("VAULT_CACERT", "SEALPIPE_CA_FILE"):
        assert values(registry_of({**at, name: str(ca_file)}), "vault:kv1/a#x") == ["over TLS"]


def test_an_untrusted_ca_is_reported(tls_bao: Bao, registry_of: Registries, tmp_path: Path) -> None:
    at = {"VAULT_ADDR": tls_bao.addr, "VAULT_TOKEN": tls_bao.root}
    found = failed(registry_of(at), REF)
    tell(found, NotConfiguredError, "has a certificate from an authority that is not trusted here")
    assert "VAULT_CACERT" in found.remedy
    trustme.CA().cert_pem.write_to_path(tmp_path / "other.pem")
    tell(
        failed(registry_of({**at, "VAULT_CACERT": str(tmp_path / "other.pem")}), REF),
        NotConfiguredError,
        "is not trusted here",
    )


def test_a_ca_file_that_is_none(tls_bao: Bao, registry_of: Registries, tmp_path: Path) -> None:
    at = {
        "VAULT_ADDR": tls_bao.addr,
        "VAULT_TOKEN": tls_bao.root,
        "VAULT_CACERT": str(tmp_path / "none.pem"),
    }
    found = failed(registry_of(at), REF)
    tell(found, NotConfiguredError, "certificates to trust cannot be read")
    assert found.remedy.startswith("check SEALPIPE_CA_FILE, SSL_CERT_FILE, SSL_CERT_DIR and what ")


def test_a_certificate_of_another_host(
    authority: trustme.CA, ca_file: Path, registry_of: Registries, proxied: Callable[..., Faulty]
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("other.example").configure_cert(context)
    at = proxied(tls=context)
    environ = {
        "VAULT_ADDR": f"https://127.0.0.1:{at.port}",
        "VAULT_TOKEN": "x",
        "VAULT_CACERT": str(ca_file),
    }
    tell(failed(registry_of(environ), REF), NotConfiguredError, "a certificate for another host")


def test_http_where_vault_speaks_tls_and_the_other_way(
    tls_bao: Bao, bao: Bao, registry_of: Registries
) -> None:
    found = failed(
        registry_of({"VAULT_ADDR": f"http://127.0.0.1:{tls_bao.port}", "VAULT_TOKEN": "x"}), REF
    )
    tell(found, NotConfiguredError, "Vault speaks TLS there")
    found = failed(
        registry_of({"VAULT_ADDR": f"https://127.0.0.1:{bao.port}", "VAULT_TOKEN": "x"}), REF
    )
    tell(found, NotConfiguredError, "does not speak TLS")


def test_a_proxy_is_gone_through_and_sees_no_token(
    tls_bao: Bao,
    ca_file: Path,
    registry_of: Registries,
    proxied: Callable[..., Faulty],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    proxy = proxied(then=faults.tunnels(("127.0.0.1", tls_bao.port)))
    monkeypatch.setenv("HTTPS_PROXY", f"http://us%40er:pass@127.0.0.1:{proxy.port}")
    environ = {
        "VAULT_ADDR": f"https://{HOST}",
        "VAULT_TOKEN": tls_bao.root,
        "SEALPIPE_CA_FILE": str(ca_file),
    }
    assert values(registry_of(environ), "vault:kv1/a#x") == ["over TLS"]
    (seen,) = proxy.received()
    assert (seen.method, seen.target) == ("CONNECT", f"{HOST}:443")
    assert seen.header("proxy-authorization") == "Basic dXNAZXI6cGFzcw=="
    assert tls_bao.root.encode() not in seen.head


def test_a_sealed_vault(tmp_path: Path, registry_of: Registries) -> None:
    with server(tmp_path, unsealed=False) as sealed:
        registry = registry_of({"VAULT_ADDR": sealed.addr, "VAULT_TOKEN": sealed.root})
        tell(failed(registry, REF), UnavailableError, "Vault is sealed")
        assert "unseal" in failed(registry, REF).remedy
        with pytest.raises(UnavailableError, match="Vault is sealed"):
            registry.check("source", "vault")


def test_a_vault_that_is_not_there_is_given_up_once_for_all_references(
    registry_of: Registries, proxied: Callable[..., Faulty]
) -> None:
    at = proxied(then=faults.holds_before)
    environ = {
        "VAULT_ADDR": f"http://127.0.0.1:{at.port}",
        "VAULT_TOKEN": "x",
        "VAULT_CLIENT_TIMEOUT": "0.3",
    }
    registry = registry_of(environ)
    locators = [registry.locate(parse(f"vault:secret/{number}/x")) for number in range(50)]
    with stopwatch() as seconds:
        answers = registry.fetch({"vault": locators})
        assert seconds() < 7, "not one after the other: that is fifteen seconds"
    assert {type(answer) for answer in answers.values()} == {UnavailableError}
    assert {answer.locator for answer in answers.values()} == {str(locator) for locator in locators}


def test_an_outage_that_ends_is_not_reported(bao: Bao, registry_of: Registries) -> None:
    with Faulty(("127.0.0.1", bao.port), says(503), says(429)) as at:
        registry = registry_of(
            {"VAULT_ADDR": f"http://127.0.0.1:{at.port}", "VAULT_TOKEN": bao.root}
        )
        cache: Cache = {}
        waits: list[float] = []
        play(
            lambda: resolve([parse_field("vault:secret/app/db#user")], lambda: registry, cache),
            wait=waits.append,
        )
        registry.close()
    (answer,) = cache.values()
    assert isinstance(answer, Document)
    assert dict(answer.content)["user"] == "app"  # type: ignore[call-overload]
    assert len(waits) == 2
