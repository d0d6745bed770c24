"""A real Docker Engine of the tests' own, with both images: one a run, shared by the workers.

Everything is in the run's temporary folder: base (mmdebstrap), wheels, the engine's data. Needs
root. The images are built from a package index of this machine's own, with a password.
"""

from __future__ import annotations

import base64
import fcntl
import html
import json
import os
import platform
import re
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import trustme

from e2e.gitlab.gitlab_ci import BASE, IMAGE, SERVER_IMAGE
from environment import MACHINE
from support.fake_web import Asked, FakeWeb, Reply
from support.parts import ROOT, library, missing, program

SUITE, PYTHON = "bookworm", "3.11"
PACKAGES = "python3,python3-venv,ca-certificates,rsync"
"""The last for gitlab-ci-local, which uses the base to carry files."""
CANARY = "canary-of-the-index"
"""The password of the index that the image is built from: nothing of the image may hold it."""
PATIENCE = 60


def _connect(url: str, seconds: int) -> Any:
    """The library is of the second tier; the tests of this folder that need no engine are run
    without it.
    """
    return library("docker", "docker").DockerClient(base_url=url, timeout=seconds)


class Engine:
    """A running engine that has both images: `url` for clients, `seconds` by what was waited for.

    `authority` is whose certificates the image was built to trust.
    """

    def __init__(self, url: str, seconds: Mapping[str, float], authority: trustme.CA) -> None:
        self.url, self.seconds, self.authority = url, seconds, authority
        self.client = _connect(url, PATIENCE)

    @property
    def environ(self) -> dict[str, str]:
        """For clients that are programs."""
        return {"DOCKER_HOST": self.url, "DOCKER_BUILDKIT": "0"}

    def run(self, *command: str, **options: Any) -> str:
        """Run a command in a new container of the image; what it wrote to both streams."""
        output = self.client.containers.run(
            IMAGE, list(command), remove=True, stdout=True, stderr=True, **options
        )
        return bytes(output).decode()


@contextmanager
def shared(place: Path) -> Iterator[Engine]:
    """The engine of this run: whoever comes first starts it and builds the image, who leaves last
    ends it.
    """
    if os.geteuid() != 0:
        missing("a Docker Engine can be started by root alone")
    place.mkdir(exist_ok=True)
    with _locked(place):
        about = _about(place)
        if not about:
            about = _started(place)
        _keep(place, {**about, "users": about.get("users", 0) + 1})
    authority = trustme.CA.from_pem(
        (place / "ca.pem").read_bytes(), (place / "ca.key").read_bytes()
    )
    engine = Engine(about["url"], about["seconds"], authority)
    try:
        yield engine
    finally:
        engine.client.close()
        with _locked(place):
            about = _about(place)
            _keep(place, {**about, "users": about["users"] - 1})
            if about["users"] == 1:
                _stop(place, about["pid"])
                (place / "about.json").unlink()


@contextmanager
def _locked(place: Path) -> Iterator[None]:
    with (place / "lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _about(place: Path) -> dict[str, Any]:
    file = place / "about.json"
    found: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    return found


def _keep(place: Path, about: Mapping[str, Any]) -> None:
    (place / "about.json").write_text(json.dumps(about))


def _started(place: Path) -> dict[str, Any]:
    programs = [program(name) for name in ("dockerd", "mmdebstrap", "apt-get", "mount", "umount")]
    memory = place / "m"
    memory.mkdir()
    # In memory, for dpkg waits for the disk after every file. Where it cannot be mounted, it only
    # takes longer.
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4g", "tmpfs", str(memory)],
        check=False,
        capture_output=True,
    )
    seconds: dict[str, float] = {}
    authority = trustme.CA(organization_name="a company")
    authority.cert_pem.write_to_path(str(place / "ca.pem"))
    authority.private_key_pem.write_to_path(str(place / "ca.key"))
    pid = 0
    try:
        pid = _daemon(programs[0], memory)
        url = f"unix://{memory}/s"
        with ThreadPoolExecutor() as pool, _timed(seconds, "base and wheels"):
            wheels = pool.submit(download, memory / "wheels", PYTHON)
            _bootstrap(memory)
            wheels.result()
        client = _connect(url, 600)
        with _timed(seconds, "import"):
            client.api.import_image(
                src=str(memory / "base.tar"), repository=BASE.partition(":")[0], tag="under-test"
            )
            (memory / "base.tar").unlink()
        with _timed(seconds, "build"), serving(memory / "wheels", CANARY) as index:
            whole = {"CA": (place / "ca.pem").read_text(), "REVISION": "0" * 40}
            _build(client, "containers/Dockerfile", IMAGE, index, **whole)
        with _timed(seconds, "server"), serving(memory / "wheels", CANARY) as index:
            _build(client, "containers/server/Dockerfile", SERVER_IMAGE, index, IMAGE=IMAGE)
        client.close()
    except BaseException:
        _stop(place, pid)
        raise
    return {"url": url, "pid": pid, "seconds": seconds}


