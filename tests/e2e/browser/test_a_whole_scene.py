"""A service of one's own from its first command to its restored backup, behind a proxy with TLS.

Operator, pipeline, recipient, submitter and assistant are each what they are elsewhere: commands, a
real browser, the official client. The restored service stands where the first one stood.
"""

from __future__ import annotations

import secrets
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import trustme

from e2e.browser.assistant import Person, assistant_of
from e2e.browser.chrome import Browser
from support.clusters import Cluster, run_cluster
from support.fake_web import Asked, FakeWeb, Reply
from support.leaks import Detector
from support.own_service import OwnService, make_own_service, wait_for
from support.parts import find_postgres, program
from support.ports import free_port
from support.terminal import Terminal

HAPROXY = """
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
frontend public
  bind 127.0.0.1:{port} ssl crt {certificate}
  option forwardfor
  default_backend service
backend service
  server one 127.0.0.1:{behind}
"""
BATCH = """
name = "access"
kind = "share"
key = "name"
[share]
fields = ["Password=env:DB_PASSWORD"]
send = ["file:{name}.link"]
[[row]]
name = "acme"
"""
POLICY = """
schema = 1
[request]
sinks = ["file:*"]
"""


class Hooks(FakeWeb):
    """Where webhooks go."""

    def answer(self, asked: Asked) -> Reply:  # noqa: ARG002
        return Reply(200)


@contextmanager
def serving(own: OwnService, behind: int, said: list[str]) -> Iterator[None]:
    """The service behind a proxy of its machine, and what it says."""
    proxy, hooks = ("--trusted-proxy", "127.0.0.1"), ("--webhook-network", "127.0.0.0/8")
    key = ("--webhook-key", "env:WEBHOOKS")
    process = own.start("--workers", "2", *proxy, *hooks, *key, listen=f"127.0.0.1:{behind}")
    reader = threading.Thread(target=lambda: said.extend(process.communicate()))
    reader.start()
    try:
        yield
    finally:
        process.terminate()
        reader.join()
        assert process.wait() == 0


@contextmanager
def proxied(place: Path, authority: trustme.CA, port: int, behind: int) -> Iterator[None]:
    certificate, file = place / "proxy.pem", place / "haproxy.cfg"
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(certificate)
    file.write_text(HAPROXY.format(port=port, certificate=certificate, behind=behind))
    with subprocess.Popen([program("haproxy"), "-db", "-f", file]) as proxy:
        try:
            yield
        finally:
            proxy.kill()


def restore(cluster: Cluster, backup: Path) -> str:
    """A backup in a second database; its address."""
    address = cluster.address("empty")
    options = ("--clean", "--if-exists", "--no-owner", "--no-privileges")
    words = [find_postgres() / "pg_restore", *options, "-d", address, backup]
    subprocess.run(words, check=True)
    return address


def test_from_init_to_a_restored_backup(browser: Browser, tmp_path: Path) -> None:
    authority, port, behind = trustme.CA(), free_port(), free_port()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    said: list[str] = []
    canary, typed, asked = (f'cänary "{secrets.token_hex(12)}"' for _ in range(3))
    with (
        run_cluster() as cluster,
        Hooks(tls_of(authority)) as hooks,
        proxied(tmp_path, authority, port, behind),
    ):
        own = make_own_service(
            tmp_path / "service", cluster.address("empty"), url=f"https://127.0.0.1:{port}"
        )
        own.operator.environ["WEBHOOKS"] = secrets.token_hex(32)
        own.operator.environ["SSL_CERT_FILE"] = str(tmp_path / "ca.pem")
        client = own.client(tmp_path / "client")
        client.environ |= {"SEALPIPE_CA_FILE": str(tmp_path / "ca.pem"), "DB_PASSWORD": canary}
        with serving(own, behind, said):
            ready = f"{own.public_url}/readyz"
            answer = httpx.get(ready, verify=trust_of(authority), trust_env=False)
            assert answer.status_code == 200
            hook = own.command(
                "webhook", "add", f"{hooks.base_url}/hook", "--webhook-key", "env:WEBHOOKS"
            )
            assert hook.code == 0, hook
            browser.origin = own.public_url
            browser.cdp("Security.setIgnoreCertificateErrors", ignore=True)
            kept = share(client)
            open_in(browser, share(client), canary)
            request(client, browser, typed)
            batch(client, browser, canary)
            assist(client, browser, tmp_path, asked)
            end(client, share(client), hooks, hook.out.strip())
            done = own.command("database", "backup", "backup.db")
            assert done.code == 0, done
        own.operator.environ["DBURL"] = restore(cluster, own.operator.here / "backup.db")
        with serving(replace(own, address=own.operator.environ["DBURL"]), behind, said):
            listed = client.sealpipe("shares", "list", "--output", "json")
            assert [each["short_code"] for each in listed.json["shares"]] == [code_of(kept)]
            open_in(browser, kept, canary)
        assert browser.trouble() == []
        browser.forgive()
        browser.cdp("Security.setIgnoreCertificateErrors", ignore=False)
    hidden = {"shared": canary, "typed": typed, "asked": asked, **own.exports}
    detector = Detector(
        {
            name: value.rpartition(".")[2].encode()
            for name, value in hidden.items()
            if "URL" not in name
        }
    )
    assert not detector.find("".join(said).encode())


