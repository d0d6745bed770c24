"""A package index of this machine's own, with a password: what the image is built from."""

from __future__ import annotations

import base64
import html
import platform
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

from support.parts import ROOT, missing

LOCKS = ROOT / "actions/_setup/locks"
PARTS = ("build", "base", "aws", "github", "op", "vault", "yaml")
USER = "builder"
GLIBC = 36
"""The minor version of the base's C library."""


def download(folder: Path, python: str) -> None:
    """The locked wheels for this Python on this machine's Linux, by this machine's own pip."""
    arch = platform.machine()
    fits = [f"manylinux2014_{arch}", *(f"manylinux_2_{minor}_{arch}" for minor in range(17, GLIBC + 1))]
    words = [word for name in fits for word in ("--platform", name)]
    files = [word for part in PARTS for word in ("-r", str(LOCKS / f"{part}.txt"))]
    command = [sys.executable, "-m", "pip", "download", "-q", "--require-hashes", "--only-binary=:all:", "--no-deps"]
    target = ["--python-version", python, "--implementation", "cp", "--abi", f"cp{python.replace('.', '')}"]
    target += ["--abi", "abi3", "--abi", "none"]
    done = subprocess.run(
        [*command, *target, *words, *files, "-d", str(folder)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        missing(f"the locked wheels cannot be had: {done.stderr[-400:]}")


@contextmanager
def serving(folder: Path, password: str) -> Iterator[str]:
    """Serve them by the simple index's protocol, to who has the password; the address, the password in it."""
    files = {file.name: file for file in folder.iterdir()}
    wanted = "Basic " + base64.b64encode(f"{USER}:{password}".encode()).decode()

    class Handler(BaseHTTPRequestHandler):
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            if self.headers.get("authorization") != wanted:
                self._answer(401, b"")
                return
            name = unquote(self.path.rstrip("/").rpartition("/")[2])
            if name in files:
                self._answer(200, files[name].read_bytes())
                return
            fitting = [file for file in files if _project(file) == name]
            links = "".join(f'<a href="/files/{html.escape(file)}">{html.escape(file)}</a>' for file in fitting)
            self._answer(200 if fitting else 404, f"<!DOCTYPE html><html><body>{links}</body></html>".encode())

        def _answer(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("content-type", "text/html")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://{USER}:{password}@127.0.0.1:{server.server_port}/simple/"
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()


def _project(file: str) -> str:
    return re.sub(r"[-_.]+", "-", file.partition("-")[0]).lower()
