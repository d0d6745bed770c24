"""The naive way to share a secret, as a script does it that knows the service's page, httpx and
cryptography.

JSON, concatenate, encrypt, concatenate, base64, JSON again; httpx encodes that and posts it.
"""

import base64
import json
import os
import uuid
from datetime import UTC, datetime, timedelta

import httpx
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF


def hkdf(key, salt, info, size=32):
    return HKDF(SHA256(), size, salt, info).derive(key)


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def body(key, label, value, kind):
    salt, iv = os.urandom(16), os.urandom(12)
    fields = [{"key": label, "value": value, "type": kind}]
    plaintext = json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()
    sealed = AESGCM(hkdf(key, salt, b"content")).encrypt(iv, plaintext, None)
    return {
        "encryption_type": "e2ee-aes256-gcm",
        "data": base64.b64encode(salt + iv + sealed).decode(),
        "access_token": base64url(hkdf(key, b"", b"access")),
        "expired_at": (datetime.now(UTC) + timedelta(hours=72)).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "access_counts_left": 1,
    }


def share(label, value, kind, *, post=httpx.post, wrap=None):
    """Seal and post; the link. `wrap` makes the wrap of the key for the account's owner."""
    key = os.urandom(32)
    credential = ".".join(os.environ["SEALPIPE_API_KEY"].split(".")[:2])
    answer = post(
        os.environ["SEALPIPE_BASE_URL"] + "/shares",
        json=body(key, label, value, kind) | ({"item_key_wrap": wrap(key)} if wrap else {}),
        headers={"authorization": f"Bearer {credential}", "idempotency-key": str(uuid.uuid4())},
        timeout=60,
    )
    answer.raise_for_status()
    members = answer.json()
    if wrap and members["custody"] != "stored":
        raise SystemExit("the service has not taken the wrap")
    return f"{os.environ['SEALPIPE_LINK_BASE_URL']}/{members['short_code']}#1{base64url(key)}"
