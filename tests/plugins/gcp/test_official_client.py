"""Google's own client against the fake: proof that the fake speaks as Google's documentation
says.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from google_crc32c import value as crc32c

from plugins.gcp.fake_secret_manager import FORBIDDEN, PROJECT, FakeSecretManager
from sealpipe_plugins.gcp.writing import ANNOTATION
from support.backends import put, values
from support.parts import not_installed

FOLDER = f"projects/{PROJECT}"


@pytest.fixture
def client(google: FakeSecretManager) -> Iterator[Any]:
    try:
        from google.cloud import secretmanager_v1 as library
        from google.cloud.secretmanager_v1.services.secret_manager_service.transports import rest
        from google.oauth2 import credentials
    except ImportError:
        not_installed("google-cloud-secret-manager")
    # A service account would also ask Google itself for the regions of its requests.
    google.tokens.add("made-up")
    transport = rest.SecretManagerServiceRestTransport(
        host=f"127.0.0.1:{google.port}",
        credentials=credentials.Credentials("made-up"),
        url_scheme="http",
    )
    with library.SecretManagerServiceClient(transport=transport) as found:
        yield found


def test_it_creates_adds_and_reads(client: Any, google: FakeSecretManager) -> None:
    secret = client.create_secret(
        request={"parent": FOLDER, "secret_id": "db", "secret": {"replication": {"automatic": {}}}}
    )
    added = client.add_secret_version(
        request={
            "parent": f"{FOLDER}/secrets/db",
            "payload": {"data": b"x", "data_crc32c": crc32c(b"x")},
        }
    )
    read = client.access_secret_version(request={"name": f"{FOLDER}/secrets/db/versions/latest"})
    assert (read.name, read.payload.data, read.payload.data_crc32c) == (
        added.name,
        b"x",
        crc32c(b"x"),
    )
    assert secret.etag == '"1"'
    assert [each.name for each in client.list_secrets(request={"parent": FOLDER})] == [secret.name]
    assert client.get_secret_version(request={"name": added.name}).state.name == "ENABLED"
    assert google.newest("db") == b"x"


def test_it_changes_annotations_on_condition_of_the_etag(
    client: Any, google: FakeSecretManager
) -> None:
    from google.api_core import exceptions

    google.hold("db", b"x")
    name = f"{FOLDER}/secrets/db"
    etag = client.get_secret(request={"name": name}).etag
    change = {
        "secret": {"name": name, "etag": etag, "annotations": {"a": "b"}},
        "update_mask": "annotations",
    }
    assert client.update_secret(request=change).annotations == {"a": "b"}
    with pytest.raises(exceptions.BadRequest):
        client.update_secret(request=change)


def test_it_understands_each_refusal(client: Any, google: FakeSecretManager) -> None:
    from google.api_core import exceptions

    google.hold(FORBIDDEN, b"x")
    google.hold("off").versions = [(b"x", "DISABLED")]
    for name, kind in (
        ("nothing", exceptions.NotFound),
        (FORBIDDEN, exceptions.Forbidden),
        ("off", exceptions.BadRequest),
    ):
        with pytest.raises(kind):
            client.access_secret_version(
                request={"name": f"{FOLDER}/secrets/{name}/versions/latest"}
            )
    with pytest.raises(exceptions.Conflict):
        client.create_secret(
            request={
                "parent": FOLDER,
                "secret_id": "off",
                "secret": {"replication": {"automatic": {}}},
            }
        )


def test_each_reads_what_the_other_stores(
    client: Any, google: FakeSecretManager, environ: dict[str, str]
) -> None:
    put(environ, "gcp-sm:db", {"a": "é"})
    read = client.access_secret_version(request={"name": f"{FOLDER}/secrets/db/versions/1"})
    assert json.loads(read.payload.data) == {"a": "é"}
    assert dict(client.get_secret(request={"name": f"{FOLDER}/secrets/db"}).annotations) == {
        ANNOTATION: "m1"
    }
    client.add_secret_version(
        request={"parent": f"{FOLDER}/secrets/db", "payload": {"data": b"theirs"}}
    )
    assert values(environ, "gcp-sm:db") == [b"theirs"]
    assert len(google.secrets["db"].versions) == 2
