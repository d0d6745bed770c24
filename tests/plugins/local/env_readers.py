"""Whoever reads a dotenv file: shells, python-dotenv, Docker's client, our own source.

Each is real, and run once.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socketserver
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler
from pathlib import Path

from dotenv import dotenv_values

from sealpipe.errors import PluginError
from sealpipe.registry import Registry
from support.parts import program
from support.terminal import PATIENCE

Reader = Callable[[Path, Sequence[str]], dict[str, str | None]]
"""What a file gives for some keys; None for one that it does not set."""

_SHELLS: Mapping[str, Sequence[str]] = {
    "dash": ["dash"],
    "bash": ["bash", "--norc"],
    "bash as sh": ["bash", "--norc", "--posix"],
    "busybox": ["busybox", "sh"],
}


def shell(
    command: Sequence[str],
    file: Path,
    keys: Sequence[str],
    *,
    locale: str = "C",
    quiet: bool = True,
) -> dict[str, str | None]:
    """`set -a; . FILE` in a shell that has nothing in its environment, and then each variable, if
    it is set.

    AssertionError where it complains, unless `quiet` is False.
    """
    asked = "".join(f'printf \'%s%s\\0\' "${{{key}+=}}" "${{{key}-}}"\n' for key in keys)
    script = file.with_name(f"{file.name}.script")
    script.write_text(f"set -a\n. '{file.absolute()}'\n{asked}")
    done = subprocess.run(
        [program(command[0]), *command[1:], str(script)],
        env={"HOME": "/home/of/someone", "PWD": "/", "LC_ALL": locale},
        cwd=file.parent,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    assert not quiet or not done.stderr, done.stderr[:2000]
    told = done.stdout.decode("utf-8", "surrogateescape").split("\0")
    return {key: text[1:] if text else None for key, text in zip(keys, told, strict=False)}


def python_dotenv(file: Path, keys: Sequence[str]) -> dict[str, str | None]:
    """As an application reads it, with its interpolation."""
    found = dotenv_values(file)
    return {key: found.get(key) for key in keys}


def our_source(file: Path, keys: Sequence[str]) -> dict[str, str | None]:
    """`dotenv:FILE` of sealpipe."""
    from sealpipe.reference import parse
    from sealpipe.sources.documents import parse_document

    registry = Registry(environ={})
    content = registry.source("dotenv").fetch(registry.locate(parse(f"dotenv:{file}"))).content
    assert isinstance(content, bytes)
    found = parse_document(content, "dotenv", str(file))
    return {key: found.get(key) for key in keys}


def docker(file: Path, keys: Sequence[str]) -> dict[str, str | None]:
    """`docker create --env-file FILE`: the client reads the file, and what it sends to its engine
    is looked at.
    """
    with _engine() as (address, sent):
        environ = {"PATH": os.defpath, "HOME": str(file.parent), "DOCKER_CONFIG": str(file.parent)}
        _told(
            [program("docker"), "-H", address, "create", "--env-file", str(file), "image"],
            environ,
            file.parent,
        )
    return _last(sent[0]["Env"], keys)


def _told(command: Sequence[str], environ: Mapping[str, str], folder: Path) -> str:
    """What a program that ends well prints."""
    done = subprocess.run(
        command,
        env=environ,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr[:2000]
    return done.stdout


def fake_docker(file: Path, keys: Sequence[str]) -> dict[str, str | None]:
    """The same by Docker's documentation, for machines without its client: lines, each at its first
    `=`, no quotes.
    """
    data = file.read_bytes().removeprefix(b"\xef\xbb\xbf")
    told = []
    for raw in data.split(b"\n"):
        assert len(raw) < 64 * 1024, "token too long"
        line = raw.removesuffix(b"\r").decode().lstrip()
        name, equals, _ = line.partition("=")
        if not line or line.startswith("#") or not equals:
            continue
        assert name, "no variable name on line"
        assert not set(name) & set(" \t"), "contains whitespaces"
        told.append(line)
    return _last(told, keys)


def readers() -> dict[str, Reader]:
    """All that are here; dash, bash and python-dotenv always are."""
    found: dict[str, Reader] = {
        name: partial(shell, command)
        for name, command in _SHELLS.items()
        if name != "busybox" or shutil.which(name)
    }
    found["bash in UTF-8"] = partial(shell, _SHELLS["bash"], locale="C.UTF-8")
    found["python-dotenv"] = python_dotenv
    found["our source"] = our_source
    found["docker"] = docker if shutil.which("docker") else fake_docker
    return found


def node_file(file: Path, keys: Sequence[str]) -> dict[str, str | None]:
    """`node --env-file=FILE`, Node's own."""
    return _node(["--env-file", str(file)], "process.env", keys, file)


