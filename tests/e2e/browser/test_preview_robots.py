"""Chats and mail programs load every link that passes through them: none of that spends a view or a
try.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

import httpx
import pytest

from e2e.browser.chrome import Browser
from e2e.browser.sending import field, send, spent
from sealpipe_rehearsal.running_service import RunningService
from sealpipe_service import pages
from support.parts import program

POLICY = "content-security-policy"
ROBOTS = (
    "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)",
    "Mozilla/5.0 (compatible; Discordbot/2.0; +https://discordapp.com)",
    "WhatsApp/2.23.20.0",
    "facebookexternalhit/1.1",
    (
        "Mozilla/5.0 (Windows NT 10.0; Win64; x64) SkypeUriPreview Preview/0.5 "
        "skype-url-preview@microsoft.com"
    ),
)


@pytest.mark.parametrize("passcode", [None, "4711"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_asking_for_the_link_spends_nothing(
    service: RunningService, method: str, passcode: str | None
) -> None:
    link = send(service, [field("secret")], passcode, access_counts_left=1)
    for agent in ROBOTS:
        for address in (link, f"{link.partition('#')[0]}?utm_source=chat"):
            answer = httpx.request(method, address, headers={"user-agent": agent}, trust_env=False)
            assert answer.status_code == 200
            assert ("does not count as opening" in answer.text) == (method == "GET")
            assert answer.headers["x-robots-tag"] == "noindex, nofollow, noarchive"
    assert spent(service, link) == (0, 0)
    assert [each.value for each in service.recipient().open_link(link, passcode)] == ["secret"]


@pytest.mark.parametrize("passcode", [None, "4711"])
def test_a_browser_that_loads_the_page_and_presses_nothing_spends_nothing(
    browser: Browser, service: RunningService, passcode: str | None
) -> None:
    link = send(service, [field("secret")], passcode, access_counts_left=1)
    for _ in range(3):
        browser.open(link)
        browser.one("#open")
    assert {
        request.method for request in service.seen() if not request.target.startswith("/v1")
    } == {"GET"}
    assert spent(service, link) == (0, 0)
    assert [each.value for each in service.recipient().open_link(link, passcode)] == ["secret"]


def test_a_robot_that_prints_the_loaded_page_spends_nothing_and_reads_nothing(
    service: RunningService,
) -> None:
    link = send(
        service, [field("a secret that nobody must see")], access_counts_left=1, title="A title"
    )
    with tempfile.TemporaryDirectory() as profile:
        command = [
            program("chromium-headless-shell"), "--no-sandbox", "--disable-gpu", "--no-first-run",
            "--disable-background-networking", "--disable-component-update",
            f"--user-data-dir={Path(profile)}",
            "--virtual-time-budget=5000", "--dump-dom", link,
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert "Open it" in done.stdout
    assert "nobody must see" not in done.stdout
    assert "A title" not in done.stdout
    assert link.partition("#")[2] not in done.stdout
    assert spent(service, link) == (0, 0)


def test_other_methods_have_no_page(service: RunningService) -> None:
    link = send(service, [field("secret")], access_counts_left=1).partition("#")[0]
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH"):
        assert httpx.request(method, link, trust_env=False).status_code == 404
    assert spent(service, f"{link}#") == (0, 0)


def test_every_page_and_every_part_of_one_has_the_strict_headers(service: RunningService) -> None:
    parts = ["share.js", "wire.js", "base.js", "fields.js", "style.css", "icon.svg"]
    for path in ("", "s/any", "s/r/any", *(f"page/{part}" for part in parts)):
        answer = httpx.get(f"{service.origin}/{path}", trust_env=False)
        assert answer.status_code == 200, path
        headers = {name: answer.headers[name] for name in pages.HEADERS}
        policy = re.sub(r"( script-src 'self') 'sha256-[^']+'", r"\1", headers.pop(POLICY))
        assert {**headers, POLICY: policy} == dict(pages.HEADERS)
        assert "set-cookie" not in answer.headers
        assert "{{" not in answer.text, path
    policy = pages.HEADERS[POLICY]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy


@pytest.mark.parametrize(
    "path",
    [
        "page/",
        "page/none.js",
        "page/..%2fserver.py",
        "page/%2e%2e/server.py",
        "page/__init__.py",
        "page/page/base.js",
        "page/head.html",
        "page/common/head.html",
    ],
)
def test_only_files_of_pages_are_served(service: RunningService, path: str) -> None:
    assert httpx.get(f"{service.origin}/{path}", trust_env=False).status_code == 404


def test_the_origin_says_what_this_is_with_nothing_of_the_service_in_it(
    service: RunningService,
) -> None:
    service.create_key(name="a-name-of-ours")
    first = httpx.get(f"{service.origin}/", trust_env=False)
    assert first.headers["content-type"].startswith("text/html")
    for told in (
        "A rehearsal service",
        "/s/CODE#1KEY",
        "/s/r/CODE",
        "/v1",
        "docs/reference/rehearsal.md",
    ):
        assert told in first.text
    assert "<script" not in first.text
    send(service, [field("x")])
    assert httpx.get(f"{service.origin}/", trust_env=False).content == first.content
    assert httpx.head(f"{service.origin}/", trust_env=False).status_code == 200
    api = httpx.get(f"{service.origin}/v1/nothing", trust_env=False)
    assert api.headers["content-type"] == "application/json"


def test_no_page_is_served_under_a_foreign_name(service: RunningService) -> None:
    answer = httpx.get(f"{service.origin}/s/any", headers={"host": "evil.example"}, trust_env=False)
    assert answer.status_code == 403


def test_no_file_of_the_pages_names_another_address_or_runs_what_stands_in_the_document() -> None:
    folder = Path(pages.__file__).parent.parent / "page"
    for file in filter(Path.is_file, folder.rglob("*")):
        text = file.read_text()
        if file.suffix == ".html":
            assert "<style" not in text
            assert " style=" not in text
            assert "<script>" not in text
            assert " on" not in [part[:3] for part in text.split("=")]
        for forbidden in (
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "new Function",
        ):
            assert forbidden not in text, file.name
        others = text.replace("http://www.w3.org/2000/svg", "")
        assert "http://" not in others, file.name
