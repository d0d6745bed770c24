"""A Kubernetes API server in this process: kmock's emulator, and before it what it lacks: logins,
rights and rules.

kmock stores whatever it is given. The API refuses (API conventions, "Concurrency Control and
Consistency"; Secrets, "Immutable Secrets", "Types of Secret", and the limit of 1 MiB): a second one
of a name (409), a patch that names another resourceVersion than the current one (409), a change of
an immutable Secret's data (422), a key that is none, more than 1 MiB of values, or a typed Secret
without its keys (422).
"""

from __future__ import annotations

import asyncio
import base64
import re
import ssl
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.fake_web import Asked, FrontDoor, Reply
from support.parts import missing
from support.places import BOTH, Place, Values

REQUIRED = {
    "kubernetes.io/tls": {"tls.crt", "tls.key"},
    "kubernetes.io/ssh-auth": {"ssh-privatekey"},
}
LARGEST = 1024 * 1024


def refusal(method: str, there: Any, asked: Any) -> int:
    """The status that the API refuses with; 0 where it does not."""
    if method == "POST":
        return 409 if there is not None else _invalid(asked)
    if there is None:
        return 404
    wanted = asked.get("metadata", {}).get("resourceVersion")
    if wanted is not None and wanted != there["metadata"].get("resourceVersion"):
        return 409
    after = patched(there, asked)
    if there.get("immutable") and after.get("data") != there.get("data"):
        return 422
    return _invalid(after)


def patched(there: Any, patch: Any) -> Any:
    """RFC 7396."""
    if not isinstance(patch, dict):
        return patch
    found = dict(there) if isinstance(there, dict) else {}
    for key, value in patch.items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = patched(found.get(key), value)
    return found


def stamped(asked: Any, there: Any) -> Any:
    """What is written, with the next resourceVersion."""
    number = int(there["metadata"].get("resourceVersion", "1")) + 1 if there is not None else 1
    return {**asked, "metadata": {**asked.get("metadata", {}), "resourceVersion": str(number)}}


def _invalid(secret: Any) -> int:
    data = secret.get("data") or {}
    size = sum(len(base64.b64decode(value, validate=True)) for value in data.values())
    named = all(
        re.fullmatch(r"[-._a-zA-Z0-9]{1,253}", key) and not re.match(r"\.$|\.\.", key)
        for key in data
    )
    annotations = secret["metadata"].get("annotations") or {}
    noted = sum(len(key) + len(value) for key, value in annotations.items())
    whole = REQUIRED.get(secret.get("type", ""), set()) <= data.keys()
    return 0 if named and whole and size <= LARGEST and noted <= 256 * 1024 else 422


TOKEN = "made-up-token-6b1f"


def status(code: int, **headers: str) -> Reply:
    """A refusal in the API's own form."""
    return Reply(code, {"kind": "Status", "code": code}, headers)


