"""The image, built by a real Docker Engine, and the templates as jobs in it."""

from __future__ import annotations

import json
import re
import socket
import ssl
import subprocess
import threading
import time
import tomllib
from collections.abc import Callable

from e2e.gitlab.engine import CANARY, Engine
from e2e.gitlab.gitlab_ci import (
    ANSWERED,
    BASE,
    BOUND,
    IMAGE,
    SUBMITS,
    Pipeline,
    log_in,
    read_dotenv,
)
from sealpipe_rehearsal.running_service import RunningService
from support.ci_jobs import batch_file
from support.openbao import Bao
from support.parts import ROOT, program
from support.terminal import addresses, opened

BATCH = batch_file("file:/tmp/{name}.link")
READ_ONLY = {"read_only": True, "tmpfs": {"/tmp": ""}, "network_mode": "host"}


def test_a_container_of_any_user_in_group_0_shares_with_a_read_only_root(
    engine: Engine, service: RunningService
) -> None:
    key = service.create_key().reveal()
    for user in (None, "1000680000:0"):
        environ = {
            **addresses(service),
            "SEALPIPE_API_KEY": key,
            "DB_PASSWORD": "canary-of-a-share",
        }
        environ["SEALPIPE_STATE_DIR"] = "/tmp/state"
        script = 'sealpipe share --field env:DB_PASSWORD --title "$(id -u):$(id -g)" 2>/dev/null'
        link = engine.run("sh", "-c", script, environment=environ, user=user, **READ_ONLY)
        assert opened(service, link) == {"DB_PASSWORD": "canary-of-a-share"}
    titles = [
        json.loads(seen.body)["title"] for seen in service.seen() if seen.target == "/v1/shares"
    ]
    assert titles == ["10001:0", "1000680000:0"]


def test_its_size_and_how_fast_it_starts(
    engine: Engine, record_property: Callable[[str, object], None]
) -> None:
    image, base = engine.client.images.get(IMAGE), engine.client.images.get(BASE)
    own = (image.attrs["Size"] - base.attrs["Size"]) / 1e6
    fresh = [_seconds(engine, "sealpipe", "--version") for _ in range(3)]
    bare = [_seconds(engine, "true") for _ in range(3)]
    took = engine.run("sh", "-c", TIMING, **READ_ONLY).splitlines()
    assert len(took) == 2
    record_property(
        "figure",
        (
            f"image: {own:.0f} MB over a base of {base.attrs['Size'] / 1e6:.0f} MB; made in "
            f"{engine.seconds} s"
        ),
    )
    started = f"`sealpipe --version` {min(fresh):.2f} s, `true` {min(bare):.2f} s"
    record_property("figure", f"a new container: {started}; within one: {', '.join(took)}")
    assert own < 130
    assert min(fresh) - min(bare) < 2


TIMING = """python3 -c '
import subprocess, time
for words in (["--version"], ["share", "--help"]):
    began = time.perf_counter()
    subprocess.run(["sealpipe", *words], stdout=subprocess.DEVNULL, check=True)
    print(" ".join(words), round(time.perf_counter() - began, 2), "s")
'"""


def _seconds(engine: Engine, *command: str) -> float:
    began = time.monotonic()
    engine.run(*command, **READ_ONLY)
    return time.monotonic() - began


def test_nothing_of_the_index_that_it_was_built_from_is_in_it(engine: Engine) -> None:
    image = engine.client.images.get(IMAGE)
    assert CANARY not in json.dumps([image.history(), image.attrs])
    script = (
        "grep -rlF canary-of-the-in''dex / --exclude-dir=proc --exclude-dir=sys 2>/dev/null; "
        "echo searched"
    )
    assert engine.run("sh", "-c", script, user="0:0", network_mode="none") == "searched\n"


def test_every_module_is_compiled_and_is_never_looked_at_again(engine: Engine) -> None:
    script = """
import pathlib, sys
root = pathlib.Path("/opt/sealpipe/lib")
sources = [file for file in root.rglob("*.py") if file.stem.isidentifier()]
compiled = lambda file: list(file.parent.glob(f"__pycache__/{file.stem}.*.pyc"))
lacking = [str(file) for file in sources if not compiled(file)]
flags = {file.read_bytes()[4:8] for file in root.rglob("*.pyc")}
print(len(sources) > 500, lacking, flags)
"""
    assert engine.run("python3", "-c", script, **READ_ONLY) == "True [] {b'\\x01\\x00\\x00\\x00'}\n"


