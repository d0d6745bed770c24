"""op://Vault/Item/field: Connect against a fake server on a real socket, the service account by
what its SDK says.
"""

from __future__ import annotations

import socket
import ssl
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import trustme

from plugins.onepassword.fake_op_connect import FakeConnect, made_id
from sealpipe.errors import (
    AccessDeniedError,
    BackendAuthError,
    NotConfiguredError,
    PayloadTooLargeError,
    PluginError,
    ReferenceValueError,
    SecretNotFoundError,
    SettingError,
    UnavailableError,
    UnsupportedError,
)
from sealpipe.network.plugin_network import PluginNetwork
from sealpipe.plugin import Document
from sealpipe.reference import parse, parse_field
from sealpipe.registry import Registry
from sealpipe.sources.resolve import resolve
from sealpipe_plugins.onepassword.sdk import map_exception, map_responses
from support.backends import opened
from support.fake_web import Reply
from support.parts import library
from support.ports import silent_port

TOKEN = "Canary-token-1f7a"  # of Connect
CANARY = "Canary-2b9e"
SECTION = made_id(7, "s")


def filled(fake: FakeConnect) -> FakeConnect:
    """Two vaults, one of them hidden from the token, and items with all that an item can have."""
    prod, hidden = fake.vault("Prod env", TOKEN), fake.vault("Hidden", "another token")
    fields = [
        {
            "id": "username",
            "type": "STRING",
            "purpose": "USERNAME",
            "label": "username",
            "value": "app",
        },
        {
            "id": "password",
            "type": "CONCEALED",
            "purpose": "PASSWORD",
            "label": "password",
            "value": "hunter2 é",
        },
        {"id": "notesPlain", "type": "STRING", "purpose": "NOTES", "label": "notesPlain"},
        {
            "id": made_id(1, "f"),
            "type": "CONCEALED",
            "label": "password",
            "value": "root's",
            "section": {"id": SECTION},
        },
        {
            "id": made_id(2, "f"),
            "type": "STRING",
            "label": "host",
            "value": "db.example",
            "section": {"id": SECTION},
        },
        {"id": made_id(3, "f"), "type": "STRING", "label": "twin", "value": "1"},
        {"id": made_id(4, "f"), "type": "STRING", "label": "twin", "value": "2"},
    ]
    file = {"id": made_id(1, "d"), "name": "tls.pem", "size": 8, "content_path": "v1/anything"}
    fake.contents[file["id"]] = b"-----\r\n\x00"
    fake.contents[made_id(2, "d")] = b"x" * (16 * 1024 * 1024 + 1)
    files = [file, {"id": made_id(2, "d"), "name": "large.bin"}]
    fake.item(prod, "db", sections=[{"id": SECTION, "label": "Admin"}], fields=fields, files=files)
    fake.item(prod, "twin", fields=[])
    fake.item(prod, "twin", fields=[])
    fake.item(
        prod,
        'a "quoted" \\ title',
        fields=[{"id": "password", "label": "password", "value": "quoted"}],
    )
    fake.item(
        prod,
        made_id(99, "q"),
        fields=[{"id": "password", "label": "password", "value": "like an id"}],
    )
    fake.item(hidden, "db", fields=[{"id": "password", "label": "password", "value": CANARY}])
    return fake


@pytest.fixture
def fake() -> Iterator[FakeConnect]:
    with FakeConnect() as server:
        yield filled(server)


@pytest.fixture(autouse=True)
def _networks_end() -> Iterator[None]:
    yield
    while NETWORKS:
        NETWORKS.pop().http().close()


NETWORKS: list[PluginNetwork] = []


def network(ca_file: Path | None = None) -> Callable[[], PluginNetwork]:
    """A way out, closed after the test."""
    NETWORKS.append(PluginNetwork(ca_file))
    made = NETWORKS[-1]
    return lambda: made


def connected(fake: FakeConnect, **more: str) -> Registry:
    environ = {"OP_CONNECT_HOST": fake.base_url, "OP_CONNECT_TOKEN": TOKEN, **more}
    return Registry(environ=environ, network=network())


def values(registry: Registry, *texts: str) -> list[tuple[str, bytes]]:
    fields = resolve([parse_field(text) for text in texts], lambda: registry)
    return [(field.key, opened(field)) for field in fields]


def answer_of(registry: Registry, text: str) -> Document | PluginError:
    """What one reference gives, without trying again."""
    locator = registry.locate(parse(text))
    return registry.fetch({"op": [locator]})[locator]


