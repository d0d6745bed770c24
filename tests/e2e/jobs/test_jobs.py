"""The jobs that teams have, done as their pages say: each file and each command of the page, with a
real Vault, a real mail server and the rehearsal service.
"""

from __future__ import annotations

import base64
import csv
import json
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trustme

from e2e.jobs.job_pages import JobPage
from sealpipe_rehearsal.running_service import RunningService
from support.fake_web import Reply
from support.kubernetes import TOKEN, Cluster, cluster, kmock_url
from support.mailbox import Mailbox
from support.openbao import Bao, dev_server
from support.own_service import wait_for
from support.parts import program, shebang
from support.ports import free_port
from support.roles import Roles, roles
from support.terminal import PATIENCE, Terminal, bare, extended, one_service, opened, service, user

__all__ = ["bare", "cluster", "extended", "kmock_url", "one_service", "roles", "service", "user"]

CANARY = "canary-of-the-emergency"


@pytest.fixture(scope="module")
def bao() -> Iterator[Bao]:
    with dev_server() as running:
        yield running


@pytest.fixture
def mailbox(tmp_path: Path) -> Iterator[Mailbox]:
    with Mailbox(tmp_path) as server:
        yield server


@pytest.fixture
def equipped(user: Terminal, bao: Bao, mailbox: Mailbox) -> Terminal:
    """A user with a mail server and a Vault."""
    user.environ |= {**mailbox.environ(), "VAULT_ADDR": bao.addr, "VAULT_TOKEN": bao.root}
    return user


def links(mailbox: Mailbox, address: str) -> list[str]:
    """The links in all mails to somebody, oldest first."""
    mails = [each.body() for each in mailbox.received if address in each.recipients]
    return [link for mail in mails for link in re.findall(r"http\S+/[rs]/\S+", mail)]


def test_onboarding_forty_contractors(
    equipped: Terminal, service: RunningService, mailbox: Mailbox, bao: Bao
) -> None:
    equipped.at(service, scopes=("shares:read", "shares:write"))
    page = JobPage("onboarding-forty-contractors", equipped)
    rows = page.block("csv").splitlines()
    rows += [f"p{number},p{number}@agency.example,Billing" for number in range(40 - len(rows) + 1)]
    equipped.file("contractors.csv", "\n".join(rows) + "\n")
    equipped.file("contractors.toml", page.block("toml"))
    done = page.run()
    assert done.code == 0, done
    assert "40 rows: 40 create" in done.err
    assert len(mailbox.received) == 40
    seen = {each: opened(service, links(mailbox, f"{each}@agency.example")[0]) for each in
            ("kim", "p1", "p2")}  # fmt: skip
    stored = bao.call("GET", "secret/data/contractors/kim")["data"]
    assert seen["kim"] == {"User name": "kim", "Password": stored["password"]}
    assert len({each["Password"] for each in seen.values()}) == 3
    done = page.run()
    assert done.code == 0, done
    report = (equipped.here / "report.csv").read_text(encoding="utf-8-sig")
    outcomes = {row["key"]: row["outcome"] for row in csv.DictReader(report.splitlines())}
    assert len(outcomes) == 40
    assert {name for name, outcome in outcomes.items() if outcome == "opened"} == set(seen)
    assert stored["password"] not in report
    done = page.run()
    assert done.code == 0, done
    assert page.is_run
    old, new = links(mailbox, "kim@agency.example")
    assert opened(service, new)["Password"] != stored["password"]
    with pytest.raises(Exception, match=r"gone|expired|not found|no longer"):
        opened(service, links(mailbox, "lee@agency.example")[0])
    assert old != new


def test_a_quarterly_vendor_rotation(
    equipped: Terminal, service: RunningService, mailbox: Mailbox, bao: Bao
) -> None:
    page = JobPage("vendor-rotation", equipped)
    equipped.file("vendors.csv", page.block("csv"))
    equipped.file("rotation.toml.in", page.block("toml"))
    done = page.run()
    assert done.code == 0, done
    made = (equipped.here / "rotation.toml").read_text()
    assert re.search(r'name = "rotation-\d{4}-q[1-4]"', made)
    for number, quarter in enumerate(("2027-q1", "2027-q2"), 1):
        before = len(links(mailbox, "ann@acme.example"))
        assert page.run(1, QUARTER=quarter).code == 0
        link = links(mailbox, "ann@acme.example")[before]
        service.submitter().submit(link, {"New password": f"canary of {quarter}"})
        done = page.run(2, QUARTER=quarter)
        assert done.code == 0, done
        assert link in done.out
        stored = bao.call("GET", "secret/data/vendors/acme")
        assert stored["data"]["password"] == f"canary of {quarter}"
        assert stored["metadata"]["version"] == number
        done = page.run(3, QUARTER=quarter)
        assert done.code == 0, done
        assert "1 waiting, 1 done" in done.out
        assert "canary" not in (equipped.here / "rotation.csv").read_text()
    assert page.is_run


