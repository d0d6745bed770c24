"""Two credentials, and the forms in which a custody secret could try to leave."""

from __future__ import annotations

import base64
import json
import secrets
from urllib.parse import quote

from sealpipe.api.operation import Credential
from sealpipe.custody_gate import CustodyGate
from sealpipe.minting import mint


def _letter_first(length: int) -> bytes:
    """Draw bytes whose base64url begins with a letter: `-` would begin an option."""
    return bytes([secrets.randbelow(50 * 4)]) + secrets.token_bytes(length - 1)


KEY, BEFORE = (mint(token_bytes=_letter_first).credential.reveal() for _ in range(2))

CUSTODY, OLD = KEY.rsplit(".", 1)[1], BEFORE.rsplit(".", 1)[1]

RAW = base64.urlsafe_b64decode(CUSTODY + "=")

GATE = CustodyGate(Credential.parse(KEY), Credential.parse(BEFORE))


def b64(text: bytes, before: int) -> str:
    return base64.b64encode(b"+" * before + text + b"more").decode()


FORMS: dict[str, str] = {
    "plain": CUSTODY,
    "the whole credential": KEY,
    "the previous one's": OLD,
    "without its end": KEY[:-15],
    "without its beginning": CUSTODY[10:],
    "in two pieces": f'{CUSTODY[:30]}","description":"{CUSTODY[30:]}',
    "in the standard alphabet": CUSTODY.translate(str.maketrans("-_", "+/")) + "=",
    **{f"base64 at {before}": b64(CUSTODY.encode(), before) for before in range(6)},
    **{f"base64 of its bytes at {before}": b64(RAW, before) for before in range(3)},
    "base64url of the credential": base64.urlsafe_b64encode(KEY.encode()).decode().rstrip("="),
    "hex": CUSTODY.encode().hex(),
    "HEX": CUSTODY.encode().hex().upper(),
    "hex of its bytes": RAW.hex(),
    "HEX of its bytes": RAW.hex().upper(),
    "percent": "".join(f"%{ord(sign):02x}" for sign in CUSTODY),
    "percent twice": "".join(f"%25{ord(sign):02X}" for sign in CUSTODY),
    "percent here and there": "".join(
        sign if at % 7 else f"%{ord(sign):02X}" for at, sign in enumerate(CUSTODY)
    ),
    "percent over base64": quote(b64(CUSTODY.encode(), 1), safe=""),
    "JSON": "".join(f"\\u{ord(sign):04x}" for sign in CUSTODY),
    "JSON in JSON": json.dumps(json.dumps("".join(f"\\u{ord(sign):04X}" for sign in CUSTODY))),
    "HTML": "".join(f"&#{ord(sign)};" for sign in CUSTODY),
    "HTML in hex": "".join(f"&#x{ord(sign):02X};" for sign in CUSTODY),
    "base64 in lines": base64.encodebytes(
        b"some words before it: " + CUSTODY.encode() * 2
    ).decode(),
    "folded": f"{CUSTODY[:20]}\r\n {CUSTODY[20:]}",
    "quoted-printable": "".join(f"={ord(sign):02X}" for sign in CUSTODY[:30])
    + f"=\r\n{CUSTODY[30:]}",
    "quoted-printable of its bytes": "".join(f"={byte:02X}" for byte in RAW),
    "UTF-16": CUSTODY.encode("utf-16-be").decode("latin-1"),
}


def told(error: BaseException) -> str:
    return repr((error, vars(error), error.__cause__, error.__context__))
