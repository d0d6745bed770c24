"""The secrets of one user, a share of them that is watched, and where they stand although they must
not.
"""

from __future__ import annotations

import base64
import json
import re
import secrets
from collections.abc import Callable

from sealpipe.wire import keys
from sealpipe_rehearsal.running_service import RunningService
from support.commands import SEALPIPE
from support.leaks import Detector, Found
from support.strace import Watched, watch
from support.terminal import Terminal

FIELDS = [
    "-f",
    "Password=env:CANARY_ENV",
    "-f",
    "file:secret.pem",
    "-f",
    "dotenv:prod.env#TOKEN",
    "-f",
    "Piped=stdin:",
]

SHARE = [
    "share",
    *FIELDS,
    "--passcode-from",
    "file:passcode",
    "--title",
    "Staging",
    "--deadline",
    "1s",
]


def share_with(*words: str) -> list[str]:
    """SHARE with more words; a deadline among them stands in place of its own, for an option is
    given once.
    """
    return [*(SHARE[:-2] if "--deadline" in words else SHARE), *words]


LINK_FILE = "left in work/out/link"


def canary(kind: str) -> str:
    """A made-up secret with what shells, JSON, URLs and terminals treat as theirs."""
    return f"{kind[:2]}{secrets.token_hex(8)} é\"'\\%&+={secrets.token_urlsafe(18)}"


class Canaries:
    """The secrets of one user, and a terminal that has them all."""

    def __init__(
        self, user: Terminal, service: RunningService, base_url: str, **key: object
    ) -> None:
        self.user = user
        self.values = {
            kind: canary(kind) for kind in ("environment", "file", "dotenv", "stdin", "passcode")
        }
        credential = service.create_key(**key).reveal()  # type: ignore[arg-type]
        previous = service.create_key().reveal()
        self.authorization = "Bearer " + credential.rpartition(".")[0]
        self.bytes: dict[str, bytes] = {}
        for name, text in (("key", credential), ("previous key", previous)):
            _, auth, custody = text.split(".")
            pair = keys.from_custody_secret(custody)
            self.values |= {f"{name}: auth part": auth, f"{name}: custody part": custody}
            self.bytes |= {
                f"{name}: custody seed": bytes(pair.seed),
                f"{name}: custody scalar": bytes(pair.scalar),
            }
        user.file("secret.pem", f"-----BEGIN-----\n{self.values['file']}\n")
        user.file("prod.env", f"TOKEN={json.dumps(self.values['dotenv'])}\n")
        user.file("passcode", self.values["passcode"])
        user.environ |= {
            "SEALPIPE_API_KEY": credential,
            "SEALPIPE_API_KEY_PREVIOUS": previous,
            "SEALPIPE_BASE_URL": base_url,
            "SEALPIPE_LINK_BASE_URL": service.link_base_url,
            "CANARY_ENV": self.values["environment"],
        }

    def watch(self, *words: str, **how: object) -> Watched:
        stdin = self.values["stdin"].encode()
        return watch(self.user, [*SEALPIPE, *words], stdin=stdin, **how)  # type: ignore[arg-type]

    def secrets(self, watched: Watched) -> dict[str, bytes]:
        """All that must be kept, what the process drew as its content key included."""
        text = {name: value.encode() for name, value in self.values.items()}
        raw = {
            f"{name}, decoded": base64.urlsafe_b64decode(f"{v}=")
            for name, v in self.values.items()
            if "part" in name
        }
        drawn = {
            f"content key {n}": value for n, value in enumerate(watched.drawn) if len(value) == 32
        }
        return {**text, **raw, **self.bytes, **drawn}


def leaks(
    canaries: Canaries,
    watched: Watched,
    requests: int,
    link: str | None,
    at: str | None,
    *,
    may_be_cut: bool = False,
) -> list[Found]:
    """What stands where it does not belong.

    What belongs is cut out first, as often as it belongs and no more.

    With `may_be_cut`, the deadline may have ended the last request before the server had it whole.
    """
    header = re.compile(
        rb"\r\nauthorization: " + re.escape(canaries.authorization).encode() + rb"\r\n",
        re.IGNORECASE,
    )
    found: list[Found] = []
    detector = Detector(canaries.secrets(watched))
    headers = 0
    for place, data in watched.places():
        if place.startswith("TCP:"):
            data, count = header.subn(b"\r\n", data)
            headers += count
        if link is not None and place == at:
            assert data.count(link.encode()) == 1
            data = data.replace(link.encode(), b"")
        elif (
            link is not None
            and at == LINK_FILE
            and place.startswith("work/out/")
            and data == f"{link}\n".encode()
        ):
            continue  # the same file, before it had its name
        found += detector.find(data, place)
    assert requests <= headers <= requests + may_be_cut
    return sorted(found)


def planted(code: str) -> Callable[[Canaries, RunningService], object]:
    """A plugin of somebody else's is installed, with a source `planted`."""

    def install(canaries: Canaries, _: RunningService) -> None:
        site = canaries.user.file("site/planted_plugin.py", PLUGIN + code).parent
        canaries.user.file(
            "site/planted-1.dist-info/METADATA",
            "Metadata-Version: 2.1\nName: planted\nVersion: 1\n",
        )
        canaries.user.file(
            "site/planted-1.dist-info/entry_points.txt", "[sealpipe]\nplanted = planted_plugin\n"
        )
        canaries.user.environ["PYTHONPATH"] = str(site)

    return install


PLUGIN = '''
import os
import sealpipe.share.post, sealpipe.state.outbox, sealpipe.wire.tokens
from sealpipe.plugin import Document, SecretNotFoundError, Source, SourceInfo, hookimpl

@hookimpl
def sealpipe_sources(register):
    register(SourceInfo("planted", "a source", "planted_plugin:Planted"))

class Planted(Source):
    def fetch(self, locator):
        return Document(os.environ["CANARY_ENV"])

class Loud(Exception):
    """Tells everything, in every way that an exception has."""

    def __init__(self, *secrets):
        super().__init__(os.environ["CANARY_ENV"], os.environ["SEALPIPE_API_KEY"], *secrets)
        self.add_note("a note: " + repr(self.args))
        self.filename = os.environ["CANARY_ENV"]
        self.__cause__ = ValueError(*self.args)

def loud(*secrets, **more):
    raise Loud(*secrets, *more.values())
'''

PLANT = ["-f", "Planted=planted:"]
