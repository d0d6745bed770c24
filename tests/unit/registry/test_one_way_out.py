"""A CA and a proxy, given once, serve hvac, botocore and httpx alike: a share whose parts are all
behind one proxy.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sealpipe_rehearsal.running_service import RunningService
from support.aws import ENVIRON, Moto, one_moto
from support.fake_web import Receiver
from support.openbao import Bao, dev_server
from support.terminal import Done, Terminal, created, opened
from support.wires import Intercepting

__all__ = ["one_moto"]

VAULT, AWS, HOOKS = "vault.example", "aws.example", "hooks.example"
"""Hosts that only the proxy knows: loopback is never reached through one."""


@pytest.fixture(scope="module")
def bao() -> Iterator[Bao]:
    with dev_server() as running:
        running.call("POST", "secret/data/db", {"data": {"password": "of Vault"}})
        yield running


@pytest.fixture(scope="module")
def aws(one_moto: Moto) -> Iterator[Moto]:
    one_moto.reset()
    with pytest.MonkeyPatch.context() as patch:
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            patch.delenv(name, raising=False)
            patch.delenv(name.lower(), raising=False)
        one_moto.client("secretsmanager").create_secret(Name="key", SecretString="of AWS")
        yield one_moto


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as running:
        yield running


@pytest.fixture
def proxy(bao: Bao, aws: Moto, receiver: Receiver, tmp_path: Path) -> Iterator[Intercepting]:
    at = {VAULT: bao.addr, AWS: aws.url, HOOKS: receiver.url}
    with Intercepting(
        tmp_path, {host: int(url.split(":")[2].split("/")[0]) for host, url in at.items()}
    ) as running:
        yield running


@pytest.fixture
def user(user: Terminal, bao: Bao, proxy: Intercepting) -> Terminal:
    """Somebody in a company's network: one CA, one proxy, and nothing of either in any backend's
    settings.
    """
    user.environ |= {
        "SEALPIPE_CA_FILE": str(proxy.ca_file),
        "HTTPS_PROXY": proxy.url(),
        "VAULT_ADDR": f"https://{VAULT}",
        "VAULT_TOKEN": bao.root,
        **ENVIRON,
        "SEALPIPE_PLUGIN_AWS__ENDPOINT_URL": f"https://{AWS}",
        "SEALPIPE_PLUGIN_WEBHOOK__UNSIGNED": "1",
    }
    return user


FIELDS = {
    "hvac": "Password=vault:secret/db#password",
    "botocore": "Key=aws-sm:key",
    "httpx": "text:t",
}


def share(user: Terminal, *fields: str, **environ: str | None) -> Done:
    flags = [word for field in fields for word in ("-f", field)]
    return user.sealpipe("share", *flags, "--send", f"webhook:https://{HOOKS}/in", **environ)


def test_all_go_through_the_one_proxy_and_trust_the_one_ca(
    user: Terminal, proxy: Intercepting, receiver: Receiver, service: RunningService
) -> None:
    done = share(user, FIELDS["hvac"], FIELDS["botocore"])
    assert (done.code, done.out) == (0, ""), done
    assert opened(service, receiver.secrets[0]) == {"Password": "of Vault", "Key": "of AWS"}
    assert set(proxy.asked) == {VAULT, AWS, HOOKS}
    assert all(proxy.password.encode() not in bytes(read) for read in proxy.read.values())
    assert all(b"proxy-authorization" not in bytes(read).lower() for read in proxy.read.values())


@pytest.mark.parametrize("library", FIELDS)
def test_without_the_ca_each_reports_an_untrusted_certificate(
    user: Terminal, receiver: Receiver, library: str
) -> None:
    done = share(user, FIELDS[library], SEALPIPE_CA_FILE=None)
    assert (done.code, done.out) == (11 if library == "httpx" else 14, ""), done
    assert "certificate from an authority that is not trusted here" in done.err
    assert receiver.hooks == []


@pytest.mark.parametrize("library", FIELDS)
def test_without_the_login_each_says_that_the_proxy_wants_one(
    user: Terminal, proxy: Intercepting, receiver: Receiver, library: str
) -> None:
    done = share(user, FIELDS[library], HTTPS_PROXY=proxy.url("somebody:canary-5f1e@"))
    assert (done.code, done.out) == (11 if library == "httpx" else 14, ""), done
    assert "requires a login" in done.err
    assert "HTTPS_PROXY" in done.err
    assert "canary-5f1e" not in done.err
    assert (receiver.hooks, proxy.asked) == ([], [])


def test_a_refused_reference_names_itself_and_no_other(
    user: Terminal, service: RunningService
) -> None:
    done = share(user, FIELDS["hvac"], "Key=aws-sm:nothing-there")
    assert (done.code, created(service)) == (14, []), done
    assert "aws-sm:nothing-there" in done.err
    assert "of Vault" not in done.err
