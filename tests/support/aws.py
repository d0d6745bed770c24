"""Moto's server in a process of its own: AWS's interface on a socket of this machine; and a front
before it.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import boto3
import httpx
import pytest
from botocore import hooks
from botocore.hooks import EventAliaser
from botocore.loaders import JSONFileLoader, Loader

from support.fake_web import Asked, FakeWeb, Fault, FrontDoor, Reply, first
from support.parts import ROOT, missing
from support.places import BOTH, Place, Values
from support.ports import free_port

STORE = "SEALPIPE_STORE__OTHER__"
DEFAULT = "SEALPIPE_PLUGIN_AWS__"
REGION = "eu-west-1"
KEYS = {"aws_access_key_id": "AKIAMADEUP", "aws_secret_access_key": "made-up"}
ENVIRON = {
    "AWS_ACCESS_KEY_ID": "AKIAMADEUP",
    "AWS_SECRET_ACCESS_KEY": "made-up",
    "AWS_REGION": REGION,
}

_load = JSONFileLoader.load_file


@cache
def _described(path: str) -> Any:
    return _load(JSONFileLoader(), path)


# Every session of the SDK reads the same descriptions of services again, a quarter of a second each
# time.
JSONFileLoader.load_file = lambda _, path: _described(path)

_find_services = Loader.list_available_services
_services: dict[tuple[str, ...], list[str]] = {}


def _list_services(loader: Loader, type_name: str) -> list[str]:
    key = (type_name, *loader.search_paths)
    if key not in _services:
        _services[key] = _find_services(loader, type_name)
    return _services[key]


# Every client looks through the folders of all 400 services, 30 ms.
Loader.list_available_services = _list_services

_event_names: dict[str, str] = {}
_begin_aliaser = EventAliaser.__init__


def _begin_with_names(aliaser: EventAliaser, *given: Any) -> None:
    _begin_aliaser(aliaser, *given)
    aliaser._alias_name_cache = _event_names


# Every session translates the names of 130 events, and looks at the signature of each handler:
# nine of sixteen milliseconds.
EventAliaser.__init__ = _begin_with_names
_takes_any = lru_cache(1000)(hooks.accepts_kwargs)
hooks.accepts_kwargs = lambda handler: _takes_any(getattr(handler, "__func__", handler))


class Moto:
    """A running server."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._http = httpx.Client(
            base_url=url,
            trust_env=False,
            timeout=60,
            verify=False,  # noqa: S501 - it is plain
        )

    def client(self, service: str, region: str = REGION, **keys: str) -> Any:
        """The vendor's own client, to set up and to compare with."""
        return _client(self.url, service, region, frozenset({**KEYS, **keys}.items()))

    def close(self) -> None:
        self._http.close()

    def reset(self) -> None:
        """Forget everything."""
        assert self._http.post("/moto-api/reset").status_code == 200


@cache
def _client(url: str, service: str, region: str, keys: frozenset[tuple[str, str]]) -> Any:
    return boto3.session.Session(region_name=region, **dict(keys)).client(service, endpoint_url=url)


