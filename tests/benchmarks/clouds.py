"""What 50 references to one cloud's store cost, beside its own client in a loop.

The servers are the tests' fakes.
"""

from __future__ import annotations

import json
import ssl
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import trustme
from bench import Bench
from measuring import Command, Pair
from table import Row

sys.path.append(str(Path(__file__).resolve().parents[1]))

from plugins.azure_key_vault import fake_key_vault as azure
from plugins.gcp import fake_secret_manager as google
from support.fake_web import Asked, FakeWeb

COUNT, SHORT_COUNT = 50, 5
DELAY = 0.02
"""Seconds: about what a request to a region nearby takes."""
TOKEN = "made-up"


def rows(bench: Bench) -> Iterator[Row]:
    """The rows of this group."""
    count = SHORT_COUNT if bench.short else COUNT
    values = {f"s{number}": f"value of s{number}" for number in range(count)}
    with tempfile.TemporaryDirectory() as folder:
        yield from _google(bench, values, Path(folder, "key.json"))
        yield from _azure(bench, values, Path(folder, "ca.pem"))


def _google(bench: Bench, values: Mapping[str, str], file: Path) -> Iterator[Row]:
    with google.FakeSecretManager() as server:
        server.tokens.add(TOKEN)
        for name, value in values.items():
            server.hold(name, value.encode())
        file.write_text(server.credentials())
        environ = {
            "GOOGLE_APPLICATION_CREDENTIALS": str(file),
            "GOOGLE_CLOUD_PROJECT": google.PROJECT,
            "SEALPIPE_PLUGIN_GCP_SM__URL": server.base_url,
            "BENCH_TOKEN": TOKEN,
        }
        what = (
            f"{len(values)} references to one Google Secret Manager; the same with Google's "
            "client in a loop"
        )
        yield from _compared(bench, server, "gcp", "gcp-sm", what, len(values), environ)


def _azure(bench: Bench, values: Mapping[str, str], ca_file: Path) -> Iterator[Row]:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(ca_file)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with azure.FakeKeyVault(tls=context) as server:
        for name, value in values.items():
            server.hold(name, value)
        environ = {
            "AZURE_TENANT_ID": azure.TENANT,
            "AZURE_CLIENT_ID": azure.CLIENT,
            "AZURE_CLIENT_SECRET": azure.SECRET,
            "AZURE_AUTHORITY_HOST": server.base_url,
            "SEALPIPE_PLUGIN_AZURE_KV__URL": server.base_url,
            "SSL_CERT_FILE": str(ca_file),
        }
        what = (
            f"{len(values)} references to one Azure Key Vault; the same with Microsoft's "
            "client in a loop"
        )
        yield from _compared(bench, server, "key_vault", "azure-kv", what, len(values), environ)


def _compared(
    bench: Bench,
    server: FakeWeb,
    script: str,
    name: str,
    what: str,
    count: int,
    environ: Mapping[str, str],
) -> Iterator[Row]:
    words = bench.python(f"{script}.py", str(count), str(bench.runs))
    near = far = _told(bench, words, environ)
    if not bench.short:  # most of it is the import of the cloud's own client
        server.rule = _wait
        far = _told(bench, words, environ)
    yield Row(f"{name}-cpu", what, "ms CPU", near["cpu"])
    yield Row(f"{name}-wall", "the same, the server on this machine", "ms", near["wall"])
    yield Row(
        f"{name}-far-wall",
        f"the same, each answer {1000 * DELAY:.0f} ms later",
        "ms",
        far["wall"],
        0.35,
    )


def _told(bench: Bench, words: Sequence[Any], environ: Mapping[str, str]) -> dict[str, Pair]:
    found = json.loads(bench.meter.run(Command(words, environ)).out)
    return {kind: Pair.of(*sides) for kind, sides in found.items()}


def _wait(_: Asked) -> None:
    time.sleep(DELAY)
