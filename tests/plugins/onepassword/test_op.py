"""op://Vault/Item/field: Connect against a fake server on a real socket, the service account by
what its SDK says.
"""

from __future__ import annotations

import ssl
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme

from plugins.onepassword.fake_op_connect import SECTION, TOKEN, FakeConnect, filled, made_id
from sealpipe.errors import (
    BackendAuthError,
    NotConfiguredError,
    PayloadTooLargeError,
    PluginError,
    SecretNotFoundError,
    SettingError,
    UnavailableError,
)
from sealpipe.plugin import Document
from sealpipe.reference import parse, parse_field
from sealpipe.registry import Registry
from sealpipe.sources.resolve import resolve
from sealpipe_plugins.onepassword.sdk import map_exception, map_responses
from support.backends import opened, registry
from support.fake_web import Reply
from support.parts import library

CANARY = "Canary-2b9e"


@pytest.fixture
def fake() -> Iterator[FakeConnect]:
    with FakeConnect() as server:
        yield filled(server)


def connected(fake: FakeConnect, **more: str) -> Registry:
    environ = {"OP_CONNECT_HOST": fake.base_url, "OP_CONNECT_TOKEN": TOKEN, **more}
    return registry(environ)


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
            (made_id(5, "f"), b"nameless"),
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
            if field.section is None and field.label not in ("twin", "")
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

    def test_an_empty_field_is_reported_like_any_other(self, fake: FakeConnect) -> None:
        with pytest.raises(SecretNotFoundError, match="notesPlain is empty"):
            values(connected(fake), "op://Prod env/db/notesPlain")
        assert values(
            connected(fake), "op://Prod env/db/notesPlain?optional=1", "op://Prod env/db/host"
        ) == [("host", b"db.example")]

    def test_a_file_over_16_mib_is_refused(self, fake: FakeConnect) -> None:
        with pytest.raises(PayloadTooLargeError, match="more than 16 MiB"):
            values(connected(fake), "op://Prod env/db/large.bin")

    def test_trouble_is_not_kept(self, fake: FakeConnect) -> None:
        registry = connected(fake)
        fake.rule = lambda asked: Reply(503) if "/items/" in asked.target else None
        assert isinstance(answer_of(registry, "op://Prod env/db/password"), UnavailableError)
        fake.rule = lambda _: None
        assert isinstance(answer_of(registry, "op://Prod env/db/password"), Document)

    def test_tls_is_checked_and_the_ca_given_once_is_used(self, tmp_path: Path) -> None:
        ca = trustme.CA()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        ca.issue_cert("localhost").configure_cert(context)
        ca.cert_pem.write_to_path(tmp_path / "ca.pem")
        with FakeConnect(tls=context) as server:
            filled(server)
            environ = {"OP_CONNECT_HOST": server.base_url, "OP_CONNECT_TOKEN": TOKEN}
            with_ca = registry(environ, ca_file=tmp_path / "ca.pem")
            assert values(with_ca, "op://Prod env/db/username") == [("username", b"app")]
            error = answer_of(connected(server), "op://Prod env/db/username")
        assert isinstance(error, NotConfiguredError)
        assert "from an authority that is not trusted here" in error.message
        assert "SEALPIPE_CA_FILE" in error.remedy

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
