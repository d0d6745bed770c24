"""A library call leaks nothing either: no object, exception, log record or local variable of a
frame gives it away.
"""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import logging
import secrets
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sealpipe import AsyncClient, Client, Field, Outbox, SealpipeError, Secret
from sealpipe.api import shares
from sealpipe.api.operation import Credential
from sealpipe.network import exchange
from sealpipe.share import post as sharing
from sealpipe.share.options import plan_share
from sealpipe.share.seal import seal_share
from sealpipe.wire import envelope, keys, tokens
from sealpipe_rehearsal.running_service import RunningService
from support.damage import flipped
from support.faults import reset_after, says
from support.faulty import Fault, Faulty, passes
from support.leaks import Detector, exposed, shown
from support.ports import silent_port

PUBLIC = keys.from_seed(bytes(range(32))).public_key


class Kept(NamedTuple):
    """One user's secrets, and how to look for them."""

    credential: str
    value: str
    passcode: str
    base_url: str
    link_base_url: str

    def client(self, **changes: Any) -> Client:
        return Client(**self.settings(**changes))

    def settings(self, **changes: Any) -> dict[str, Any]:
        return {
            "api_key": Secret(self.credential),
            "base_url": self.base_url,
            "link_base_url": self.link_base_url,
            "deadline": 30.0,
            **changes,
        }

    def find(self, text: str, *more: bytes) -> set[tuple[str, str]]:
        """Which secrets stand in a text, and how."""
        _, auth, custody = self.credential.split(".")
        known = {
            "value": self.value,
            "passcode": self.passcode,
            "auth part": auth,
            "custody part": custody,
        }
        raw = {f"secret {number}": value for number, value in enumerate(more)}
        detector = Detector({name: text.encode() for name, text in known.items()} | raw)
        return {
            (found.secret, found.encoding)
            for found in detector.find(text.encode("utf-8", "backslashreplace"))
        }


@pytest.fixture
def faulty(service: RunningService) -> Iterator[Faulty]:
    with Faulty(service.address) as server:
        yield server