class Cluster(FrontDoor):
    """A front that lets a token pass. `writes` are method and body of what wanted to write."""

    def __init__(self, url: str, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(url, tls=tls)
        self.namespaces = {"prod"}
        self.token: str | None = TOKEN
        self.writes: list[tuple[str, Any]] = []
        self._writing = threading.Lock()
        self.allowed = True

    def answer(self, asked: Asked) -> Reply:
        """As the API server would."""
        if self.token is not None and asked.headers.get("authorization") != f"Bearer {self.token}":
            return status(401)
        if asked.method == "PATCH":
            assert asked.headers["content-type"] == "application/merge-patch+json"
        if asked.body and "/secrets" in asked.path:
            with self._writing:
                return self._write(asked.method, asked.path, asked.json)
        if asked.body:  # a review of our own rights
            return Reply(201, {**asked.json, "status": {"allowed": self.allowed}})
        start, _, space = asked.path.rpartition("/")
        if start == "/api/v1/namespaces":  # kmock knows none
            return Reply(200 if space in self.namespaces else 404, {"kind": "Namespace"})
        return super().answer(asked)

    def _write(self, method: str, path: str, asked: Any) -> Reply:
        self.writes.append((method, asked))
        whole = path if method == "PATCH" else f"{path}/{asked['metadata']['name']}"
        found = self.behind.get(whole)
        there = found.json() if found.is_success else None
        space = path.split("/")[4]
        problem = refusal(method, there, asked) if space in self.namespaces else 404
        if problem:
            return status(problem)
        send = self.behind.post if method == "POST" else self.behind.patch
        done = send(path, json=stamped(asked, there))
        assert done.is_success
        return Reply(201 if method == "POST" else 200, self.behind.get(whole).json())

    def read(self, space: str, name: str) -> Any:
        """One, as it is stored."""
        found = self.behind.get(f"/api/v1/namespaces/{space}/secrets/{name}")
        if found.status_code == 404:
            raise LookupError(name)
        return found.json()

    def change(self, space: str, name: str, patch: Mapping[str, Any]) -> None:
        """As somebody else changes it."""
        there = self.read(space, name)
        path = f"/api/v1/namespaces/{space}/secrets/{name}"
        assert self.behind.patch(path, json=stamped({"metadata": {}, **patch}, there)).is_success

    def delete(self, space: str, name: str) -> None:
        """As somebody else deletes it."""
        assert self.behind.delete(f"/api/v1/namespaces/{space}/secrets/{name}").is_success

    def secret(
        self, space: str, name: str, values: Mapping[str, bytes] | None, **more: Any
    ) -> None:
        """Make one."""
        data = (
            None
            if values is None
            else {key: base64.b64encode(value).decode() for key, value in values.items()}
        )
        meta = {"name": name, "namespace": space, "resourceVersion": "1"}
        body = {"kind": "Secret", "metadata": meta, "type": "Opaque"}
        if data is not None:
            body["data"] = data
        self.namespaces.add(space)
        path = f"/api/v1/namespaces/{space}/secrets"
        assert self.behind.post(path, json={**body, **more}).is_success


@contextmanager
def emulator() -> Iterator[str]:
    """kmock, on a socket: its address."""
    try:
        import kmock
    except ImportError:
        missing("kmock is not installed")
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    handler = kmock.KubernetesEmulator()
    server = kmock.Server(handler)

    async def start() -> str:
        await handler.__aenter__()
        await server.__aenter__()
        return str(server.url)

    async def stop() -> None:
        await server.__aexit__(None, None, None)
        await handler.__aexit__(None, None, None)

    try:
        yield asyncio.run_coroutine_threadsafe(start(), loop).result(30)
    finally:
        asyncio.run_coroutine_threadsafe(stop(), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@pytest.fixture
def kmock_url(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """An emulator for each test, and no kubeconfig of anybody's."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    with emulator() as url:
        yield url


@pytest.fixture
def cluster(kmock_url: str) -> Iterator[Cluster]:
    """On plain HTTP, as `kubectl proxy` is."""
    with Cluster(kmock_url) as made:
        yield made


class InKubernetes(Place):
    """kmock's emulator. A Secret's name has no capitals, so that no submission can be in it."""

    name = "k8s"

    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self.url = cluster, cluster.base_url

    def environ(self, url: str = "") -> Mapping[str, str]:
        return {"SEALPIPE_PLUGIN_K8S__SERVER": url or self.url, "SEALPIPE_PLUGIN_K8S__TOKEN": TOKEN}

    def single(self, group: str) -> Sequence[str]:
        return [f"k8s:prod/{group}#{BOTH}"]

    def each(self, group: str) -> Sequence[str]:
        del group
        return []

    def there(self, group: str) -> Values:
        try:
            data = self.cluster.read("prod", group)["data"]
        except LookupError:
            return {}
        return {key: base64.b64decode(value) for key, value in data.items()}

    def writes(self, group: str) -> int:
        return int(self.cluster.read("prod", group)["metadata"]["resourceVersion"])

    def count(self, group: str) -> int:
        return self.writes(group)

    def rotate(self, group: str, password: str) -> None:
        coded = base64.b64encode(password.encode()).decode()
        self.cluster.change("prod", group, {"data": {"password": coded}})