def trust_of(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    authority.configure_trust(context)
    return context


def tls_of(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    return context


def share(client: Terminal) -> str:
    """The link of a share of one view."""
    done = client.sealpipe("share", "-f", "Password=env:DB_PASSWORD", "--views", "1")
    assert done.code == 0, done
    return done.out.strip()


def code_of(link: str) -> str:
    return link.partition("#")[0].rpartition("/")[2]


def open_in(browser: Browser, link: str, value: str) -> None:
    browser.open(link)
    browser.press("Open it")
    browser.says("Password")
    browser.press("Show Password")
    browser.says(value)


def fill_in(browser: Browser, link: str, value: str) -> None:
    browser.open(link)
    browser.press("Open the form")
    browser.type("Password", value)
    browser.press("Seal and send")
    browser.says("Sent, and only they can read it")


def request(client: Terminal, browser: Browser, value: str) -> None:
    asked = client.sealpipe("request", "-a", "Password", "--receipt", "receipt.json")
    assert asked.code == 0, asked
    fill_in(browser, asked.out.strip(), value)
    collected = client.sealpipe("collect", "receipt.json", "--output", "json").json
    assert collected["submissions"][0]["fields"][0]["value"] == value


def batch(client: Terminal, browser: Browser, value: str) -> None:
    """A share for each row, here one; ended at the end, as its owner can."""
    client.file("access.toml", BATCH)
    done = client.sealpipe("batch", "run", "access.toml")
    assert (done.code, done.out) == (0, "access\t1 row: 1 done\n"), done
    link = (client.here / "acme.link").read_text().strip()
    open_in(browser, link, value)
    assert client.sealpipe("shares", "expire", code_of(link), "--yes").code == 0


def assist(client: Terminal, browser: Browser, place: Path, value: str) -> None:
    """An assistant asks for a password that it never sees."""
    policy, record = place / "mcp.toml", place / "record"
    policy.write_text(POLICY)
    record.mkdir()
    person, target = Person(), record / "asked.password"
    with assistant_of(client, person, record, SEALPIPE_MCP_POLICY=str(policy)) as (
        portal,
        assistant,
    ):

        async def call(tool: str, **arguments: Any) -> Any:
            result = await assistant.call_tool(tool, arguments)
            assert not result.is_error, result.structured_content
            return result.structured_content

        asked = portal.call(
            lambda: call(
                "request_secret",
                prompts=[{"text": "Password"}],
                title="The app's password",
                to=f"file:{target.name}#Password",
            )
        )
        person.fill_in(browser, "Password", value)
        portal.call(lambda: call("collect_secret", code=asked["code"]))
    assert target.read_text().rstrip("\n") == value
    assert value.encode() not in (record / "from-server").read_bytes()


def end(client: Terminal, link: str, hooks: Hooks, secret: str) -> None:
    """End a share: a signed webhook tells of it."""
    code = code_of(link)
    assert client.sealpipe("shares", "expire", code, "--yes").code == 0
    event = {"event": "share.deleted", "short_code": code}
    wait_for(lambda: [each for each in hooks.asked if each.json == event])
    told = hooks.asked[-1]
    (signature,) = (value for name, value in told.headers.items() if name.endswith("-signature"))
    verified = client.sealpipe(
        *("webhooks", "verify", "--secret-from", "env:HOOK", "--signature", "env:SIGNATURE"),
        stdin=told.body,
        HOOK=secret,
        SIGNATURE=signature,
    )
    assert verified.code == 0, verified
