"""What a batch's database can read: nothing of ours.

Blobs, data keys, ids, the key check and the keys of requests.

A blob is strict JSON, sealed by AES-256-GCM under a random data key of its batch, with a random
nonce; it begins with the id of the data key. Its associated data are the batch, that id and its
`Cell`: row, column, version, state and generation. So no blob can be put in another place, back
into a later version of its own, or beside another state.

Data keys stand in the database wrapped under a key that HKDF derives from the credential: a rotated
credential wraps them anew, and blobs stay as they are.

Ids are HMACs under a random key that the batch's own blob holds: they stay the same when the
credential is rotated.
"""

from __future__ import annotations

import base64
import hmac
import json
import os
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, Protocol
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from sealpipe.api.operation import Credential
from sealpipe.errors import EncodingError, StateError, UsageError
from sealpipe.secret import Secret
from sealpipe.state.journal import derive_key
from sealpipe.wire import jsontext, keys, tokens

Members = Mapping[str, Any]
"""JSON members: text, numbers, booleans, None, and lists and objects of these.

A Secret is revealed inside the seal.
"""

_BLOB_INFO, _DATA_KEY_INFO, _RATE_INFO, _PLAN_INFO = (
    b"sealpipe-batch",
    b"sealpipe-batch-data-key",
    b"sealpipe-batch-rate",
    b"sealpipe-batch-plan",
)
_REQUEST_INFO, _CREATE_INFO = b"sealpipe-batch-request|1", b"sealpipe-batch-create|1"
_NONCE_SIZE = 12
_KEY_SIZE = 32
DATA_KEY_ID_SIZE: Final = 8
"""Bytes of a data key's id, with which each blob begins."""
_PADDING = 64
"""Contents are padded to a multiple of this many bytes, so that a blob's length says little."""
ID_SIZE: Final = 24
"""Hexadecimal digits of every id."""


class Cell(NamedTuple):
    """Where a blob stands: what must be the same when it is opened."""

    row: str = ""
    column: str = ""
    version: int = 0
    state: str = ""
    generation: int = 0


class Opener(Protocol):
    """What opens the blobs of a batch."""

    def open(self, cell: Cell, blob: bytes) -> dict[str, Any]:
        """Open the blob of a place. Raises StateError if it was changed, moved or replaced."""


class DataKey:
    """A random key that blobs of one batch are sealed under.

    `id` has 8 bytes; `created_at` is in microseconds, and later than that of every older one.
    """

    def __init__(self, batch: str, id_: bytes, created_at: int, key: bytes) -> None:
        self.id = id_
        self.created_at = created_at
        self._batch = batch
        self._key = key
        self._cipher = AESGCM(key)

    @classmethod
    def create(cls, batch: str, created_at: int) -> DataKey:
        """Make a new one."""
        return cls(batch, os.urandom(DATA_KEY_ID_SIZE), created_at, os.urandom(_KEY_SIZE))

    def seal(self, cell: Cell, members: Members) -> bytes:
        """Seal members for one place. Raises StateError if they are not JSON."""
        return self.id + _encrypt(self._cipher, _dump(members), self._bind(cell))

    def open(self, cell: Cell, blob: bytes) -> dict[str, Any]:
        """Open a blob that begins with this key's id. Raises StateError as `Opener.open`."""
        return _open(self._cipher, blob[DATA_KEY_ID_SIZE:], self._bind(cell))

    def wrap(self, cipher: AESGCM, bound: bytes) -> bytes:
        """Encrypt the key itself."""
        return _encrypt(cipher, self._key, bound)

    def _bind(self, cell: Cell) -> bytes:
        return _to_bytes(self._batch, self.id.hex(), *cell)


class KeyWrapper:
    """Wraps and unwraps the data keys of one batch under one credential."""

    def __init__(self, credential: Credential, batch: str) -> None:
        self.credential = credential
        self._batch = batch
        material = derive_key(credential, batch.encode(), _DATA_KEY_INFO, 64)
        self._cipher = AESGCM(material[:32])
        self.key_check = _make_key_check(material[32:], batch)
        """What the batch's row holds, to find out whether this credential opens it."""

    def wrap(self, key: DataKey) -> bytes:
        """Encrypt a data key for the database."""
        return key.wrap(self._cipher, self._bind(key.id, key.created_at))

    def unwrap(self, id_: bytes, created_at: int, wrapped: bytes) -> DataKey:
        """Decrypt a data key. Raises StateError if it was changed, or is another batch's.

        Its time is bound, too: who knows a data key cannot make it the newest again.
        """
        key = _decrypt(self._cipher, wrapped, self._bind(id_, created_at))
        if key is None or len(key) != _KEY_SIZE:
            raise make_damage_error()
        return DataKey(self._batch, id_, created_at, key)

    def _bind(self, id_: bytes, created_at: int) -> bytes:
        return _to_bytes(self._batch, self.credential.key_id, id_.hex(), created_at)


class CredentialOpener:
    """Opens what schema 1 sealed: under a key that is derived from the credential itself."""

    def __init__(self, credential: Credential, batch: str) -> None:
        self.credential = credential
        self._batch = batch
        material = derive_key(credential, batch.encode(), _BLOB_INFO, 64)
        self._cipher = AESGCM(material[:32])
        self.key_check = _make_key_check(material[32:], batch)
        """What the row of a batch of schema 1 holds.

        It differs from that of `KeyWrapper`: so a worker of an older sealpipe that is still running
        writes nothing into a batch that was upgraded.
        """

    def open(self, cell: Cell, blob: bytes) -> dict[str, Any]:
        """See `Opener.open`."""
        return _open(self._cipher, blob, _to_bytes(self._batch, self.credential.key_id, *cell))