def node_dotenv(file: Path, keys: Sequence[str]) -> dict[str, str | None]:
    """The package `dotenv` of npm."""
    return _node(
        [],
        f"require('dotenv').parse(require('fs').readFileSync({json.dumps(str(file))}))",
        keys,
        file,
    )


def _node(
    options: Sequence[str], found: str, keys: Sequence[str], file: Path
) -> dict[str, str | None]:
    environ = {name: os.environ[name] for name in ("PATH", "NODE_PATH") if name in os.environ}
    told = json.loads(
        _told(
            [program("node"), *options, "-e", f"console.log(JSON.stringify({found}))"],
            environ,
            file.parent,
        )
    )
    return {key: told.get(key) for key in keys}


def node_readers() -> dict[str, Reader]:
    """Those of Node that are here.

    A program that reads a file for another language is a reader, too.
    """
    found: dict[str, Reader] = {}
    if shutil.which("node"):
        for name, read in (("node --env-file", node_file), ("dotenv of npm", node_dotenv)):
            with contextlib.suppress(AssertionError), tempfile.TemporaryDirectory() as folder:
                (Path(folder) / "env").write_text("A=1\n")
                found |= {name: read} if read(Path(folder) / "env", ["A"]) == {"A": "1"} else {}
    return found


READERS = ("dash", "bash", "python-dotenv", "our source", "docker")


def attempt(name: str, file: Path, keys: Sequence[str]) -> dict[str, str | None] | None:
    """What one of them makes of any file, whatever it complains about; None where it refuses the
    file.
    """
    try:
        if name in _SHELLS:
            return shell(_SHELLS[name], file, keys, quiet=False)
        return {"python-dotenv": python_dotenv, "our source": our_source, "docker": fake_docker}[
            name
        ](file, keys)
    except (AssertionError, PluginError, UnicodeDecodeError):
        return None


def _last(lines: Sequence[str], keys: Sequence[str]) -> dict[str, str | None]:
    found = dict(line.partition("=")[::2] for line in lines)
    return {key: found.get(key) for key in keys}


@contextmanager
def _engine() -> Iterator[tuple[str, list[dict[str, list[str]]]]]:
    """A fake of Docker's engine, of as much of its public API as `docker create` asks: it keeps
    what it is sent.
    """
    sent: list[dict[str, list[str]]] = []

    class Engine(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer(200, b"OK")

        do_HEAD = do_GET  # noqa: N815

        def do_POST(self) -> None:
            sent.append(json.loads(self._body()))
            self._answer(201, b'{"Id": "0123456789ab", "Warnings": []}')

        def _body(self) -> bytes:
            if "chunked" not in self.headers.get("Transfer-Encoding", ""):
                return self.rfile.read(int(self.headers["Content-Length"]))
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return body

        def _answer(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Api-Version", "1.41")
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def address_string(self) -> str:
            return "a socket"

        def log_message(self, *_: object) -> None:
            pass

    with tempfile.TemporaryDirectory() as folder:  # a socket's path must be short
        path = f"{folder}/s"
        with socketserver.ThreadingUnixStreamServer(path, Engine) as server:
            server.daemon_threads = True
            thread = threading.Thread(target=server.serve_forever, args=(0.01,))
            thread.start()
            try:
                yield f"unix://{path}", sent
            finally:
                server.shutdown()
                thread.join()
