"""Random envelopes and boxes that sealpipe and WebCrypto pass to each other
(tests/endurance/cross_open.py).
"""

from __future__ import annotations

import base64
import random
import string
import struct
from abc import ABC, abstractmethod
from typing import Any

from sealpipe.wire import envelope, fields, keys, link, sealed_box, tokens
from support.damage import flipped
from unit.wire.node import Job
from unit.wire.reader import again, verdict

LETTERS = [
    *map(chr, range(0x80)),
    *"äß\u0301\u2028\u2029\ufeff\ufffe\uffff",
    "中",
    "🐎",
    "\U0010ffff",
    "|",
    '"',
    "\\",
]
TAGS = ["svc", "crs", "acme2", "0"]
TYPES = [*fields.TYPES, "hologram"]


def some_text(chance: random.Random, longest: int, *, shortest: int = 0) -> str:
    return "".join(chance.choices(LETTERS, k=chance.randint(shortest, longest)))


def some_number(chance: random.Random) -> float:
    number: float = struct.unpack("<d", chance.randbytes(8))[0]
    return number if abs(number) < float("inf") else 1.5


def some_fields(chance: random.Random) -> list[fields.Field]:
    def some_json() -> object:
        small = [
            None,
            True,
            chance.randint(-(2**53), 2**53),
            some_number(chance),
            some_text(chance, 5),
        ]
        return chance.choice([*small, small, {"a": small}])

    return [
        fields.Field(
            some_text(chance, 20),
            some_text(chance, chance.choice([0, 20, 200])),
            chance.choice(TYPES),
            language=chance.choice([None, some_text(chance, 5)]),
            filename=chance.choice([None, some_text(chance, 5)]),
            extra={f"x{some_text(chance, 3)}": some_json() for _ in range(chance.randint(0, 2))},
        )
        for _ in range(chance.choice([0, 1, 1, 2, 4]))
    ]


class Item(ABC):
    """Something sealed and how it is opened.

    `fault` says what was done to it; an item without one must open.
    """

    name: str
    mistakes: tuple[str, ...]
    data: str
    plaintext: bytes
    sealer = ""
    fault = ""

    def __init__(self, chance: random.Random) -> None:
        self.salt, self.iv = chance.randbytes(16), chance.randbytes(12)

    def __str__(self) -> str:
        return f"{self.name} {vars(self)}"

    def spoil(self, chance: random.Random) -> None:
        """Break one in four."""
        if chance.random() < 0.25:
            self.fault = chance.choice(["a byte changed", "a character changed", *self.mistakes])
            if self.fault == "a byte changed":
                raw = bytearray(base64.b64decode(self.data))
                raw[chance.randrange(len(raw))] ^= chance.randint(1, 255)
                self.data = base64.b64encode(raw).decode()
            elif self.fault == "a character changed":
                at = chance.randrange(len(self.data))
                letters = chance.choice(
                    [string.printable, string.ascii_letters + string.digits + "+/", "=-_"]
                )
                other = chance.choice([letter for letter in letters if letter != self.data[at]])
                self.data = self.data[:at] + other + self.data[at + 1 :]
            else:
                self.mistake(chance)

    @abstractmethod
    def mistake(self, chance: random.Random) -> None:
        """Make the mistake that `fault` names."""

    @abstractmethod
    def sealed(self) -> str: ...

    @abstractmethod
    def sealing(self) -> Job: ...

    @abstractmethod
    def plain(self) -> bytes: ...

    @abstractmethod
    def jobs(self) -> list[Job]:
        """What WebCrypto is asked: to open it, and then to derive what `derived` derives."""

    @abstractmethod
    def derived(self) -> list[Any]: ...

    def opened(self) -> str | Job:
        """What sealpipe makes of it, in the form in which WebCrypto answers."""
        word, result = verdict(lambda: {"plaintext": self.plain().hex()})
        return result["plaintext"] if word == "success" else {"refused": word}


class Envelope(Item):
    name = "envelope"
    mistakes = ("another content key", "another passcode")

    def __init__(self, chance: random.Random) -> None:
        super().__init__(chance)
        self.key = chance.randbytes(32)
        self.passcode = chance.choice([None, some_text(chance, 30, shortest=1)])
        self.plaintext = fields.dump(some_fields(chance))

    def sealed(self) -> str:
        return envelope.seal(self.key, self.plaintext, self.passcode, salt=self.salt, iv=self.iv)

    def sealing(self) -> Job:
        given = {
            "content_key": self.key.hex(),
            "passcode": self.passcode,
            "fields": self.plaintext.decode(),
        }
        return {"verb": "seal envelope", "salt": self.salt.hex(), "iv": self.iv.hex(), **given}

    def mistake(self, chance: random.Random) -> None:
        if self.fault == "another content key":
            self.key = broken(chance, self.key)
        else:
            others = [
                f"{self.passcode or ''}{chance.choice(LETTERS)}",
                some_text(chance, 9, shortest=1),
                None,
            ]
            self.passcode = chance.choice([other for other in others if other != self.passcode])

    def plain(self) -> bytes:
        data = envelope.open(self.key, self.data, self.passcode)
        array = fields.load(data)
        again(lambda: fields.dump(array), data)
        return data

    def jobs(self) -> list[Job]:
        given = {"content_key": self.key.hex(), "passcode": self.passcode}
        return [{"verb": "open envelope", "data": self.data, **given}, {"verb": "tokens", **given}]

    def derived(self) -> list[Any]:
        verifier = None if self.passcode is None else tokens.passcode_verifier(self.passcode)
        return [[tokens.access_token(self.key), verifier, link.encode_fragment(self.key)]]


class Box(Item):
    name = "box"
    mistakes = ("another seed", "another tag")

    def __init__(self, chance: random.Random) -> None:
        super().__init__(chance)
        self.seed, self.tag = chance.randbytes(32), chance.choice(TAGS)
        self.public_key = keys.from_seed(self.seed, tag=self.tag).public_key
        self.ephemeral = chance.randrange(1, keys.GROUP_ORDER).to_bytes(32, "big")
        payloads = [
            chance.randbytes(32),
            chance.randbytes(chance.randint(0, 70)),
            fields.dump(some_fields(chance)),
        ]
        self.plaintext = chance.choice(payloads)

    def sealed(self) -> str:
        drawn = {"ephemeral": self.ephemeral, "salt": self.salt, "iv": self.iv}
        return sealed_box.seal(self.public_key, self.plaintext, tag=self.tag, **drawn)

    def sealing(self) -> Job:
        drawn = {"ephemeral": self.ephemeral.hex(), "salt": self.salt.hex(), "iv": self.iv.hex()}
        given = {
            "public_key": self.public_key.hex(),
            "payload": self.plaintext.hex(),
            "tag": self.tag,
        }
        return {"verb": "seal box", **given, **drawn}

    def mistake(self, chance: random.Random) -> None:
        if self.fault == "another seed":
            self.seed = broken(chance, self.seed)
        else:
            self.tag = chance.choice([tag for tag in TAGS if tag != self.tag])

    def plain(self) -> bytes:
        return sealed_box.open(keys.from_seed(self.seed, tag=self.tag), self.data, tag=self.tag)

    def jobs(self) -> list[Job]:
        given = {"seed": self.seed.hex(), "tag": self.tag}
        return [{"verb": "open box", "data": self.data, **given}, {"verb": "public key", **given}]

    def derived(self) -> list[Any]:
        return [keys.from_seed(self.seed, tag=self.tag).public_key.hex()]


def broken(chance: random.Random, data: bytes) -> bytes:
    return flipped(data, chance.randrange(len(data)), 1 << chance.randrange(8))