class TestConnect:
    """OP_CONNECT_HOST and OP_CONNECT_TOKEN"""

    def test_references_of_1password_are_read_as_they_are(self, fake: FakeConnect) -> None:
        prod, item = next(iter(fake.vaults)), next(iter(fake.items))
        assert values(
            connected(fake),
            "op://Prod env/db/username",
            "op://Prod env/db/password",
            "Root=op://Prod env/db/Admin/password",
            "op:Prod env/db/host",
            f"op://{prod}/{item}/{SECTION}/{made_id(2, 'f')}",
            "op://Prod env/" + 'a "quoted" \\ title/password',
            f"op://Prod env/{made_id(99, 'q')}/password",
        ) == [
            ("username", b"app"),
            ("password", "hunter2 é".encode()),
            ("Root", b"root's"),
            ("host", b"db.example"),
            (made_id(2, "f"), b"db.example"),
            ("password", b"quoted"),
            ("password", b"like an id"),
        ]

    def test_a_file_is_taken_exactly(self, fake: FakeConnect) -> None:
        assert values(connected(fake), "op://Prod env/db/tls.pem") == [
            ("tls.pem", b"-----\r\n\x00")
        ]

    def test_a_whole_item_is_a_map_of_what_holds_something(self, fake: FakeConnect) -> None:
        registry = connected(fake)
        assert values(registry, "op://Prod env/db#*") == [
            ("username", b"app"),
            ("password", "hunter2 é".encode()),
            ("Admin/password", b"root's"),
            ("Admin/host", b"db.example"),
            ("twin", b"1"),
        ]
        assert values(registry, "op://Prod env/db#Word=Admin/password") == [("Word", b"root's")]

    def test_an_item_is_asked_for_once(self, fake: FakeConnect) -> None:
        registry = connected(fake)
        texts = [
            f"op://Prod env/db/{name}"
            for name in ("username", "password", "host", "Admin/password")
        ]
        assert len(values(registry, *texts, *texts)) == 8
        # Vaults, items, the item.
        assert sorted(path.partition("?")[0].count("/") for path in fake.targets) == [
            2,
            4,
            5,
        ]

    def test_the_vendors_own_client_reads_the_same(self, fake: FakeConnect) -> None:
        sdk = library("onepasswordconnectsdk.client", "onepasswordconnectsdk")
        client = sdk.Client(fake.base_url, TOKEN)
        item = client.get_item("db", "Prod env")
        theirs = {
            field.label: field.value
            for field in item.fields
            if field.section is None and field.label != "twin"
        }
        ours = dict(values(connected(fake), "op://Prod env/db#username,password"))
        assert theirs == {
            **{name: value.decode() for name, value in ours.items()},
            "notesPlain": None,
        }
        (file, _) = client.get_files(item.id, item.vault.id)
        assert client.get_file_content(file.id, item.id, item.vault.id) == b"-----\r\n\x00"
        assert {vault.name for vault in client.get_vaults()} == {"Prod env"}
        with pytest.raises(Exception, match="Found 0 vaults"):
            client.get_item("db", "Hidden")
        with pytest.raises(Exception, match="Received 401"):
            sdk.Client(fake.base_url, "wrong").get_vaults()
        with pytest.raises(Exception, match="Received 403"):
            client.get_item_by_id(made_id(0, "i"), list(fake.vaults)[1])

    CASES: Mapping[str, tuple[type[PluginError], str]] = {
        "op://Nowhere/db/password": (
            SecretNotFoundError,
            "there is no vault of that name, or the token may not see it",
        ),
        "op://Hidden/db/password": (
            SecretNotFoundError,
            "there is no vault of that name, or the token may not see it",
        ),
        f"op://{made_id(1, 'v')}/db/password": (
            AccessDeniedError,
            "does not let this token read that vault (403)",
        ),
        f"op://{made_id(8, 'v')}/db/password": (
            SecretNotFoundError,
            "does not have it, or hides it",
        ),
        "op://Prod env/none/password": (SecretNotFoundError, "there is no item of that title"),
        "op://prod env/db/password": (SecretNotFoundError, "there is no vault of that name"),
        "op://Prod env/DB/password": (SecretNotFoundError, "there is no item of that title"),
        f"op://Prod env/{made_id(98, 'q')}/password": (
            SecretNotFoundError,
            "there is no item of that title",
        ),
        "op://Prod env/twin/password": (ReferenceValueError, "2 items have that title"),
        "op://Prod env/db/none": (SecretNotFoundError, "the item has no such field"),
        "op://Prod env/db/Admin/none": (SecretNotFoundError, "the item has no such field"),
        "op://Prod env/db/Nobody/password": (
            SecretNotFoundError,
            "the item has no section with that name",
        ),
        "op://Prod env/db/twin": (ReferenceValueError, "2 fields of the item have that name"),
        "op://Prod env/db/password?attribute=otp": (
            UnsupportedError,
            "a Connect server does not support attribute=",
        ),
        "op://Prod env/db/password?ssh-format=openssh": (
            UnsupportedError,
            "a Connect server does not support ssh-format=",
        ),
        "op://Prod env": (ReferenceValueError, "is not a 1Password reference"),
        "op://Prod env/db/": (ReferenceValueError, "is not a 1Password reference"),
        "op://": (ReferenceValueError, "is not a 1Password reference"),
        "op://a/b/c/d/e": (ReferenceValueError, "is not a 1Password reference"),
    }

    @pytest.mark.parametrize("text", CASES)
    def test_each_failure_reads_differently(self, text: str, fake: FakeConnect) -> None:
        kind, message = self.CASES[text]
        registry = connected(fake)
        error = answer_of(registry, text)
        assert isinstance(error, PluginError)
        assert type(error) is kind
        assert message in error.message
        assert error.remedy
        assert error.locator == registry.locate(parse(text)).text
        assert not any(secret in repr(vars(error)) for secret in (CANARY, TOKEN, "hunter2"))

    def test_an_empty_field_is_reported_like_any_other(self, fake: FakeConnect) -> None:
        with pytest.raises(SecretNotFoundError, match="notesPlain is empty"):
            values(connected(fake), "op://Prod env/db/notesPlain")
        assert values(
            connected(fake), "op://Prod env/db/notesPlain?optional=1", "op://Prod env/db/host"
        ) == [("host", b"db.example")]

    def test_a_token_that_is_refused_is_no_wrong_name(self, fake: FakeConnect) -> None:
        error = answer_of(connected(fake, OP_CONNECT_TOKEN=CANARY), "op://Prod env/db/password")
        assert isinstance(error, BackendAuthError)
        assert "refused the token" in error.message
        assert "OP_CONNECT_TOKEN" in error.remedy
        assert CANARY not in repr(vars(error))

    def test_a_file_over_16_mib_is_refused(self, fake: FakeConnect) -> None:
        with pytest.raises(PayloadTooLargeError, match="more than 16 MiB"):
            values(connected(fake), "op://Prod env/db/large.bin")

    FAULTS: Mapping[str, tuple[Reply, type[PluginError], str, float | None]] = {
        "429": (
            Reply(429, b"", {"retry-after": "7"}),
            UnavailableError,
            "asks to try again later (429)",
            7.0,
        ),
        "503": (
            Reply(503, b"", {"retry-after": "2"}),
            UnavailableError,
            "asks to try again later (503)",
            2.0,
        ),
        "500": (Reply(500, CANARY.encode()), UnavailableError, "failed (500)", None),
        "a redirect": (
            Reply(302, b"", {"location": "http://127.0.0.1:9/"}),
            NotConfiguredError,
            "redirect (302)",
            None,
        ),
        "a page": (
            Reply(200, f"<html>{CANARY}".encode()),
            PluginError,
            "a response that is not JSON",
            None,
        ),
        "other JSON": (Reply(200, b'{"a": 1}'), PluginError, "an unexpected response", None),
        "no id": (
            Reply(200, b'[{"name": "Prod env", "id": "../../x"}]'),
            PluginError,
            "without a valid id",
            None,
        ),
        "deep": (Reply(200, b"[" * 100_000), PluginError, "a response that is not JSON", None),
        "400": (Reply(400, CANARY.encode()), PluginError, "(400)", None),
    }

    @pytest.mark.parametrize("name", FAULTS)
    def test_what_a_server_answers_in_trouble(self, name: str, fake: FakeConnect) -> None:
        answer, kind, message, retry_after = self.FAULTS[name]
        fake.rule = lambda _: answer
        error = answer_of(connected(fake), "op://Prod env/db/password")
        assert type(error) is kind
        assert message in error.message
        assert getattr(error, "retry_after", None) == retry_after
        assert not any(secret in repr(vars(error)) for secret in (CANARY, TOKEN))

    def test_trouble_is_not_kept(self, fake: FakeConnect) -> None:
        registry = connected(fake)
        fake.rule = lambda asked: Reply(503) if "/items/" in asked.target else None
        assert isinstance(answer_of(registry, "op://Prod env/db/password"), UnavailableError)
        fake.rule = lambda _: None
        assert isinstance(answer_of(registry, "op://Prod env/db/password"), Document)

    def test_a_server_that_is_not_there_is_unavailable(self) -> None:
        environ = {
            "OP_CONNECT_HOST": f"http://127.0.0.1:{silent_port()}",
            "OP_CONNECT_TOKEN": TOKEN,
        }
        error = answer_of(Registry(environ=environ, network=network()), "op://a/b/c")
        assert isinstance(error, UnavailableError)
        assert f"127.0.0.1:{silent_port()}" in error.message

    def test_tls_is_checked_and_the_ca_given_once_is_used(self, tmp_path: Path) -> None:
        ca = trustme.CA()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        ca.issue_cert("localhost").configure_cert(context)
        ca.cert_pem.write_to_path(tmp_path / "ca.pem")
        with FakeConnect(tls=context) as server:
            filled(server)
            environ = {"OP_CONNECT_HOST": server.base_url, "OP_CONNECT_TOKEN": TOKEN}
            with_ca = Registry(environ=environ, network=network(tmp_path / "ca.pem"))
            assert values(with_ca, "op://Prod env/db/username") == [("username", b"app")]
            error = answer_of(connected(server), "op://Prod env/db/username")
        assert isinstance(error, NotConfiguredError)
        assert "from an authority that is not trusted here" in error.message
        assert "SEALPIPE_CA_FILE" in error.remedy

    def test_a_proxy_that_requires_a_login_is_reported(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with socket.create_server(("127.0.0.1", 0)) as proxy:

            def refuse() -> None:
                connection, _ = proxy.accept()
                with connection:
                    connection.recv(4096)
                    connection.sendall(
                        b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n"
                    )

            thread = threading.Thread(target=refuse)
            thread.start()
            monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.getsockname()[1]}")
            monkeypatch.delenv("NO_PROXY", raising=False)
            monkeypatch.delenv("no_proxy", raising=False)
            monkeypatch.delenv("https_proxy", raising=False)
            environ = {"OP_CONNECT_HOST": "https://connect.example", "OP_CONNECT_TOKEN": TOKEN}
            error = answer_of(Registry(environ=environ, network=network()), "op://a/b/c")
            thread.join()
        assert isinstance(error, NotConfiguredError)
        assert "requires a login" in error.message

    def test_doctor_asks_for_no_item(self, fake: FakeConnect) -> None:
        health = connected(fake).check("source", "op")
        assert (health.ok, health.detail) == (True, "1Password Connect 1.7.1, 1 vaults")
        assert fake.targets == ["/health", "/v1/vaults"]
        with pytest.raises(BackendAuthError):
            connected(fake, OP_CONNECT_TOKEN="wrong").check("source", "op")