@pytest.fixture
def kept(service: RunningService, faulty: Faulty, monkeypatch: pytest.MonkeyPatch) -> Kept:
    """The secrets: one of them in the environment, too."""
    value = f'value {secrets.token_urlsafe(18)} é"\\{secrets.token_hex(8)}'
    monkeypatch.setenv("CANARY_VALUE", value)
    passcode = f"code {secrets.token_urlsafe(12)}"
    return Kept(
        service.create_key().reveal(), value, passcode, faulty.base_url, service.link_base_url
    )


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The content keys of the shares that are made."""
    keys: list[bytes] = []
    seal = envelope.seal_chunks

    def noted(content_key: bytes, *rest: Any, **more: Any) -> None:
        keys.append(content_key)
        seal(content_key, *rest, **more)

    monkeypatch.setattr(envelope, "seal_chunks", noted)
    return keys


# -- objects ------------------------------------------------------------------------------------


def test_no_object_on_the_way_gives_anything_away(
    kept: Kept, drawn: list[bytes], tmp_path: Path
) -> None:
    credential = Credential.parse(kept.credential)
    outbox = Outbox(tmp_path / "outbox", credential)
    field = Field("Password", Secret(kept.value))
    plan = plan_share([field], passcode=kept.passcode)
    with kept.client() as client:
        sealed = seal_share(plan, client.session)
        made = sharing.share(client.session, plan, outbox)
        entry = made.entry
        assert entry
        operation = shares.create(sealed.body, "key")
        things = [
            Secret(kept.value), credential, credential.header(), field, plan, sealed, made,
            made.link, entry, outbox,
            entry.journal, operation, client, client.session,
            sharing.Posting(entry.meta, entry.body, "key", entry), [made], {"share": made},
        ]  # fmt: skip
        for thing in things:
            assert kept.find(shown(thing), *drawn) == set(), type(thing)
        made.delivered()
    # What is looked for is there to be found.
    assert base64.urlsafe_b64decode(made.link.reveal().partition("#1")[2] + "=") in drawn
    assert kept.find(made.link.reveal(), *drawn) != set()
    assert kept.find(shown({"value": kept.value})) != set()


def test_a_request_is_printed_without_its_credential(kept: Kept) -> None:
    with kept.client() as client:
        session = client.session
        service = exchange.Service(
            session.base_url, session.credential, session.gate, session.ca_file
        )
        request = exchange.build_request(service, shares.get("code"), 1.0, None)
    assert (
        kept.find(
            f"{request} {request!r} {request.headers} {request.headers!r} {[request.headers]}"
        )
        == set()
    )


def test_a_field_made_from_text_hides_it_wherever_it_is_printed(kept: Kept) -> None:
    field = Field("Password", kept.value)
    assert kept.find(f"{field} {field!r} {[field]} {plan_share([field])!r}") == set()


@pytest.mark.parametrize("copied", [dataclasses.asdict, dataclasses.astuple, dataclasses.replace])
def test_copies_of_a_credential_keep_its_secrets_closed(
    kept: Kept, copied: Callable[[Any], object]
) -> None:
    assert kept.find(repr(copied(Credential.parse(kept.credential)))) == set()


# -- exceptions ---------------------------------------------------------------------------------


class Failing(NamedTuple):
    """A way for a share to fail: what is asked for beyond a good field, and what the service
    does.
    """

    error: str
    asked: Callable[[Kept], dict[str, Any]] = lambda _: {}
    then: Fault = passes
    fields: Callable[[Kept], list[Field | str]] = lambda kept: [Field("Password", kept.value)]
    settings: Callable[[Kept], dict[str, Any]] = lambda _: {}


def asked(**options: Any) -> Callable[[Kept], dict[str, Any]]:
    return lambda _: options


FAILURES = {
    "refused by scope": Failing("MissingScopeError",
        then=says(403, '{"error_code": 78, "message": "no"}')),
    "refused by the gateway": Failing("AuthenticationError",
        then=says(401, '{"message": "Unauthorized"}')),
    "refused as invalid": Failing(
        "InvalidRequestError",
        then=says(400, '{"error_code": 19, "additional_data": {"data": "no"}}')
    ),
    "429 for ever": Failing("RateLimitError", then=says(429), settings=lambda _: {"deadline": 3.0}),
    "500 for ever": Failing("OutcomeUnknownError", then=says(500)),
    "no answer": Failing("OutcomeUnknownError", then=reset_after),
    "bad JSON": Failing("ProtocolError", then=says(201, "{")),
    "a redirect": Failing("ProtocolError",
        then=says(302, headers={"Location": "http://127.0.0.1:9/"})),
    "nobody listens": Failing("ConnectError",
        settings=lambda _: {"base_url": f"http://127.0.0.1:{silent_port()}/v1"}),
    "no TLS there": Failing(
        "ConnectError",
        settings=lambda kept: {"base_url": kept.link_base_url.replace("http", "https")[:-2] + "/v1"}
    ),
    "no certificates": Failing(
        "SettingError",
        settings=lambda _: {"base_url": "https://127.0.0.1:9/v1", "ca_file": "nowhere.pem"}
    ),
    "a value that is half a character": Failing("UsageError",
        fields=lambda kept: [Field("x", kept.value + "\udcff")]),
    "a value that is too large": Failing(
        "PayloadTooLargeError", fields=lambda kept: [Field("x", kept.value * 400_000)]
    ),
    "a variable that is not base64": Failing("PluginError",
        fields=lambda _: ["env:CANARY_VALUE?decode=base64"]),
    "a variable that is not JSON": Failing("PluginError",
        fields=lambda _: ["env:CANARY_VALUE?format=json#x"]),
    "a variable without that key": Failing("ReferenceValueError",
        fields=lambda _: ["env:CANARY_VALUE#x"]),
    "a variable that is not set": Failing(
        "SecretNotFoundError", fields=lambda kept: [Field("x", kept.value), "env:NOT_SET"]
    ),
    "a value in place of a reference": Failing("ReferenceSyntaxError",
        fields=lambda kept: [kept.value]),
    "a passcode with a newline": Failing("UsageError",
        lambda kept: {"passcode": f"{kept.passcode}\n"}),
    "a closed passcode with a newline": Failing("UsageError",
        lambda kept: {"passcode": Secret(f"{kept.passcode}\n")}),
    "a passcode with half a character": Failing("UsageError",
        lambda kept: {"passcode": f"{kept.passcode}\udcff"}),
    "an expiry that is over": Failing("UsageError", asked(expires_in=timedelta(seconds=-1))),
    "an outbox that is a file": Failing("StateError", asked(outbox=__file__)),
    "no fields": Failing("UsageError", fields=lambda _: []),
}  # fmt: skip


def arguments(failing: Failing, kept: Kept) -> tuple[list[Field | str], dict[str, Any]]:
    return failing.fields(kept), {"passcode": kept.passcode, **failing.asked(kept)}


def share_it(kept: Kept, failing: Failing, *, asynchronous: bool) -> None:
    settings = kept.settings(**failing.settings(kept))
    fields, options = arguments(failing, kept)

    async def ask() -> None:
        async with AsyncClient(**settings) as client:
            await client.share(fields, **options)

    if asynchronous:
        asyncio.run(ask())
        return
    with Client(**settings) as client:
        client.share(fields, **options)


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("name", FAILURES)
def test_an_exception_tells_nothing_in_its_text_its_frames_or_the_log(
    kept: Kept,
    drawn: list[bytes],
    faulty: Faulty,
    caplog: pytest.LogCaptureFixture,
    name: str,
    *,
    asynchronous: bool,
) -> None:
    failing = FAILURES[name]
    faulty.plan(then=failing.then)
    for logger in ("", "httpx", "httpcore", "sealpipe", "asyncio"):
        caplog.set_level(logging.DEBUG, logger)
    with pytest.raises(SealpipeError) as caught:
        share_it(kept, failing, asynchronous=asynchronous)
    assert type(caught.value).__name__ == failing.error
    assert kept.find(exposed(caught.value), *drawn) == set()
    assert kept.find(caplog.text, *drawn) == set()


CALLS: dict[str, Callable[[Kept], tuple[str, dict[str, Any]]]] = {
    "a tool's argument": lambda kept: (
        "call_tool",
        {"name": "x", "arguments": {"code": kept.value}},
    ),
    "a request's passcode": lambda kept: (
        "create_request",
        {
            "title": "t",
            "public_key": PUBLIC,
            "fields": [("P", "password")],
            "passcode": Secret(kept.passcode),
        },
    ),
    "a request's wrong key": lambda kept: (
        "create_request",
        {
            "title": "t",
            "public_key": b"",
            "fields": [("P", "password")],
            "passcode": Secret(kept.passcode),
        },
    ),
    "a request that is ended": lambda _: ("expire_request", {"short_code": "x", "keep": None}),
    "figures": lambda _: ("get_stats", {}),
}
ENDS: dict[str, Fault] = {
    "refused": says(403, '{"error_code": 78, "message": "no"}'),
    "broken": says(200, "{"),
    "failing": says(500),
    "cut off": reset_after,
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
def test_nor_does_one_of_any_other_call(
    kept: Kept,
    faulty: Faulty,
    caplog: pytest.LogCaptureFixture,
    name: str,
    end: str,
    *,
    asynchronous: bool,
) -> None:
    method, given = CALLS[name](kept)
    faulty.plan(then=ENDS[end])
    for logger in ("", "httpx", "httpcore", "sealpipe", "asyncio"):
        caplog.set_level(logging.DEBUG, logger)

    async def ask_async() -> None:
        async with AsyncClient(**kept.settings()) as client:
            await getattr(client, method)(**given)

    def ask() -> None:
        with kept.client() as client:
            getattr(client, method)(**given)

    with pytest.raises(SealpipeError) as caught:
        asyncio.run(ask_async()) if asynchronous else ask()
    assert kept.find(exposed(caught.value)) == set()
    assert kept.find(caplog.text) == set()


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
def test_a_bug_of_ours_tells_its_place_and_no_local_variable(
    kept: Kept, monkeypatch: pytest.MonkeyPatch, *, asynchronous: bool
) -> None:
    keys: list[bytes] = []

    def broken(content_key: bytes) -> str:
        keys.append(content_key)
        raise RuntimeError("broken")

    monkeypatch.setattr(tokens, "access_token", broken)
    with pytest.raises(RuntimeError) as caught:
        share_it(kept, Failing(""), asynchronous=asynchronous)
    assert kept.find(exposed(caught.value), *keys) == set()


CREDENTIALS: dict[str, Callable[[str], str]] = {
    "no prefix": lambda text: text.partition("_")[2],
    "a blank behind": lambda text: f"{text} ",
    "four parts": lambda text: f"{text}.x",
    "a short auth part": lambda text: text.replace(text.split(".")[1], text.split(".")[1][:-3]),
    "a custody part that is not base64url": lambda text: f"{text[:-1]}+",
}


@pytest.mark.parametrize("closed", [False, True], ids=["text", "Secret"])
@pytest.mark.parametrize("name", CREDENTIALS)
def test_a_malformed_credential_is_not_shown(kept: Kept, name: str, *, closed: bool) -> None:
    text = CREDENTIALS[name](kept.credential)
    with pytest.raises(SealpipeError) as caught:
        kept.client(api_key=Secret(text) if closed else text)
    assert kept.find(exposed(caught.value)) == set()


@pytest.mark.parametrize("name", ["SEALPIPE_BASE_URL", "SEALPIPE_SERVICE_TAG", "SEALPIPE_API_KEY"])
def test_values_of_invalid_settings_are_not_shown(
    kept: Kept, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("SEALPIPE_API_KEY", kept.credential)
    monkeypatch.setenv("SEALPIPE_BASE_URL", kept.base_url)
    monkeypatch.setenv("SEALPIPE_LINK_BASE_URL", kept.link_base_url)
    monkeypatch.setenv(name, kept.value)
    with pytest.raises(SealpipeError) as caught:
        Client.from_settings()
    assert kept.find(exposed(caught.value)) == set()


def test_an_outbox_entry_that_does_not_open_tells_nothing(
    kept: Kept, drawn: list[bytes], tmp_path: Path
) -> None:
    with kept.client() as client:
        client.share([Field("Password", kept.value)], passcode=kept.passcode, outbox=tmp_path)
        (file,) = tmp_path.glob("*.sealed")
        whole = file.read_bytes()
        file.write_bytes(flipped(whole))
        outbox = Outbox(tmp_path, client.session.credential)
        with pytest.raises(SealpipeError) as caught:
            outbox.open(file.stem)
        assert kept.find(exposed(caught.value), *drawn) == set()


def test_a_success_logs_nothing_secret_at_any_level(
    kept: Kept, drawn: list[bytes], caplog: pytest.LogCaptureFixture
) -> None:
    for logger in ("", "httpx", "httpcore", "sealpipe"):
        caplog.set_level(logging.DEBUG, logger)
    with kept.client() as client:
        client.share([Field("Password", kept.value)], passcode=kept.passcode)
    assert any(record.name.startswith("httpcore") for record in caplog.records), (
        "it was really logged"
    )
    assert kept.find(caplog.text, *drawn) == set()
