"""Microsoft's own client against the fake, under Azure's names and with TLS: proof that the fake
speaks as documented.

The client checks by itself that the challenge's resource is the vault's.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from plugins.azure_key_vault.fake_key_vault import (
    CLIENT,
    FORBIDDEN,
    HOST,
    SECRET,
    TENANT,
    FakeKeyVault,
)
from sealpipe_plugins.azure_key_vault.sink import TAG
from support.backends import put, values
from support.parts import not_installed
from support.wires import Intercepting


@pytest.fixture
def client(proxy: Intercepting) -> Any:
    try:
        from azure.identity import ClientSecretCredential
        from azure.keyvault.secrets import SecretClient
    except ImportError:
        not_installed("azure-keyvault-secrets")
    way: dict[str, Any] = {
        "proxies": {"https": proxy.url()},
        "connection_verify": str(proxy.ca_file),
        "retry_total": 0,
    }
    credential = ClientSecretCredential(TENANT, CLIENT, SECRET, **way)
    return SecretClient(f"https://{HOST}", credential, **way)


def test_it_stores_and_reads(client: Any, azure: FakeKeyVault) -> None:
    stored = client.set_secret("db", "é", tags={"a": "b"}, content_type="text/plain")
    read = client.get_secret("db")
    assert (read.value, read.properties.version, read.properties.tags) == (
        "é",
        stored.properties.version,
        {"a": "b"},
    )
    assert (
        client.get_secret("db", stored.properties.version).properties.content_type == "text/plain"
    )
    assert client.update_secret_properties("db", tags={"c": "d"}).tags == {"c": "d"}
    assert [each.name for each in client.list_properties_of_secrets()] == ["db"]
    assert azure.newest("db") == "é"


def test_it_understands_each_refusal(client: Any, azure: FakeKeyVault) -> None:
    from azure.core import exceptions

    azure.hold("gone", "x").deleted = True
    with pytest.raises(exceptions.ResourceNotFoundError):
        client.get_secret("nothing")
    with pytest.raises(exceptions.HttpResponseError) as denied:
        client.get_secret(FORBIDDEN)
    assert denied.value.status_code == 403
    with pytest.raises(exceptions.ResourceExistsError) as conflict:
        client.set_secret("gone", "x")
    assert conflict.value.error.innererror["code"] == "ObjectIsDeletedButRecoverable"
    assert client.get_deleted_secret("gone").recovery_id.endswith("/deletedsecrets/gone")


def test_it_gives_no_token_to_a_server_that_wants_one_for_others(
    client: Any, azure: FakeKeyVault
) -> None:
    azure.resource = "https://graph.microsoft.com"
    with pytest.raises(ValueError, match="does not match the requested domain"):
        client.get_secret("db")
    assert azure.resource not in azure.tokens.values()


def test_each_reads_what_the_other_stores(
    client: Any, azure: FakeKeyVault, environ: dict[str, str]
) -> None:
    put(environ, "azure-kv:db", {"a": "é"})
    read = client.get_secret("db")
    assert (json.loads(read.value), read.properties.tags) == ({"a": "é"}, {TAG: "m1"})
    client.set_secret("db", "theirs")
    assert values(environ, "azure-kv:db") == [b"theirs"]
    assert len(azure.secrets["db"].versions) == 2
