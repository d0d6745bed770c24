"""azure-kv:VAULT/NAME: references, versions, challenges, and what a vault refuses."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from plugins.azure_key_vault.conftest import APPLICATION, DEFAULT
from plugins.azure_key_vault.fake_key_vault import (
    FORBIDDEN,
    HOST,
    OTHER_TENANT,
    TENANT,
    VAULT,
    FakeKeyVault,
)
from sealpipe.errors import (
    AccessDeniedError,
    BackendAuthError,
    NotConfiguredError,
    PluginError,
    ReferenceValueError,
    SecretNotFoundError,
    UnavailableError,
)
from sealpipe_plugins.azure_key_vault.challenge import (
    Challenge,
    parse_challenge,
    require_own_resource,
)
from support.backends import answers, opened, refused, registry, resolved, values
from support.fake_web import Reply
from support.wires import Intercepting

CANARY = "canary-of-an-answer"


class TestReferences:
    def test_a_vaults_name_is_its_address(
        self, azure: FakeKeyVault, proxy: Intercepting, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        azure.hold("db", "x")
        monkeypatch.setenv("HTTPS_PROXY", proxy.url())
        found = registry(APPLICATION, ca_file=Path(proxy.ca_file))
        assert [opened(field) for field in resolved(found, f"azure-kv:{VAULT.upper()}/db")] == [
            b"x"
        ]
        assert set(proxy.asked) == {HOST, "login.microsoftonline.com"}

    def test_an_object_is_a_map_unless_it_is_read_raw(
        self, azure: FakeKeyVault, environ: dict[str, str]
    ) -> None:
        azure.hold("db", '{"n": 1.10, "a.b": "x"}')
        assert values(environ, "azure-kv:db#n,a.b", "azure-kv:db?raw=1") == [
            b"1.10",
            b"x",
            b'{"n": 1.10, "a.b": "x"}',
        ]

    def test_a_version_is_named_and_the_newest_is_read_without(
        self, azure: FakeKeyVault, environ: dict[str, str]
    ) -> None:
        old = azure.hold("db", "old", "new").versions[0]["version"]
        assert values(environ, f"azure-kv:db?version={old}", "azure-kv:db") == [b"old", b"new"]

    @pytest.mark.parametrize(
        "body", ["", "a/b/c", "A B", "v/", "a_b", "../x", "x/y", "-v/n", f"{HOST}/db", "vault/é"]
    )
    def test_any_other_name_is_refused(
        self, body: str, azure: FakeKeyVault, environ: dict[str, str]
    ) -> None:
        refused(environ, f"azure-kv:{body}", ReferenceValueError, "is not a valid name")
        refused(environ, "azure-kv:db?version=1", ReferenceValueError, "version=")
        assert azure.asked == []

    def test_a_name_without_a_vault_needs_the_setting(self) -> None:
        error = refused(APPLICATION, "azure-kv:db", NotConfiguredError, "names no vault")
        assert "azure-kv:VAULT/db" in error.remedy


def test_fifty_secrets_need_one_login_and_one_challenge(
    azure: FakeKeyVault, environ: dict[str, str]
) -> None:
    for number in range(50):
        azure.hold(f"s{number}", str(number))
    found = answers(registry(environ), *(f"azure-kv:s{number}" for number in range(50)))
    assert [getattr(each, "content", each) for each in found] == [
        str(number) for number in range(50)
    ]
    assert len(azure.asked) == 53


class TestChallenges:
    def test_a_token_goes_to_no_server_that_wants_one_for_others(
        self, azure: FakeKeyVault, environ: dict[str, str]
    ) -> None:
        azure.resource = "https://vault.azure.net"
        refused(environ, "azure-kv:db", NotConfiguredError, "for another service")
        assert (len(azure.asked), azure.tokens) == (1, {})

    def test_a_vault_of_another_tenant_is_told(
        self, azure: FakeKeyVault, environ: dict[str, str]
    ) -> None:
        azure.tenant = OTHER_TENANT
        refused(environ, "azure-kv:db", NotConfiguredError, "belongs to another tenant")

    def test_a_server_without_one_is_no_vault(
        self, azure: FakeKeyVault, environ: dict[str, str]
    ) -> None:
        for answer in (
            Reply(200, {}),
            Reply(401, {}),
            Reply(401, {}, {"www-authenticate": "Basic realm=x"}),
        ):
            azure.rule = lambda _, answer=answer: answer  # type: ignore[misc]
            refused(environ, "azure-kv:db", NotConfiguredError, "is not Azure Key Vault")

    @pytest.mark.parametrize(
        ("header", "found"),
        [
            (
                (
                    f'Bearer authorization="https://login.windows.net/{TENANT}", '
                    'resource="https://vault.azure.net"'
                ),
                Challenge(TENANT, "https://vault.azure.net"),
            ),
            (
                (
                    f"bearer authorization_uri=https://x/{TENANT.upper()}/, "
                    "scope=https://vault.azure.cn/.default"
                ),
                Challenge(TENANT, "https://vault.azure.cn"),
            ),
            (
                'Bearer resource="https://vault.azure.net/"',
                Challenge("", "https://vault.azure.net"),
            ),
            ('Bearer authorization="https://x/common", resource="r"', Challenge("", "r")),
            ("Bearer", None),
            ("Bearer authorization=x", None),
            ("", None),
        ],
    )
    def test_are_parsed(self, header: str, found: Challenge | None) -> None:
        assert parse_challenge(header) == found

    def test_of_great_length_take_no_time(self) -> None:
        started = time.process_time()
        assert parse_challenge(f"Bearer {'a' * 90_000}") is None
        assert time.process_time() - started < 2  # it took a minute

    @given(st.text())
    @example('Bearer resource="https://[", authorization="https://["')
    def test_of_any_text_come_to_nothing_else(self, text: str) -> None:
        found = parse_challenge(f"Bearer {text}")
        if found is not None:
            with pytest.raises(NotConfiguredError):
                require_own_resource(found, "https://acme.vault.example", None)

    @pytest.mark.parametrize(
        ("resource", "vault", "is_own"),
        [
            ("https://vault.azure.net", f"https://{HOST}", True),
            ("https://vault.azure.net", "https://evilvault.azure.net", False),
            ("https://vault.azure.net", "https://vault.azure.net.example", False),
            ("https://azure.net", f"https://{HOST}", True),
            ("https://graph.microsoft.com", f"https://{HOST}", False),
            ("", f"https://{HOST}", False),
            (f"https://{HOST}/.default https://vault.azure.net", f"https://{HOST}", False),
            (f"https://{HOST}?https://vault.azure.net", f"https://{HOST}", False),
            (f"https://vault.azure.net@{HOST}", f"https://{HOST}", False),
        ],
    )
    def test_name_the_domain_of_the_vault(self, resource: str, vault: str, *, is_own: bool) -> None:
        if is_own:
            assert require_own_resource(Challenge("", resource), vault, None) == resource
            return
        with pytest.raises(NotConfiguredError):
            require_own_resource(Challenge("", resource), vault, None)


class TestRefusals:
    @pytest.mark.parametrize(
        ("name", "kind", "words"),
        [
            ("nothing", SecretNotFoundError, "does not exist"),
            ("db?version=00000000000000000000000000000000", SecretNotFoundError, "no such version"),
            ("gone", SecretNotFoundError, "is deleted and can be recovered"),
            ("off", SecretNotFoundError, "is disabled"),
            (FORBIDDEN, AccessDeniedError, "secrets/get"),
        ],
    )
    def test_are_told_apart(
        self,
        name: str,
        kind: type[PluginError],
        words: str,
        azure: FakeKeyVault,
        environ: dict[str, str],
    ) -> None:
        azure.hold("db", "x")
        azure.hold("gone", "x").deleted = True
        azure.hold("off", "x", attributes={"enabled": False})
        refused(environ, f"azure-kv:{name}", kind, words)

    @pytest.mark.parametrize(
        ("status", "inner", "kind", "words"),
        [
            (403, "ForbiddenByFirewall", AccessDeniedError, "firewall"),
            (400, "", ReferenceValueError, "rejects the name"),
            (401, "", BackendAuthError, "refused the token"),
            (429, "", UnavailableError, "try again later"),
            (500, "", UnavailableError, "failed"),
            (302, "", NotConfiguredError, "redirect"),
            (200, "", PluginError, "is not Azure Key Vault's"),
            (418, "", PluginError, "refused"),
        ],
    )
    def test_say_what_it_is_and_quote_nothing(
        self,
        status: int,
        inner: str,
        kind: type[PluginError],
        words: str,
        azure: FakeKeyVault,
        environ: dict[str, str],
    ) -> None:
        error = {"code": CANARY, "message": CANARY, "innererror": {"code": inner}}
        answer = Reply(status, {"error": error, "value": CANARY})
        azure.rule = lambda asked: answer if asked.path == "/secrets/db" else None
        found = answers(registry(environ), "azure-kv:db")[0]
        assert type(found) is kind
        assert words in found.message
        assert CANARY not in str(found) + found.remedy

    def test_a_token_that_is_refused_is_not_used_again(
        self, azure: FakeKeyVault, environ: dict[str, str]
    ) -> None:
        azure.hold("db", "x")
        found = registry(environ)
        assert not isinstance(answers(found, "azure-kv:db")[0], PluginError)
        azure.tokens.clear()
        assert isinstance(answers(found, "azure-kv:db")[0], BackendAuthError)
        assert not isinstance(answers(found, "azure-kv:db")[0], PluginError)


class TestDoctor:
    def test_names_the_login(self, environ: dict[str, str]) -> None:
        health = registry(environ).check("source", "azure-kv")
        assert (health.ok, "application aaaaaaaa" in health.detail) == (True, True)

    def test_a_login_that_may_not_list_may_still_read(
        self, azure: FakeKeyVault, environ: dict[str, str]
    ) -> None:
        azure.rule = lambda asked: Reply(403, {}) if "authorization" in asked.headers else None
        health = registry(environ).check("sink", "azure-kv")
        assert health.ok
        assert "may not list" in health.detail

    def test_needs_no_vault(self, environ: dict[str, str]) -> None:
        del environ[f"{DEFAULT}URL"]
        assert "no vault is set" in registry(environ).check("source", "azure-kv").detail
