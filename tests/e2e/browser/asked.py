"""Requests for the pages' tests: made by a job with our own client, under a seed that the test
knows.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from e2e.browser.chrome import Browser
from sealpipe.wire import fields, keys, link, sealed_box
from sealpipe.wire.fields import Field
from support.job import Job, client_of

SEED = bytes(range(32))
FRAGMENT = link.encode_fragment(SEED)
PROMPTS = (("User name", "text"), ("Password", "password"))
FORM = {"User name": "bob", "Password": "hünter2"}
SENT = "Sent, and only they can read it"
"""What the page says once a submission has arrived."""


def fill(browser: Browser, name: str, text: str) -> None:
    """Put text into a control as a paste would, whatever keys it would take to type it."""
    control = browser.named(name, "input, textarea")
    browser.run(
        "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('input'))",
        control,
        text,
    )


def form(browser: Browser, link: str) -> None:
    """Open a collect link up to its form."""
    browser.open(link)
    browser.press("Open the form")
    browser.says("Seal and send")


@dataclass
class Asked:
    """A request: its collect link, its access link, and who answers it in Python."""

    job: Job
    code: str
    tag: str = "svc"

    @property
    def collect_link(self) -> str:
        return link.collect_link(self.job.service.link_base_url, self.code)

    @property
    def access_link(self) -> str:
        return link.access_link(self.job.service.link_base_url, self.code, SEED)

    def answer(self, values: dict[str, str] = FORM) -> str:
        """Somebody answers, without a browser; the submission's code."""
        return self.job.service.submitter().submit(self.collect_link, values, tag=self.tag)

    def seal(self, plaintext: bytes, seed: bytes = SEED) -> str:
        """Somebody sends anything at all, sealed to a key."""
        pair = keys.from_seed(seed, tag=self.tag)
        return self.send(sealed_box.seal(pair.public_key, plaintext, tag=self.tag))

    def seal_fields(self, *rows: dict[str, Any]) -> str:
        return self.seal(json.dumps(rows).encode())

    def send(self, data: str, **members: Any) -> str:
        return self.job.service.submitter().send(self.collect_link, data, **members)

    def opened(self) -> list[list[Field]]:
        """Every submission, opened by our own client's parts, oldest first."""
        pair = keys.from_seed(SEED, tag=self.tag)
        with client_of(self.job) as client:
            found = client.list_submissions(self.code).items
        return [fields.load(sealed_box.open(pair, each.data, tag=self.tag)) for each in found]

    def typed(self) -> list[list[tuple[str, str, str]]]:
        """The same as key, value and type."""
        return [
            [(each.key, _text(each.value), each.type) for each in rows] for rows in self.opened()
        ]

    def remove(self) -> None:
        """It has expired, and is gone for good."""
        with client_of(self.job) as client:
            client.delete_request(self.code)

    def end(self) -> None:
        """It expires."""
        with client_of(self.job) as client:
            client.expire_request(self.code)


def ask(job: Job, tag: str = "svc", **options: Any) -> Asked:
    """A new request, sealed to SEED's key; `options` are those of `Client.create_request`."""
    given = {
        "title": "Staging access",
        "public_key": keys.from_seed(SEED, tag=tag).public_key,
        "fields": PROMPTS,
    }
    with client_of(job) as client:
        return Asked(job, client.create_request(**{**given, **options}).short_code, tag)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else value.reveal()
