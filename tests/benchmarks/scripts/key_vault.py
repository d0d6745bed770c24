"""References to Azure Key Vault, and the same reads with Microsoft's own client in a loop, by turns: ms, as JSON.

    python key_vault.py COUNT RUNS      the environment says where and who

The names are s0, s1, ...; everything is imported before the clock runs, clients are made while it does.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from urllib.parse import urlsplit

from azure.identity import ClientSecretCredential
from azure.keyvault.secrets import SecretClient

import sealpipe


def ours(names: list[str]) -> list[str]:
    return [field.value.reveal() for field in sealpipe.resolve([f"azure-kv:{name}" for name in names])]


def theirs(names: list[str]) -> list[str]:
    way = {"connection_verify": os.environ["SSL_CERT_FILE"]}
    who = [os.environ[f"AZURE_{name}"] for name in ("TENANT_ID", "CLIENT_ID", "CLIENT_SECRET")]
    authority = urlsplit(os.environ["AZURE_AUTHORITY_HOST"]).netloc
    credential = ClientSecretCredential(*who, authority=authority, disable_instance_discovery=True, **way)
    address = os.environ["SEALPIPE_PLUGIN_AZURE_KV__URL"]
    with credential, SecretClient(address, credential, verify_challenge_resource=False, **way) as client:
        return [client.get_secret(name).value for name in names]


def took(way: Callable[[list[str]], list[str]], names: list[str]) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    found = way(names)
    spent = time.perf_counter() - wall, time.process_time() - cpu
    assert found == [f"value of {name}" for name in names]
    return 1000 * spent[0], 1000 * spent[1]


def main() -> None:
    count, runs = int(sys.argv[1]), int(sys.argv[2])
    names = [f"s{number}" for number in range(count)]
    took(ours, names[:1])  # so that both are imported whole
    took(theirs, names[:1])
    turns = [(took(ours, names), took(theirs, names)) for _ in range(runs)]
    told = {
        kind: [[turn[side][index] for turn in turns] for side in (0, 1)] for index, kind in enumerate(("wall", "cpu"))
    }
    print(json.dumps(told))


main()