def test_break_glass(
    equipped: Terminal, service: RunningService, mailbox: Mailbox, bao: Bao
) -> None:
    page = JobPage("break-glass", equipped)
    program("jq")
    bao.call("POST", "secret/data/infra/root", {"data": {"password": CANARY}})
    log = equipped.here / "audit.jsonl"
    equipped.environ["SEALPIPE_CONFIG"] = str(
        equipped.file("config.toml", f'[audit]\nfile = "{log}"\nrequired = true\n')
    )
    assert page.run().code == 0
    (link,) = links(mailbox, "on-call@example.com")
    (mail,) = [each.body() for each in mailbox.received if "lead@example.com" in each.recipients]
    watch = page.run(2)
    assert (watch.code, watch.out) == (0, ""), watch
    (passcode,) = [line for line in mail.splitlines() if line and " " not in line]
    assert opened(service, link, passcode) == {"Password": CANARY}
    watch = page.run(2)
    assert watch.code == 1
    assert "was opened, or its share has ended (exit code 0)" in watch.out
    assert page.run().code == 0
    evidence = page.run()
    assert evidence.code == 0, evidence
    assert "lead@example.com" in evidence.out
    assert "on-call@example.com" in evidence.out
    assert passcode not in log.read_text()
    assert CANARY not in log.read_text()
    assert page.is_run


OUTPUTS = {
    "db_host": {"sensitive": False, "type": "string", "value": "db-7.internal.example"},
    "db_password": {"sensitive": True, "type": "string", "value": CANARY},
}
"""What `terraform output -json` prints, as recorded from Terraform 1.11."""


def test_terraform_outputs_to_a_customer(
    equipped: Terminal, service: RunningService, mailbox: Mailbox, bao: Bao
) -> None:
    """With Terraform where it is; elsewhere with what it prints."""
    page = JobPage("terraform-outputs", equipped)
    variables = [f'variable "{name}" {{}}\n' for name in OUTPUTS]
    equipped.file("outputs.tf", page.block("hcl") + "".join(variables))
    equipped.environ |= {f"TF_VAR_{name}": str(each["value"]) for name, each in OUTPUTS.items()}
    if real := shutil.which("terraform"):
        equipped.environ["PATH"] += f":{Path(real).parent}"
        for words in (["init"], ["apply", "-auto-approve", "-input=false"]):
            done = equipped.run(["terraform", *words])
            assert done.code == 0, done
        printed = json.loads(equipped.run(["terraform", "output", "-json"]).out)
        assert printed == OUTPUTS
    else:
        stand_in = page.programs / "terraform"
        stand_in.write_text(
            f"{shebang('-IS')}import sys\n"
            f"sys.argv[1] == 'output' and print({json.dumps(OUTPUTS)!r})\n"
        )
        stand_in.chmod(0o755)
    assert page.run().code == 0
    (link,) = links(mailbox, "ops@customer.example")
    assert opened(service, link) == {"Host": "db-7.internal.example", "Password": CANARY}
    assert page.run().code == 0
    stored = bao.call("GET", "secret/data/customers/acme")["data"]
    link = links(mailbox, "ops@customer.example")[-1]
    assert opened(service, link) == {"Password": stored["password"]}
    waiting = equipped.environ | {"SEALPIPE_WAIT_FOR": "1s"}
    last = page.block("sh", 3).replace("--for 24h", "--for 1s")
    done = equipped.run(["bash", "-euo", "pipefail", "-c", last], environ=waiting)
    assert done.code == 15, done
    assert "expired" in done.err + done.out
    links_sent = links(mailbox, "ops@customer.example")
    for state in equipped.here.glob("terraform.tfstate*"):
        assert not any(link.rpartition("#")[2] in state.read_text() for link in links_sent)


@contextmanager
def nginx(folder: Path, config: str, authority: trustme.CA) -> Iterator[int]:
    """The receiver of the page: its config, with paths and a port of the test's."""
    port = free_port()
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(folder / "pair")
    replaced = {
        "listen 443 ssl": f"listen 127.0.0.1:{port} ssl",
        "/etc/nginx/logs.pem": str(folder / "pair"),
        "/etc/nginx/logs.key": str(folder / "pair"),
        "/run/nginx-stored.sock": str(folder / "sock"),
        "/var/log/nginx": str(folder),
    }
    for old, new in replaced.items():
        assert old in config
        config = config.replace(old, new)
    temporary = [
        f"{kind}_temp_path {folder}/{kind};"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    ]
    who = "user root;\n" if os.geteuid() == 0 else ""
    file = folder / "nginx.conf"
    file.write_text(
        f"{who}daemon off;\npid {folder}/pid;\nerror_log stderr;\nevents {{}}\n"
        f"http {{\n{' '.join(temporary)}\n{config}\n}}\n"
    )
    process = subprocess.Popen(
        [program("nginx"), "-p", folder, "-c", file], stderr=subprocess.DEVNULL
    )
    try:
        wait_for(lambda: _answers(port))
        yield port
    finally:
        process.terminate()
        process.wait(PATIENCE)


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), PATIENCE).close()
    except ConnectionRefusedError:
        return False
    return True


