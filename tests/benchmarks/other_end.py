"""The process of `serving.py`, as the benchmarks talk to it."""

from __future__ import annotations

import json
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any, Self


class OtherEnd:
    """Services and a recipient. A context manager."""

    def __init__(self) -> None:
        serving = Path(__file__).with_name("serving.py")
        self._process = subprocess.Popen(
            [sys.executable, serving], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def fresh(self, tag: str = "svc", *, parts: int = 3) -> dict[str, str]:
        """The environment of a new key of as many parts, at a service that has forgotten all
        others.
        """
        environ: dict[str, str] = self._ask({"fresh": tag})["environ"]
        environ["SEALPIPE_API_KEY"] = ".".join(environ["SEALPIPE_API_KEY"].split(".")[:parts])
        return environ

    def receiver(self) -> dict[str, str]:
        """The same for the receiver, which knows no keys and keeps nothing."""
        told = self._ask({"fresh": "svc"})
        return {**told["environ"], "SEALPIPE_BASE_URL": told["receiver"]}

    def check(self, link: str, label: str, value: str, tag: str = "svc") -> None:
        """Open a link as its recipient; AssertionError where it does not hold that one field."""
        found = self._ask({"open": link, "tag": tag})["fields"]
        if found != [[label, sha256(value.encode()).hexdigest()]]:
            raise AssertionError(f"the link of {label} opens to something else")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=30)

    def _ask(self, question: dict[str, Any]) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the other end has gone")
        return json.loads(line)
