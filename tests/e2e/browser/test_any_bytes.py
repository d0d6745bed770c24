"""A certificate bundle goes from Vault to a recipient who saves it, and one from a vendor into a
keystore: byte for byte, by real parts.
"""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12
from cryptography.x509.oid import NameOID

from e2e.browser.asked import SENT, fill, form
from e2e.browser.chrome import Browser
from support.job import Job, client_of
from support.kubernetes import Cluster, InKubernetes, emulator
from support.openbao import Bao, dev_server

PASSPHRASE = "hünter2"


@pytest.fixture(scope="module")
def bundle() -> bytes:
    """A key and its certificate, as PKCS #12."""
    key, today = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "acme.example")])
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(today)
        .not_valid_after(today + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    return pkcs12.serialize_key_and_certificates(
        b"acme", key, certificate, None, BestAvailableEncryption(PASSPHRASE.encode())
    )


@pytest.fixture(scope="module")
def bao() -> Iterator[Bao]:
    with dev_server() as bao:
        yield bao


@pytest.fixture
def kubernetes() -> Iterator[InKubernetes]:
    with emulator() as url, Cluster(url) as cluster:
        yield InKubernetes(cluster)


def save_and_decode(browser: Browser, name: str, folder: Path) -> bytes:
    """What the recipient has after the command that the sender wrote."""
    browser.press(f"Download {name}")
    saved = browser.downloads / name
    browser.wait(saved.exists, "the file")
    decoded = folder / "decoded"
    with saved.open("rb") as source, decoded.open("wb") as to:
        subprocess.run(["base64", "-d"], stdin=source, stdout=to, check=True)
    return decoded.read_bytes()


@pytest.mark.parametrize(
    "ref", ["vault:secret/pki/acme?{hints}#bundle", "file:acme.p12?encode=base64&{hints}"]
)
def test_a_bundle_goes_to_a_recipient(
    browser: Browser, job: Job, bao: Bao, bundle: bytes, tmp_path: Path, ref: str
) -> None:
    """Vault holds it as base64, a store of bytes as it is; the recipient gets the same."""
    text = base64.b64encode(bundle).decode()
    bao.call("POST", "secret/data/pki/acme", {"data": {"bundle": text}})
    (job.terminal.here / "acme.p12").write_bytes(bundle)
    ref = ref.format(hints="type=source_code&filename=acme.p12.b64")
    then = "Then=text:base64 -d acme.p12.b64 > acme.p12"
    login = {"VAULT_ADDR": bao.addr, "VAULT_TOKEN": bao.root}
    done = job.run("share", f"Keystore={ref}", then, **login)
    assert done.code == 0, done
    browser.open(done.out.strip())
    browser.one("#open").click()
    browser.says("base64 -d acme.p12.b64 > acme.p12")
    received = save_and_decode(browser, "acme.p12.b64", tmp_path)
    assert received == bundle
    key, certificate, _ = pkcs12.load_key_and_certificates(received, PASSPHRASE.encode())
    assert key is not None
    assert certificate is not None


def test_a_bundle_goes_from_a_vendor_into_keystores(
    browser: Browser, job: Job, bao: Bao, bundle: bytes, kubernetes: InKubernetes
) -> None:
    """A file, a key of a Kubernetes Secret, and base64 in Vault, which is read as the file."""
    with client_of(job) as client:
        prompts = ["keystore=Keystore in base64:multiline", "passphrase=Its passphrase"]
        made = client.request(prompts, title="Keystore")
    job.terminal.file("r.json", made.receipt.dump())
    form(browser, made.collect_link)
    fill(browser, "Keystore in base64", base64.encodebytes(bundle).decode())  # in lines
    fill(browser, "Its passphrase", PASSPHRASE)
    browser.press("Seal and send")
    browser.says(SENT)
    targets = (
        "file:acme.p12?decode=base64#keystore",
        "k8s:prod/acme?decode=base64#acme.p12=keystore",
        "vault:secret/vendor/acme?trim=1#bundle=keystore,passphrase",
    )
    login = {"VAULT_ADDR": bao.addr, "VAULT_TOKEN": bao.root} | dict(kubernetes.environ())
    words = [word for target in targets for word in ("--to", target)]
    done = job.run("collect", "r.json", *words, "--after", "expire", **login)
    assert done.code == 0, done
    assert (job.terminal.here / "acme.p12").read_bytes() == bundle
    assert kubernetes.there("acme") == {"acme.p12": bundle}
    ref = "vault:secret/vendor/acme?decode=base64#bundle"
    words = ["run", "--file", f"BUNDLE={ref}", "--", "sh", "-c", 'cmp "$BUNDLE" acme.p12']
    done = job.run(*words, **login)
    assert done.code == 0, done
