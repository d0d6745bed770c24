"""Moto's server in a process of its own: AWS's interface on a socket of this machine."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from typing import Any

import boto3
import httpx
from botocore.loaders import JSONFileLoader

from support.parts import ROOT, missing

REGION = "eu-west-1"
KEYS = {"aws_access_key_id": "AKIAMADEUP", "aws_secret_access_key": "made-up"}
ENVIRON = {"AWS_ACCESS_KEY_ID": "AKIAMADEUP", "AWS_SECRET_ACCESS_KEY": "made-up", "AWS_REGION": REGION}

_load = JSONFileLoader.load_file


@cache
def _described(path: str) -> Any:
    return _load(JSONFileLoader(), path)


# Every session of the SDK reads the same descriptions of services again, a quarter of a second each time.
JSONFileLoader.load_file = lambda _, path: _described(path)


class Moto:
    """A running server."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._http = httpx.Client(base_url=url, trust_env=False, timeout=60, verify=False)  # noqa: S501 - it is plain

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
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    program = [sys.executable, "-P", str(ROOT / "tests/plugins/aws/mended_moto.py")]
    process = subprocess.Popen(
        [*program, "-H", "127.0.0.1", "-p", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
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


def _await(url: str, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end and process.poll() is None:
        try:
            httpx.get(f"{url}/moto-api/", trust_env=False, verify=False)  # noqa: S501 - it is plain
            return
        except httpx.HTTPError:
            time.sleep(0.05)
    raise AssertionError("moto's server did not start")
