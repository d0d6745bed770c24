"""The image of a service of one's own, and its compose file."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping
from ipaddress import ip_address, ip_network
from typing import Any

import yaml

from e2e.gitlab.engine import CANARY, Engine
from e2e.gitlab.gitlab_ci import IMAGE, SERVER_IMAGE
from support.own_service import read_exports, wait_for
from support.parts import ROOT, check_schema, library, program

FOLDER = ROOT / "containers/server"
RECIPE = (FOLDER / "Dockerfile").read_text(encoding="utf-8")
COMPOSE = FOLDER / "compose.yaml"
SEALED_OFF: Mapping[str, Any] = {
    "user": "1000680000:0",
    "read_only": True,
    "cap_drop": ["ALL"],
    "security_opt": ["no-new-privileges:true"],
}
URL = "http://127.0.0.1:8080"
DAY = """
set -eu
link=$(sealpipe share -f Password=env:CANARY)
test "$(echo "$link" | sealpipe rehearsal open)" = "Password: $CANARY"
sealpipe doctor >&2
"""


def test_any_user_of_group_0_serves_from_a_volume_with_a_read_only_root(engine: Engine) -> None:
    containers, volume = engine.client.containers, engine.client.volumes.create()
    environ = {
        "SEALPIPE_SERVER_PUBLIC_URL": URL,
        "SEALPIPE_SERVER_TRUSTED_PROXY": "10.213.77.1/32",
    }
    options = {
        **SEALED_OFF,
        "environment": environ,
        "volumes": {volume.name: {"bind": "/data", "mode": "rw"}},
        "network_mode": "none",
    }
    made = containers.run(SERVER_IMAGE, ["init"], remove=True, stderr=False, **options)
    exports = read_exports(bytes(made).decode())
    server = containers.run(SERVER_IMAGE, detach=True, **options)
    try:
        probe = server.attrs["Config"]["Healthcheck"]["Test"]
        assert probe[0] == "CMD"
        wait_for(lambda: server.exec_run(probe[1:]).exit_code == 0)
        day = containers.run(
            IMAGE,
            ["sh", "-c", DAY],
            remove=True,
            **SEALED_OFF,
            tmpfs={"/tmp": ""},
            environment={**exports, "CANARY": "canary-of-a-day", "SEALPIPE_STATE_DIR": "/tmp/s"},
            network_mode=f"container:{server.id}",
            stderr=True,
        )
        assert "your own service" in bytes(day).decode()
        backup = "sealpipe server database backup copy.db && stat -c %a:%u:%g copy.db"
        code, said = server.exec_run(["sh", "-c", backup])
        assert (code, bytes(said).decode().split()[-1]) == (0, "600:1000680000:0")
        restored = server.exec_run(
            ["sealpipe", "server", "key", "list", "--database", "sqlite:////data/copy.db"]
        )
        assert (restored.exit_code, bytes(restored.output).count(b"shares:write")) == (0, 1)
        server.stop()
        assert server.wait()["StatusCode"] == 0
        log = server.logs().decode()
    finally:
        server.remove(force=True)
        volume.remove(force=True)
    assert json.loads(log.splitlines()[-1])["message"] == "stopped"
    assert "canary" not in log
    assert exports["SEALPIPE_API_KEY"] not in log
    image = engine.client.images.get(SERVER_IMAGE)
    assert image.labels["org.opencontainers.image.title"] == "sealpipe server"
    assert CANARY not in str([image.history(), image.attrs])
    added = image.attrs["Size"] - engine.client.images.get(IMAGE).attrs["Size"]
    assert added < 40e6, "only what the image for pipelines does not have"


def test_its_recipe_is_one_of_locked_packages_on_the_same_base() -> None:
    command = [program("hadolint"), FOLDER / "Dockerfile"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    bases = [
        re.findall(r"^ARG BASE=(.+)$", text, re.MULTILINE)
        for text in (RECIPE, (ROOT / "containers/Dockerfile").read_text())
    ]
    assert bases[0] == bases[1]
    assert RECIPE.count("pip --python") == RECIPE.count("--require-hashes --only-binary=:all:") == 1
    assert not re.search(r"^(ENV|ARG) .*(TOKEN|PASSWORD|SECRET|API_KEY)", RECIPE, re.MULTILINE)


def test_its_build_is_sent_the_locked_packages_alone() -> None:
    exclude_paths = library("docker.utils.build", "docker").exclude_paths
    patterns = (FOLDER / "Dockerfile.dockerignore").read_text().splitlines()
    sent = {path for path in exclude_paths(str(ROOT), patterns) if (ROOT / path).is_file()}
    assert sent - {"Dockerfile", ".dockerignore"} == {"actions/_setup/locks/server.txt"}


def test_its_compose_file_is_one_whose_secrets_are_files() -> None:
    check_schema("vendor.compose-spec", COMPOSE)
    compose = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))
    text = COMPOSE.read_text(encoding="utf-8")
    assert all(list(each) == ["file"] for each in compose["secrets"].values())
    assert not re.search(r"postgresql://|PASSWORD:", text)
    for name in ("server", "tables"):
        service = compose["services"][name]
        assert service["read_only"]
        assert service["cap_drop"] == ["ALL"]
        assert "volumes" not in service
    assert [port.partition(":")[0] for port in compose["services"]["server"]["ports"]] == [
        "127.0.0.1"
    ]
    told = compose["services"]["database"]["command"]
    assert "log_min_error_statement=panic" in told, "values stand in the text of statements"


def test_only_the_gateway_of_its_network_is_a_trusted_proxy() -> None:
    compose = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))
    (network,) = compose["networks"]["default"]["ipam"]["config"]
    proxy = compose["services"]["server"]["environment"]["SEALPIPE_SERVER_TRUSTED_PROXY"]
    assert proxy.endswith(f":-{network['gateway']}/32}}")
    page = (ROOT / "docs/how-to/your-own-service.md").read_text(encoding="utf-8")
    made = re.search(r"--subnet (\S+) --gateway (\S+)", page)
    assert made is not None
    assert f"SEALPIPE_SERVER_TRUSTED_PROXY={made[2]}/32\n" in page
    for subnet, gateway in ((network["subnet"], network["gateway"]), made.groups()):
        assert ip_address(gateway) in ip_network(subnet)
    assert not ip_network(network["subnet"]).overlaps(ip_network(made[1])), "both may be made"


def test_debians_compose_reads_it() -> None:
    done = subprocess.run(
        [program("docker-compose"), "--file", COMPOSE, "config", "--services"],
        env={"PATH": os.defpath, "SEALPIPE_SERVER_PUBLIC_URL": "https://a.example"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, sorted(done.stdout.split())) == (0, ["database", "server", "tables"])
