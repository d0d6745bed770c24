"""Builds the documentation's site, and serves it as a static host does."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from support.parts import ROOT

_BUILD = """
import gc, sys
from functools import cache
from sphinx.cmd.build import main
from sphinx.search.en import SearchEnglish
gc.disable()
SearchEnglish.stem = cache(SearchEnglish.stem)
sys.exit(main(sys.argv[1:]))
"""
"""What is made stays to the end: to look through it for garbage takes a quarter of the time. And
each word has its stem looked for once, not wherever it stands.
"""


def build(folder: Path) -> None:
    """Build it, once for a whole run of the gate: a warning is an error, and so is a reference that
    leads nowhere.
    """
    words = ["-W", "--keep-going", "-n", "-q", "-d", f"{folder}.doctrees", ROOT / "docs", folder]
    done = subprocess.run(
        [sys.executable, "-c", _BUILD, *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
    )
    assert done.returncode == 0, done.stdout + done.stderr


class Handler(SimpleHTTPRequestHandler):
    """Sends 404.html where there is no file, and says nothing."""

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        if code != HTTPStatus.NOT_FOUND:
            super().send_error(code, message, explain)
            return
        body = Path(self.directory, "404.html").read_bytes()
        self.send_response(code)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Nothing."""


@contextmanager
def served(folder: Path) -> Iterator[int]:
    """The port on loopback that serves a folder."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder))) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()