def _make_key_check(key: bytes, batch: str) -> str:
    return hmac.digest(key, batch.encode(), "sha256").hex()[:ID_SIZE]


def _to_bytes(*parts: str | int) -> bytes:
    return json.dumps(parts, separators=(",", ":")).encode()


def _encrypt(cipher: AESGCM, plain: bytes, bound: bytes) -> bytes:
    nonce = os.urandom(_NONCE_SIZE)
    return nonce + cipher.encrypt(nonce, plain, bound)


def _decrypt(cipher: AESGCM, sealed: bytes, bound: bytes) -> bytes | None:
    try:
        return cipher.decrypt(sealed[:_NONCE_SIZE], sealed[_NONCE_SIZE:], bound)
    except (InvalidTag, ValueError):
        return None


def _open(cipher: AESGCM, sealed: bytes, bound: bytes) -> dict[str, Any]:
    plain = _decrypt(cipher, sealed, bound)
    try:
        members = None if plain is None else jsontext.loads(plain)
    except (ValueError, EncodingError):
        members = None
    if not isinstance(members, dict):
        raise make_damage_error()
    return members


def make_damage_error() -> StateError:
    """Make the error for a part of the database that sealpipe did not write there."""
    return StateError(
        (
            "the batch's database was changed by something other than sealpipe, or is damaged: "
            "nothing was done"
        ),
        remedy="restore it from a backup, then run `sealpipe batch adopt FILE`",
    )


def _dump(members: Members) -> bytes:
    try:
        text = json.dumps(
            members, separators=(",", ":"), ensure_ascii=False, allow_nan=False, default=_reveal
        ).encode()
    except (TypeError, ValueError):
        text = b""
    if not text:  # raised here: the error's context would hold the members
        raise StateError(
            "a batch's row holds something that is not JSON", remedy="report this as a bug"
        )
    return text + b" " * (-len(text) % _PADDING)


def _reveal(value: object) -> str:
    if isinstance(value, Secret):
        return value.reveal()
    raise TypeError


class IdMaker:
    """Makes the ids of one batch's rows and effects."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    @classmethod
    def create(cls) -> IdMaker:
        """Make one with a new random key."""
        return cls(os.urandom(32))

    @classmethod
    def load(cls, text: object) -> IdMaker:
        """Restore one from the text of `dump`. Raises StateError."""
        key = base64.b64decode(text) if isinstance(text, str) else b""
        if len(key) != 32:
            raise make_damage_error()
        return cls(key)

    def dump(self) -> str:
        """Return the key as base64, for the batch's blob."""
        return base64.b64encode(self._key).decode()

    def make_row_id(self, key: str) -> str:
        """Return the id of the row with this key."""
        return _digest(self._key, "row", key)

    def make_effect_id(self, row: str, name: str) -> str:
        """Return the id of a row's effect."""
        return _digest(self._key, "effect", row, name)


def make_batch_id(salt: bytes, name: str) -> str:
    """Return the id of a batch, the same for every credential: a name belongs to one credential.

    `salt` is the database's own. Whoever reads the database can confirm a guess of the name, and
    nothing else.
    """
    return _digest(salt, "batch", name)


def make_rate_id(credential: Credential, service: str) -> str:
    """Return the id of the rate that a credential has at a service."""
    return _digest(derive_key(credential, b"", _RATE_INFO, 32), "rate", service)


def hide_digest(credential: Credential, batch: str, digest: str) -> str:
    """Return what others may see of a digest: only the credential confirms a guess."""
    return hmac.digest(
        derive_key(credential, batch.encode(), _PLAN_INFO, 32), digest.encode(), "sha256"
    ).hex()


def _digest(key: bytes, *parts: str) -> str:
    return hmac.digest(key, json.dumps(parts).encode(), "sha256").hex()[:ID_SIZE]


def derive_idempotency_key(
    credential: Credential, kind: str, batch: str, row_key: str, generation: int
) -> str:
    """Derive the idempotency key of a row's generation: the same in every database.

    The service knows it for 24 hours (specification: Limits), and it tells nobody what it stands
    for.
    """
    context = json.dumps([kind, batch, row_key, generation], separators=(",", ":")).encode()
    return str(UUID(bytes=derive_key(credential, context, _CREATE_INFO, 16)))


def derive_request_key(
    credential: Credential, batch: str, row_key: str, generation: int
) -> keys.KeyPair:
    """Derive the key pair of a row's request, so that nothing has to be stored. Raises UsageError.

    The same batch name, row key and generation always give the same pair; its public key identifies
    the request.
    """
    if credential.custody_secret is None:
        raise UsageError(
            (
                "a batch of requests needs a credential with a custody secret: the key of each "
                "request comes from it"
            ),
            remedy='create an API key with custody, or share the rows instead (kind = "share")',
        )
    context = json.dumps([batch, row_key, generation], separators=(",", ":")).encode()
    seed = tokens.hkdf(
        credential.custody_secret.reveal_bytes(), context, _REQUEST_INFO, tokens.KEY_SIZE
    )
    return keys.from_seed(seed, tag=credential.tag)
