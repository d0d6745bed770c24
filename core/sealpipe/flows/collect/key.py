"""Key pairs in hand, and where they come from: the credential, the one before it, a seed, an access link."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from sealpipe.credential import Credential
from sealpipe.errors import (
    EncodingError,
    FragmentError,
    PublicKeyMismatchError,
    ReferenceSyntaxError,
    UsageError,
    WrongKeyError,
)
from sealpipe.flows import Do, Flow
from sealpipe.flows.resolve import resolve_secret
from sealpipe.flows.session import Session
from sealpipe.reference import Reference, parse
from sealpipe.secret import Secret
from sealpipe.wire import keys, link
from sealpipe.wire.encoding import decode_base64url, encode_base64url

if TYPE_CHECKING:
    from sealpipe.state.receipt import Receipt

KeyChoice = str | Secret | Reference | keys.KeyPair
"""How a key is given: `credential`, a reference, or the seed, access link or credential itself."""


_HEX = re.compile(r"[0-9A-Fa-f]{64}", re.ASCII)


class OpeningKey(NamedTuple):
    """A key pair, and whose it is: `credential`, `previous`, `given` or `receipt`."""

    name: str
    pair: keys.KeyPair

    @property
    def public_key(self) -> str:
        """base64url of 65 bytes."""
        return encode_base64url(self.pair.public_key)


def load_keys(session: Session, key: KeyChoice, receipt: Receipt | None = None) -> Flow[tuple[OpeningKey, ...]]:
    """All that may open a request's submissions, nearest first. Raises UsageError, PluginError."""
    if isinstance(key, keys.KeyPair):
        return (OpeningKey("given", key),)
    if key != "credential":
        return (OpeningKey("given", (yield from _load_given(session, key))),)
    found: list[OpeningKey] = []
    if receipt is not None and receipt.key == "new" and receipt.seed is not None:
        found.append(OpeningKey("receipt", (yield from _load_given(session, receipt.seed))))
    for name, credential in (("credential", session.credential), ("previous", session.previous)):
        if credential is not None and credential.custody_secret is not None:
            found.append(OpeningKey(name, (yield Do(partial(_derive_key_pair, credential)))))
    if not found:
        raise UsageError(
            "the credential has no custody secret, so it cannot decrypt submissions",
            remedy="use the whole credential, all three parts; or name the request's own key with --key REF",
        )
    return tuple(found)


def check_key(
    short_code: str, public_key: str | None, receipt: Receipt | None, keys_in_hand: Sequence[OpeningKey]
) -> None:
    """PublicKeyMismatchError, WrongKeyError where a request's key, as the service tells it or its receipt, is none of
    those in hand.

    `public_key` is None where the service tells none: the request has ended, or it is not said.
    """
    is_ours = [each.public_key for each in keys_in_hand]
    if receipt is not None and receipt.public_key not in is_ours:
        raise WrongKeyError(
            "wrong-key",
            f"the receipt of {short_code} names a key that is not available",
            remedy="name that key with --key REF, or set SEALPIPE_API_KEY_PREVIOUS while rotating",
        )
    if public_key is None:
        return
    if receipt is not None and public_key != receipt.public_key:
        mismatch = PublicKeyMismatchError(
            f"the service shows {short_code} with another public key than its receipt: submissions to that key could "
            "not be decrypted",
            remedy="do not use its link any more; earlier submissions open with --key once the request has ended",
        )
        mismatch.short_code = short_code
        raise mismatch
    if public_key not in is_ours:
        raise WrongKeyError(
            "wrong-key",
            f"submissions to {short_code} are encrypted to a key that is not available",
            remedy="name its key with --key REF; check that the credential is the one that created it",
        )


def key_pair(text: Secret, tag: str) -> keys.KeyPair:
    """The key pair of a seed (base64url or hex), an access link or its fragment, or a credential. Raises UsageError."""
    raw = text.reveal().strip()
    try:
        if "_sk_live_" in raw:
            return _derive_key_pair(Credential.parse(raw))
        if "#" in raw or len(raw) == 44:
            return keys.from_seed(link.decode_fragment(raw.rpartition("#")[2]), tag=tag)
        # 64 characters of base64url would be 48 bytes: what is meant is never in doubt.
        seed = bytes.fromhex(raw) if _HEX.fullmatch(raw) else decode_base64url(raw)
        if len(seed) == 32:
            return keys.from_seed(seed, tag=tag)
    except (FragmentError, EncodingError):
        pass
    raise UsageError(
        "the key is neither a seed, nor an access link, nor a credential with all three parts",
        remedy="a seed has 43 characters of base64url, or 64 of hex; copy it, or the whole link, again",
    )


def _load_given(session: Session, key: str | Secret | Reference) -> Flow[keys.KeyPair]:
    text: Secret | None
    if isinstance(key, Secret):
        text = key
    else:
        ref = parse(key, "the key") if isinstance(key, str) else key
        text = yield from resolve_secret(ref, "a key", session.registry)
    if text is None:
        raise ReferenceSyntaxError("the key is not optional", remedy="remove ?optional=1 from its reference")
    pair: keys.KeyPair = yield Do(partial(key_pair, text, session.credential.tag))
    return pair


def _derive_key_pair(credential: Credential) -> keys.KeyPair:
    if credential.custody_secret is None:
        raise UsageError("that credential has no custody secret", remedy="use the whole credential, all three parts")
    return keys.from_custody_secret(credential.custody_secret.reveal(), tag=credential.tag)
