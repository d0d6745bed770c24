"""References to Azure Key Vault, and the same reads with Microsoft's own client in a loop, by
turns: ms, as JSON.

    python key_vault.py COUNT RUNS      the environment says where and who

The names are s0, s1, ...; everything is imported before the clock runs, clients are made while it
does.
"""

import os
import sys
from urllib.parse import urlsplit

from azure.identity import ClientSecretCredential
from azure.keyvault.secrets import SecretClient
from turns import by_turns

import sealpipe


def ours(names: list[str]) -> list[str]:
    return [
        field.value.reveal() for field in sealpipe.resolve([f"azure-kv:{name}" for name in names])
    ]


def theirs(names: list[str]) -> list[str]:
    way = {"connection_verify": os.environ["SSL_CERT_FILE"]}
    who = [os.environ[f"AZURE_{name}"] for name in ("TENANT_ID", "CLIENT_ID", "CLIENT_SECRET")]
    authority = urlsplit(os.environ["AZURE_AUTHORITY_HOST"]).netloc
    credential = ClientSecretCredential(
        *who, authority=authority, disable_instance_discovery=True, **way
    )
    address = os.environ["SEALPIPE_PLUGIN_AZURE_KV__URL"]
    with (
        credential,
        SecretClient(address, credential, verify_challenge_resource=False, **way) as client,
    ):
        return [client.get_secret(name).value for name in names]


print(by_turns(ours, theirs, int(sys.argv[1]), int(sys.argv[2])))
