"""What of a value went to the backend that it is for, and what went elsewhere."""

from __future__ import annotations

from support.leaks import Detector
from support.places import Place
from support.storing import Given
from support.strace import Watched

LOGINS = (
    "VAULT_TOKEN",
    "AWS_SECRET_ACCESS_KEY",
    "SEALPIPE_PLUGIN_K8S__TOKEN",
    "GITHUB_TOKEN",
    "GITLAB_TOKEN",
)
LOCAL = ("file", "dir", "dotenv")


def found_in(seen: Watched, place: Place, given: Given) -> dict[str, set[str]]:
    """What of value and login stands where: at the backend, and elsewhere."""
    logins = {name: value.encode() for name, value in place.environ().items() if name in LOGINS}
    values = {"password": given.password.encode(), "user": given.user.encode()}
    detector = Detector({**values, **logins})
    there: dict[str, set[str]] = {"there": set(), "elsewhere": set()}
    for name, data in seen.places():
        there["there" if is_place(name, data, place) else "elsewhere"] |= {
            each.secret for each in detector.find(data, name)
        }
    return there


def is_place(stream: str, data: bytes, place: Place) -> bool:
    """Whether these bytes went to the backend."""
    if place.name in LOCAL:
        return stream.startswith(("work/", "left in work/"))
    if place.name == "keyring":
        return "UNIX" in stream
    return stream.startswith("TCP") and f"ost: 127.0.0.1:{place.address()[1]}\r\n".encode() in data
