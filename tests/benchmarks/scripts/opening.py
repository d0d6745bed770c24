"""The naive way to open what was submitted, as a script does it that knows the service's page and
cryptography.
"""

import base64
import os

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from naive import AESGCM, base64url, hkdf

ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
CURVE = ec.SECP256R1()
URL = os.environ.get("SEALPIPE_BASE_URL", "")


def private_key():
    """The key that is made from the credential's custody secret."""
    seed = hkdf(os.environ["SEALPIPE_API_KEY"].split(".")[2].encode(), b"", b"custody")
    scalar = int.from_bytes(hkdf(seed, b"", b"svc-ecdh-p256-scalar", 48)) % (ORDER - 1) + 1
    return ec.derive_private_key(scalar, CURVE)


def public_key(private):
    """Its public key, as the service has it."""
    return base64url(
        private.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    )


def opened(private, data):
    """The plaintext of one submission."""
    box = base64.b64decode(data)
    sender = ec.EllipticCurvePublicKey.from_encoded_point(CURVE, box[1:66])
    key = hkdf(private.exchange(ec.ECDH(), sender), box[66:82], b"svc-request-submission")
    return AESGCM(key).decrypt(box[82:94], box[94:], None)


def headers():
    """Who asks."""
    return {"authorization": "Bearer " + ".".join(os.environ["SEALPIPE_API_KEY"].split(".")[:2])}