class TestWhichLogin:
    """The choice follows what is set."""

    def test_connect_comes_before_the_service_account(self, fake: FakeConnect) -> None:
        registry = connected(fake, OP_SERVICE_ACCOUNT_TOKEN=CANARY)
        assert values(registry, "op://Prod env/db/username") == [("username", b"app")]

    def test_a_named_store_takes_nothing_of_the_environments_names(self, fake: FakeConnect) -> None:
        store = {
            "SEALPIPE_STORE__TEAM__PLUGIN": "op",
            "SEALPIPE_STORE__TEAM__CONNECT_HOST": fake.base_url,
        }
        registry = connected(fake, **store)
        with pytest.raises(
            NotConfiguredError, match="OP_CONNECT_HOST is set but OP_CONNECT_TOKEN is not"
        ):
            values(registry, "team:Prod env/db/username")
        registry = connected(fake, **store, SEALPIPE_STORE__TEAM__CONNECT_TOKEN=TOKEN)
        assert values(registry, "team://Prod env/db/username") == [("username", b"app")]

    @pytest.mark.parametrize(
        ("environ", "message", "remedy"),
        [
            ({}, "op: no 1Password login is configured", "OP_SERVICE_ACCOUNT_TOKEN"),
            ({"OP_CONNECT_HOST": "http://x"}, "OP_CONNECT_TOKEN is not", "set OP_CONNECT_TOKEN"),
            ({"OP_CONNECT_TOKEN": CANARY}, "OP_CONNECT_HOST is not", "set OP_CONNECT_HOST"),
            (
                {"OP_CONNECT_TOKEN": CANARY, "OP_CONNECT_HOST": "localhost:8080"},
                "not an address",
                "https://",
            ),
            (
                {"OP_CONNECT_TOKEN": CANARY, "OP_CONNECT_HOST": "http://a:b@x"},
                "not an address",
                "https://",
            ),
            (
                {"OP_SERVICE_ACCOUNT_TOKEN": CANARY},
                "service account is invalid",
                "begins with ops_",
            ),
            (
                {"OP_SERVICE_ACCOUNT_TOKEN": f"ops_{CANARY}"},
                "service account is invalid",
                "begins with ops_",
            ),
        ],
    )
    def test_what_is_not_set_or_is_no_token_is_said(
        self, environ: dict[str, str], message: str, remedy: str
    ) -> None:
        library("onepassword", "onepassword-sdk")
        error = answer_of(Registry(environ=environ, network=network()), "op://a/b/c")
        assert isinstance(error, NotConfiguredError)
        assert message in error.message
        assert remedy in error.remedy
        assert CANARY not in repr(vars(error))
        assert (error.__cause__, error.__context__) == (None, None)

    def test_a_token_in_the_config_file_is_refused(self) -> None:
        registry = Registry(
            environ={}, config=lambda: {"plugins": {"op": {"service_account_token": CANARY}}}
        )
        with pytest.raises(SettingError, match="service_account_token in plain text") as caught:
            values(registry, "op://a/b/c")
        assert CANARY not in repr(vars(caught.value))

    def test_without_the_sdk_the_error_says_what_to_install(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in [name for name in sys.modules if name.partition(".")[0] == "onepassword"]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, "onepassword", None)
        error = answer_of(Registry(environ={"OP_SERVICE_ACCOUNT_TOKEN": CANARY}), "op://a/b/c")
        assert isinstance(error, NotConfiguredError)
        assert "pip install 'sealpipe[op]'" in error.remedy

    def test_connect_needs_no_sdk(self, fake: FakeConnect, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "onepassword", None)
        assert values(connected(fake), "op://Prod env/db/username") == [("username", b"app")]

    def test_a_whole_item_is_no_request_to_a_service_account(self) -> None:
        library("onepassword", "onepassword-sdk")
        error = answer_of(Registry(environ={"OP_SERVICE_ACCOUNT_TOKEN": CANARY}), "op://a/b")
        assert isinstance(error, UnsupportedError)
        assert "whole item" in error.message


