"""azure-kv:VAULT/NAME: references, versions, challenges, and what a vault refuses."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from plugins.azure_key_vault.conftest import APPLICATION, DEFAULT
from plugins.azure_key_vault.fake_key_vault import (
    HOST,
    TENANT,
    VAULT,
    FakeKeyVault,
)
from sealpipe.errors import (
    BackendAuthError,
    NotConfiguredError,
    PluginError,
)
from sealpipe_plugins.azure_key_vault.challenge import (
    Challenge,
    parse_challenge,
    require_own_resource,
)
from support.backends import answers, opened, registry, resolved, values
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


def test_a_token_that_is_refused_is_not_used_again(
    azure: FakeKeyVault, environ: dict[str, str]
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
