"""The smallest script that shares a secret from the environment, with a wrap for the account's
owner.
"""

import base64
import os

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from naive import AESGCM, hkdf, share

ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
CURVE = ec.SECP256R1()


def wrap(key):
    seed = hkdf(os.environ["SEALPIPE_API_KEY"].split(".")[2].encode(), b"", b"custody")
    scalar = int.from_bytes(hkdf(seed, b"", b"svc-ecdh-p256-scalar", 48)) % (ORDER - 1) + 1
    sender, salt, iv = ec.generate_private_key(CURVE), os.urandom(16), os.urandom(12)
    shared = sender.exchange(ec.ECDH(), ec.derive_private_key(scalar, CURVE).public_key())
    sealed = AESGCM(hkdf(shared, salt, b"svc-request-submission")).encrypt(iv, key, None)
    point = sender.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    return base64.b64encode(b"\x01" + point + salt + iv + sealed).decode()


print(share("DB_PASSWORD", os.environ["DB_PASSWORD"], "password", wrap=wrap))
