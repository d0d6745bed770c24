"""References to Google Secret Manager, and the same reads with Google's own client in a loop, by turns: ms, as JSON.

    python gcp.py COUNT RUNS      the environment says where and who

The names are s0, s1, ...; everything is imported before the clock runs, clients are made while it does.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from urllib.parse import urlsplit

from google.cloud import secretmanager_v1
from google.cloud.secretmanager_v1.services.secret_manager_service.transports import rest
from google.oauth2 import credentials

import sealpipe


def ours(names: list[str]) -> list[str]:
    return [field.value.reveal() for field in sealpipe.resolve([f"gcp-sm:{name}" for name in names])]


def theirs(names: list[str]) -> list[str]:
    # A token: with a service account it would also ask Google for the regions of its requests.
    address = urlsplit(os.environ["SEALPIPE_PLUGIN_GCP_SM__URL"]).netloc
    login = credentials.Credentials(os.environ["BENCH_TOKEN"])
    transport = rest.SecretManagerServiceRestTransport(host=address, credentials=login, url_scheme="http")
    folder = f"projects/{os.environ['GOOGLE_CLOUD_PROJECT']}/secrets"
    with secretmanager_v1.SecretManagerServiceClient(transport=transport) as client:
        requests = [{"name": f"{folder}/{name}/versions/latest"} for name in names]
        return [client.access_secret_version(request=each).payload.data.decode() for each in requests]


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
