"""The API credential in its three parts (specification: Authentication, Credential).

`<tag>_sk_live_<keyId>.<authSecret>[.<custodySecret>]`: the first two parts are sent, the third never is.
The network gets only `header()`, as a Secret, so the custody secret cannot reach a socket.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from sealpipe.errors import CredentialError, WireError
from sealpipe.secret import Secret, as_secret, strips_frames
from sealpipe.wire import encoding

_PREFIX = re.compile(r"([a-z][a-z0-9]{0,15})_sk_live_", re.ASCII)
_PARTS = (("key id", 12), ("auth secret", 32), ("custody secret", 32))
_COPY_REMEDY = "copy the whole credential again from where it was shown, or create a new API key"


@dataclass(frozen=True, slots=True)
class Credential:
    """A parsed credential. `tag` is the service's short tag; `key_id` is the part that is not secret."""

    tag: str
    key_id: str
    auth_secret: Secret = field(repr=False)
    custody_secret: Secret | None = field(default=None, repr=False)

    @classmethod
    @strips_frames
    def parse(cls, text: str | Secret) -> Credential:
        """Parse a credential. CredentialError says what is wrong without showing any of it."""
        raw = as_secret(text).reveal()
        prefix = _PREFIX.match(raw)
        if prefix is None or raw != raw.strip():
            raise _make_prefix_error(raw)
        parts = raw[prefix.end() :].split(".")
        if len(parts) not in (2, 3):
            raise CredentialError(
                f"the credential has {len(parts)} parts separated by dots; it should have two or three",
                remedy=_COPY_REMEDY,
            )
        for (name, size), part in zip(_PARTS, parts, strict=False):
            _check_part(name, size, part)
        return cls(prefix[1], parts[0], Secret(parts[1]), Secret(parts[2]) if len(parts) == 3 else None)

    def header(self) -> Secret:
        """Return the value of the Authorization header: the first two parts only."""
        return Secret(f"Bearer {self.tag}_sk_live_{self.key_id}.{self.auth_secret.reveal()}")


def _check_part(name: str, size: int, part: str) -> None:
    try:
        length = len(encoding.decode_base64url(part))
    except WireError as error:
        raise CredentialError(
            f"the credential's {name} is not base64url ({error.reason})", remedy=_COPY_REMEDY
        ) from None
    if length != size:
        raise CredentialError(f"the credential's {name} has {length} bytes; it should have {size}", remedy=_COPY_REMEDY)


def _make_prefix_error(raw: str) -> CredentialError:
    if not raw.strip():
        return CredentialError(
            "the credential is empty",
            remedy="forks and Dependabot runs get empty secrets; elsewhere set SEALPIPE_API_KEY",
        )
    if raw != raw.strip():
        return CredentialError(
            "the credential has white space around it", remedy="set it without spaces and line breaks"
        )
    if raw.startswith("Bearer "):
        return CredentialError("the credential starts with 'Bearer'", remedy="set it without that word")
    return CredentialError("the credential does not start with '<tag>_sk_live_'")