class TestWhatTheSdkSays:
    """Its answers and exceptions, made of its own types: 1Password itself is not asked."""

    def test_every_answer_of_its_types_means_something(self) -> None:
        types = library("onepassword.types", "onepassword-sdk")
        kinds = [kind.value for kind in types.ResolveReferenceErrorTypes]
        given: dict[str, Any] = {f"op://v/i/{kind}": {"error": _error_of(kind)} for kind in kinds}
        given["op://v/i/good"] = {"content": {"secret": CANARY, "itemId": "i", "vaultId": "v"}}
        response = types.ResolveAllResponse.model_validate({"individualResponses": given})
        found = map_responses(response, [*given, "op://v/i/forgotten"])
        assert found["op://v/i/good"] == CANARY
        errors = {ref: error for ref, error in found.items() if isinstance(error, PluginError)}
        assert len(errors) == len(kinds) + 1
        assert [ref for ref, error in errors.items() if type(error) is PluginError] == [
            "op://v/i/unableToGenerateTotpCode",
            "op://v/i/unableToParsePrivateKey",
            "op://v/i/unableToFormatPrivateKeyToOpenSsh",
            "op://v/i/other",
            "op://v/i/forgotten",
        ]
        for error in errors.values():
            assert error.remedy
            assert CANARY not in repr(vars(error))

    @pytest.mark.parametrize(
        ("text", "kind"),
        [
            (
                (
                    "invalid user input: encountered the following errors: service account "
                    "token was not specified"
                ),
                NotConfiguredError,
            ),
            (
                "invalid service account token: service account token base64 decoding failed",
                NotConfiguredError,
            ),
            ("authentication error: the service account was deleted", BackendAuthError),
            ("unauthorized: 401", BackendAuthError),
            ("rate limit exceeded", UnavailableError),
            ("error sending request for url: dns error", UnavailableError),
            ("something that nobody has heard of", PluginError),
        ],
    )
    def test_its_exceptions_are_said_in_our_words(self, text: str, kind: type[PluginError]) -> None:
        error = map_exception(Exception(f"{text} {CANARY}"))
        assert type(error) is kind
        assert error.remedy
        assert CANARY not in repr(vars(error))


def _error_of(kind: str) -> dict[str, Any]:
    """An error as the SDK's core writes it; some kinds have a message."""
    with_message = {
        "parsing",
        "unableToGenerateTotpCode",
        "unableToParsePrivateKey",
        "unableToFormatPrivateKeyToOpenSsh",
    }
    return {"type": kind, **({"message": CANARY} if kind in with_message else {})}