def _build(client: Any, recipe: str, tag: str, index: str, **arguments: str) -> None:
    client.images.build(
        path=str(ROOT),
        dockerfile=recipe,
        tag=tag,
        network_mode="host",
        rm=True,
        buildargs={"BASE": BASE, "PIP_INDEX_URL": index, **arguments},
    )


@contextmanager
def _timed(seconds: dict[str, float], what: str) -> Iterator[None]:
    began = time.monotonic()
    yield
    seconds[what] = round(time.monotonic() - began, 1)


def _daemon(program_: str, memory: Path) -> int:
    """Its process id. It says itself when it is ready, as it says it to systemd."""
    options = [
        "--iptables=false",
        "--ip6tables=false",
        "--bridge=none",
        "--storage-driver=overlay2",
        "-l",
        "error",
    ]
    folders = [
        "--data-root",
        str(memory / "d"),
        "--exec-root",
        str(memory / "x"),
        "--pidfile",
        str(memory / "pid"),
    ]
    environ = {
        "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin",
        "HOME": str(memory),
        "NOTIFY_SOCKET": f"{memory}/n",
    }
    # On its own, for the worker that ends it may not be the one that starts it.
    command = ["setsid", "--fork", program_, *folders, "-H", f"unix://{memory}/s", *options]
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ready,
        (memory / "log").open("wb") as log,
    ):
        ready.bind(str(memory / "n"))
        ready.settimeout(PATIENCE)
        subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environ, check=True
        )
        try:
            while b"READY=1" not in ready.recv(4096):
                pass
        except TimeoutError:
            missing(f"no Docker Engine starts here: {(memory / 'log').read_text()[-400:]}")
    return int((memory / "pid").read_text())


def _bootstrap(memory: Path) -> None:
    """A minimal Debian with Python, from where this machine has its packages, as a tar file."""
    listed = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME)", "Created-By: Packages"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    mirrors = [
        uri
        for uri, _, codename in (line.partition(" ") for line in listed.splitlines())
        if codename == SUITE
    ]
    if not mirrors:
        missing(f"this machine's packages are not from {SUITE}: there is no base to be made")
    command = [
        "mmdebstrap",
        "--variant=minbase",
        f"--include={PACKAGES}",
        SUITE,
        str(memory / "base.tar"),
        mirrors[0],
    ]
    done = subprocess.run(
        command, env=MACHINE, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]


def _stop(place: Path, pid: int) -> None:
    if pid:
        handle = os.pidfd_open(pid)
        signal.pidfd_send_signal(handle, signal.SIGTERM)
        waiting = select.poll()
        waiting.register(handle, select.POLLIN)
        waiting.poll(30_000)
        os.close(handle)
    subprocess.run(
        ["umount", "--recursive", "--lazy", str(place / "m")], check=False, capture_output=True
    )


LOCKS = ROOT / "actions/_setup/locks"
PARTS = ("build", "base", "aws", "batch", "github", "op", "rehearsal", "server", "vault", "yaml")
USER = "builder"
GLIBC = 36
"""The minor version of the base's C library."""


def download(folder: Path, python: str) -> None:
    """The locked wheels for this Python on this machine's Linux, by this machine's own pip."""
    arch = platform.machine()
    fits = [
        f"manylinux2014_{arch}",
        *(f"manylinux_2_{minor}_{arch}" for minor in range(17, GLIBC + 1)),
    ]
    words = [word for name in fits for word in ("--platform", name)]
    files = [word for part in PARTS for word in ("-r", str(LOCKS / f"{part}.txt"))]
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "-q",
        "--require-hashes",
        "--only-binary=:all:",
        "--no-deps",
    ]
    target = [
        "--python-version",
        python,
        "--implementation",
        "cp",
        "--abi",
        f"cp{python.replace('.', '')}",
    ]
    target += ["--abi", "abi3", "--abi", "none"]
    done = subprocess.run(
        [*command, *target, *words, *files, "-d", str(folder)],
        env=MACHINE,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        missing(f"the locked wheels cannot be had: {done.stderr[-400:]}")


@contextmanager
def serving(folder: Path, password: str) -> Iterator[str]:
    """Serve them by the simple index's protocol, to who has the password; the address, the password
    in it.
    """
    with _Index(
        folder, "Basic " + base64.b64encode(f"{USER}:{password}".encode()).decode()
    ) as index:
        yield f"http://{USER}:{password}@127.0.0.1:{index.port}/simple/"


class _Index(FakeWeb):
    def __init__(self, folder: Path, login: str) -> None:
        super().__init__()
        self._files, self._login = {file.name: file for file in folder.iterdir()}, login

    def answer(self, asked: Asked) -> Reply:
        name = asked.parts[-1]
        if asked.headers.get("authorization") != self._login:
            return Reply(401)
        if name in self._files:
            return Reply(200, self._files[name].read_bytes())
        fitting = [html.escape(file) for file in self._files if _project(file) == name]
        links = "".join(f'<a href="/files/{file}">{file}</a>' for file in fitting)
        page = f"<!DOCTYPE html><html><body>{links}</body></html>"
        return Reply(200 if fitting else 404, page, {"content-type": "text/html"})


def _project(file: str) -> str:
    return re.sub(r"[-_.]+", "-", file.partition("-")[0]).lower()