@contextmanager
def moto() -> Iterator[Moto]:
    """A server that answers."""
    if find_spec("moto") is None:
        missing("moto's server is not installed")
    port = free_port()
    program = [sys.executable, "-P", str(ROOT / "tests/plugins/aws/mended_moto.py")]
    process = subprocess.Popen(
        [*program, "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        url = f"http://127.0.0.1:{port}"
        _await(url, process)
        running = Moto(url)
        yield running
        running.close()
    finally:
        process.kill()
        process.wait()


class Call(Asked):
    """A request as AWS has them: what for, signed by whom, and its parameters."""

    @property
    def operation(self) -> str:
        return self.headers.get("x-amz-target", "").rpartition(".")[2] or self.members.get(
            "Action", ""
        )

    @property
    def signer(self) -> str:
        return self.headers.get("authorization", "").partition("Credential=")[2].partition("/")[0]

    @property
    def parameters(self) -> dict[str, Any]:
        found: dict[str, Any] = self.json
        return found


@dataclass(frozen=True)
class Refusal:
    """An error as AWS answers it: in JSON, or in XML to STS, which is asked by forms."""

    status: int
    code: str
    message: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, _fake: FakeWeb, asked: Asked) -> Reply:
        if "x-amz-target" in asked.headers:
            return Reply(
                self.status,
                json.dumps({"__type": self.code, "message": self.message}).encode(),
                self.headers,
            )
        error = f"<Type>Sender</Type><Code>{self.code}</Code><Message>{self.message}</Message>"
        whole = f"<ErrorResponse><Error>{error}</Error><RequestId>1</RequestId></ErrorResponse>"
        return Reply(self.status, whole.encode(), self.headers)


class Front(FrontDoor):
    """A server before moto."""

    kind = Call
    asked: list[Call]  # type: ignore[assignment]

    @property
    def operations(self) -> list[str]:
        """What was asked for, in order."""
        return [asked.operation for asked in self.asked]

    def deny(self, operation: str, code: str = "AccessDeniedException", status: int = 400) -> None:
        """Refuse an operation."""
        refusal = Refusal(status, code)  # type: ignore[attr-defined]
        self.rule = lambda asked: refusal if asked.operation == operation else None

    def once(self, operation: str, fault: Fault) -> None:
        """What happens to the first such call."""
        self.rule = first(lambda asked: asked.operation == operation, fault)


@cache
def _of_this_process() -> Moto:
    """One for all folders: to import what it serves takes it two seconds."""
    stack = ExitStack()
    running = stack.enter_context(moto())
    atexit.register(stack.close)
    return running


@pytest.fixture(scope="session")
def one_moto() -> Moto:
    """It holds what earlier tests left there."""
    return _of_this_process()


@pytest.fixture
def aws(one_moto: Moto, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Moto:
    """AWS without anything in it, and a machine where nothing of AWS is set."""
    for name in [
        name for name in os.environ if name.startswith("AWS_") or name.lower().endswith("_proxy")
    ]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    one_moto.reset()
    return one_moto


@pytest.fixture
def front(aws: Moto) -> Iterator[Front]:
    """What stands between sealpipe and moto."""
    with Front(aws.url) as front:
        yield front


def _await(url: str, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end and process.poll() is None:
        try:
            httpx.get(f"{url}/moto-api/", trust_env=False, verify=False)  # noqa: S501 - it is plain
            return
        except httpx.HTTPError:
            time.sleep(0.05)
    raise AssertionError("moto's server did not start")


class _InAws(Place):
    def __init__(self, aws: Moto) -> None:
        self.aws, self.url = aws, aws.url

    def environ(self, url: str = "") -> Mapping[str, str]:
        more = {
            "AWS_SECRET_ACCESS_KEY": "made-up-k3y-of-the-tests",
            "AWS_EC2_METADATA_DISABLED": "true",
        }
        more |= {"SEALPIPE_PLUGIN_AWS__ENDPOINT_URL": url or self.url}
        return {**ENVIRON, **more}


class InAwsSm(_InAws):
    """Secrets Manager."""

    name = "aws-sm"

    def single(self, group: str) -> Sequence[str]:
        return [f"aws-sm:{group}#{BOTH}"]

    def there(self, group: str) -> Values:
        client = self.aws.client("secretsmanager")
        try:
            found = client.get_secret_value(SecretId=group)
        except client.exceptions.ResourceNotFoundException:
            return {}
        return {key: value.encode() for key, value in json.loads(found["SecretString"]).items()}

    def writes(self, group: str) -> Any:
        found = self.aws.client("secretsmanager").list_secret_version_ids(
            SecretId=group, IncludeDeprecated=True
        )
        return sorted(version["VersionId"] for version in found["Versions"])

    def rotate(self, group: str, password: str) -> None:
        members = {key: value.decode() for key, value in self.there(group).items()} | {
            "password": password
        }
        self.aws.client("secretsmanager").put_secret_value(
            SecretId=group, SecretString=json.dumps(members)
        )

    def count(self, group: str) -> int:
        return len(self.writes(group))

    def groups(self, group: str) -> list[str]:
        filters = [{"Key": "name", "Values": [f"{group}/"]}]
        return [
            each["Name"]
            for each in self.aws.client("secretsmanager").list_secrets(Filters=filters)[
                "SecretList"
            ]
        ]


class InAwsSsm(_InAws):
    """Parameter Store."""

    name = "aws-ssm"

    def single(self, group: str) -> Sequence[str]:
        return [f"aws-ssm:/{group}/#{BOTH}"]

    def _found(self, group: str) -> Any:
        return self.aws.client("ssm").get_parameters_by_path(
            Path=f"/{group}/", WithDecryption=True
        )["Parameters"]

    def there(self, group: str) -> Values:
        return {
            each["Name"].rpartition("/")[2]: each["Value"].encode() for each in self._found(group)
        }

    def writes(self, group: str) -> Any:
        return {each["Name"]: each["Version"] for each in self._found(group)}

    def rotate(self, group: str, password: str) -> None:
        name = f"/{group}/password"
        self.aws.client("ssm").put_parameter(
            Name=name, Value=password, Type="SecureString", Overwrite=True
        )

    def count(self, group: str) -> int:
        return max(self.writes(group).values())

    def groups(self, group: str) -> list[str]:
        found = self.aws.client("ssm").get_parameters_by_path(Path=f"/{group}/", Recursive=True)[
            "Parameters"
        ]
        return sorted({each["Name"].strip("/").rpartition("/")[0] for each in found})