def test_evidence_for_an_audit(user: Terminal, extended: RunningService, tmp_path: Path) -> None:
    user.at(extended, scopes=("shares:read", "shares:write", "audit:read"))
    page = JobPage("evidence-for-an-audit", user)
    program("jq")
    authority, folder = trustme.CA(), tmp_path / "nginx"
    folder.mkdir()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    log, key = user.here / "audit.jsonl", user.file("audit.key", "0123456789abcdef")
    config = page.block("nginx").replace("TOKEN", "t0ken")
    with nginx(folder, config, authority) as port:
        replaced = {
            "/var/log/sealpipe/audit.jsonl": str(log),
            "/etc/sealpipe/audit.key": str(key),
            "https://logs.example.com/": f"https://127.0.0.1:{port}/",
            "/etc/sealpipe/audit.token": str(user.file("audit.token", "t0ken\n")),
        }
        settings = page.block("toml", 1) + page.block("toml", 2)
        for old, new in replaced.items():
            assert old in settings
            settings = settings.replace(old, new)
        user.environ |= {
            "SEALPIPE_CONFIG": str(user.file("config.toml", settings)),
            "SEALPIPE_CA_FILE": str(tmp_path / "ca.pem"),
            "AUDIT_LOG": str(log),
            "AUDIT_KEY": f"file:{key}",
            "COLLECTED": str(folder / "sealpipe.jsonl"),
        }
        done = user.sealpipe("share", "text:x", "--title", "Staging", "--output", "json")
        assert done.code == 0, done
        assert "not sent yet" not in done.err
        opened(extended, done.json["link"])
        done = page.run(CODE=done.json["short_code"])
        assert done.code == 0, done
        assert "\topened\t127.0.0.1\t" in done.out
        done = page.run()
        assert done.code == 0, done
        assert "\tStaging\t" in done.out
        assert "2 lines, none changed" in done.out
        done = page.run()
        assert done.code == 0, done
        assert "2 lines, 0 repeated, of 1 chain on 1 machine" in done.out
        done = page.run()
        assert (done.code, "0 lines sent" in done.out) == (0, True), done
    assert page.is_run
    sent = (folder / "sealpipe.jsonl").read_bytes()
    assert sent.replace(b"\n\n", b"\n") == log.read_bytes()


def test_rotate_a_secret_in_vault_kubernetes_and_a_postgresql_role(
    bare: Terminal, bao: Bao, cluster: Cluster, roles: Roles
) -> None:
    page = JobPage("rotate-a-secret", bare)
    bao.call("POST", "secret/data/app/db", {"data": {"user": "app", "password": "old"}})
    cluster.secret("prod", "app-db", {"host": b"db", "password": b"old"})
    roles.create("app", password="old")
    bare.environ |= {
        "VAULT_ADDR": bao.addr,
        "VAULT_TOKEN": bao.root,
        "SEALPIPE_PLUGIN_K8S__SERVER": cluster.base_url,
        "SEALPIPE_PLUGIN_K8S__TOKEN": TOKEN,
        **roles.environ(),
    }

    def places() -> tuple[str, str]:
        data = bao.call("GET", "secret/data/app/db")["data"]
        secret = cluster.read("prod", "app-db")["data"]
        assert data["user"] == "app"
        assert base64.b64decode(secret["host"]) == b"db"
        return data["password"], base64.b64decode(secret["password"]).decode()

    done = page.run()
    assert done.code == 0, done
    assert places() == ("old", "old")
    done = page.run()
    assert done.code == 0, done
    first, second = places()
    assert first == second != "old"
    assert roles.accepts("app", first)
    assert not roles.accepts("app", "old")
    assert first not in done.out + done.err

    for wrong in ("PGPASSWORD", "SEALPIPE_PLUGIN_K8S__TOKEN"):
        assert page.run(2, **{wrong: "wrong"}).code == 14
        assert places() == (first, first)
    cluster.rule = lambda asked: Reply(403) if asked.method == "PATCH" else None
    stopped = page.run(2)
    assert stopped.code == 14, stopped
    assert "written: vault:secret/app/db" in stopped.err
    assert "not written: k8s:prod/app-db" in stopped.err
    third, old = places()
    assert third != old == first
    assert roles.accepts("app", first)
    cluster.rule = lambda _: None
    done = page.run()
    assert done.code == 0, done
    assert places() == (third, third)
    assert roles.accepts("app", third)
    assert page.is_run
