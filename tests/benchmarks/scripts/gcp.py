"""References to Google Secret Manager, and the same reads with Google's own client in a loop, by
turns: ms, as JSON.

    python gcp.py COUNT RUNS      the environment says where and who

The names are s0, s1, ...; everything is imported before the clock runs, clients are made while it
does.
"""

import os
import sys
from urllib.parse import urlsplit

from google.cloud import secretmanager_v1
from google.cloud.secretmanager_v1.services.secret_manager_service.transports import rest
from google.oauth2 import credentials
from turns import by_turns

import sealpipe


def ours(names: list[str]) -> list[str]:
    return [
        field.value.reveal() for field in sealpipe.resolve([f"gcp-sm:{name}" for name in names])
    ]


def theirs(names: list[str]) -> list[str]:
    # A token: with a service account it would also ask Google for the regions of its requests.
    address = urlsplit(os.environ["SEALPIPE_PLUGIN_GCP_SM__URL"]).netloc
    login = credentials.Credentials(os.environ["BENCH_TOKEN"])
    transport = rest.SecretManagerServiceRestTransport(
        host=address, credentials=login, url_scheme="http"
    )
    folder = f"projects/{os.environ['GOOGLE_CLOUD_PROJECT']}/secrets"
    with secretmanager_v1.SecretManagerServiceClient(transport=transport) as client:
        requests = [{"name": f"{folder}/{name}/versions/latest"} for name in names]
        return [
            client.access_secret_version(request=each).payload.data.decode() for each in requests
        ]


print(by_turns(ours, theirs, int(sys.argv[1]), int(sys.argv[2])))