def test_it_trusts_the_ca_that_it_was_built_with(engine: Engine) -> None:
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    engine.authority.issue_cert("localhost").configure_cert(trusting)
    with socket.create_server(("127.0.0.1", 0)) as door:
        port = door.getsockname()[1]

        def answer() -> None:
            with door.accept()[0] as raw, trusting.wrap_socket(raw, server_side=True) as line:
                line.sendall(b"trusted")

        thread = threading.Thread(target=answer)
        thread.start()
        script = f"""
import socket, ssl
context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
context.load_verify_locations(capath="/etc/ssl/certs")
raw = socket.create_connection(("127.0.0.1", {port}))
print(context.wrap_socket(raw, server_hostname="localhost").recv(99).decode())
"""
        assert engine.run("python3", "-c", script, **READ_ONLY) == "trusted\n"
        thread.join(10)


def test_its_structure_is_what_the_test_file_says(engine: Engine) -> None:
    done = subprocess.run(
        [
            program("container-structure-test"),
            "test",
            "--image",
            IMAGE,
            "--config",
            str(ROOT / "containers/image-tests/image.yaml"),
        ],
        env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", **engine.environ},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "PASS" in done.stdout
    labels = engine.client.images.get(IMAGE).labels
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert labels["org.opencontainers.image.version"] == version
    assert labels["org.opencontainers.image.revision"] == "0" * 40


def test_the_templates_run_as_jobs_in_the_image(
    engine: Engine, pipeline: Pipeline, service: RunningService, one_bao: Bao
) -> None:
    log_in(pipeline, one_bao)
    pipeline.variables["DB_PASSWORD"] = "canary-of-a-job"
    file = pipeline.place / "fields.txt"
    file.write_text("# a comment\nPassword=env:DB_PASSWORD\n")
    (pipeline.place / "vendors.toml").write_text(BATCH)
    ran = pipeline.run(
        ("share", {"stage": "before", "fields-file": "fields.txt", "seal-link": "true"}),
        (
            "request",
            {
                "stage": "before",
                "job-name": "ask",
                "ask": "Staging password\nuser=User name:text\n",
            },
        ),
        (
            "request",
            {
                "stage": "before",
                "job-name": "ask-more",
                "ask": "More",
                "receipt": "more",
                "dotenv-prefix": "MORE_",
            },
        ),
        (
            "collect",
            {
                "stage": "after",
                "job-name": "store",
                "requests": "sealpipe-request.json",
                "to": "vault:secret/vendor/in-the-image#password=staging_password,user=user",
                "after": "expire",
            },
        ),
        (
            "collect",
            {
                "stage": "after",
                "job-name": "look",
                "requests": "./more",
                "to": "dotenv:/tmp/env#A=more",
            },
        ),
        ("expire", {"shares": "$SHARE_SHORT_CODE", "rules": [{"when": "always"}]}),
        (
            "batch",
            {"stage": "before", "job-name": "plan", "file": "vendors.toml", "command": "plan"},
        ),
        (
            "batch",
            {
                "stage": "deploy",
                "job-name": "begin",
                "file": "vendors.toml",
                "plan": "sealpipe-plan.json",
                "begin": "true",
            },
        ),
        ("batch", {"stage": "after", "job-name": "go-on", "file": "vendors.toml"}),
        docker=engine.environ,
        vendor=SUBMITS,
        tell={
            "stage": "after",
            "image": IMAGE,
            "script": [
                "id -u",
                'python3 -c "import procrastinate, psycopg"',
                f"sealpipe unseal {BOUND} --link-file link --sealed-file sealpipe-link.sealed",
            ],
            "artifacts": {"paths": ["link"]},
        },
    )
    assert ran.code == 0, ran.log
    assert re.search(r"^tell +> 10001$", ran.log, re.MULTILINE)
    assert one_bao.call("GET", "secret/data/vendor/in-the-image")["data"] == ANSWERED
    asked = json.loads(ran.artifact("ask", "sealpipe-request.json").read_text())["short_code"]
    assert any(seen.method == "DELETE" and seen.target.endswith(asked) for seen in service.seen())
    assert "WARN 15" in ran.log
    assert re.findall(r"^(begin|go-on) +> (?!acme: )(.+)$", ran.log, re.MULTILINE) == [
        ("begin", "vendors\t1 row: 1 waiting"),
        ("go-on", "vendors\t1 row: 1 waiting"),
    ], "the second has the first one's cache"
    code = read_dotenv(ran.report("sealpipe-share"))["SHARE_SHORT_CODE"]
    assert f"expired {code}" in ran.log
    assert (
        json.loads(ran.artifact("sealpipe-share", "sealpipe-share.json").read_text())["short_code"]
        == code
    )
    assert "canary-of-a-job" not in ran.log
    assert ANSWERED["password"] not in ran.log
    fragment = ran.artifact("tell", "link").read_text().partition("#")[2].strip()
    assert len(fragment) > 40
    assert fragment not in ran.log
