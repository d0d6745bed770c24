"""The Actions secrets of the fake of GitHub: each place has a key pair of its own, and opens what is sealed to it."""

from __future__ import annotations

import base64
import itertools
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from nacl.exceptions import CryptoError
from nacl.public import PrivateKey, SealedBox

from support.fake_web import Asked, Reply

Place = tuple[str, ...]

_DOCS = {"documentation_url": "https://docs.github.com/rest/actions/secrets"}
_START = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)


@dataclass
class Kept:
    """A place's secrets. `opened` is what was sealed, `told` what the API says of each."""

    limit: int = 100
    private: PrivateKey = field(default_factory=PrivateKey.generate)
    key_id: str = "568250167242549743"
    opened: dict[str, bytes] = field(default_factory=dict)
    told: dict[str, dict[str, Any]] = field(default_factory=dict)
    selected: dict[str, list[int]] = field(default_factory=dict)

    def rotate(self) -> None:
        """Another key, as GitHub may have at any time."""
        self.private, self.key_id = PrivateKey.generate(), f"{int(self.key_id) + 1}"


class Vaults:
    """`places` by what the API's path names: (owner, repository), with an environment, or (organisation,)."""

    def __init__(self) -> None:
        self.places: dict[Place, Kept] = {
            ("acme", "app"): Kept(),
            ("acme", "app", "production"): Kept(),
            ("acme", "app", "review/a b?%2F#c"): Kept(),
            ("acme",): Kept(limit=1000),
        }
        self.may_write = True
        self._seconds = itertools.count()

    def answer(self, place: Place, rest: list[str], asked: Asked) -> Reply:
        kept = self.places.get(place)
        if kept is None:
            return Reply(404, {"message": "Not Found", **_DOCS})
        if not self.may_write:
            return Reply(403, {"message": "Resource not accessible by integration", **_DOCS})
        match asked.method, rest:
            case "GET", ["public-key"]:
                public = base64.b64encode(bytes(kept.private.public_key)).decode()
                return Reply(200, {"key_id": kept.key_id, "key": public})
            case "GET", []:
                return Reply(200, {"total_count": len(kept.told), "secrets": list(kept.told.values())})
            case "GET", [name] if name.upper() in kept.told:
                return Reply(200, kept.told[name.upper()])
            case "GET", [name, "repositories"] if name.upper() in kept.selected:
                size, page = int(asked.query.get("per_page", 30)), int(asked.query.get("page", 1))
                ids = kept.selected[name.upper()]
                rows = [{"id": each, "full_name": f"acme/r{each}"} for each in ids[size * (page - 1) : size * page]]
                return Reply(200, {"total_count": len(ids), "repositories": rows})
            case "PUT", [name]:
                return self.store(place, name.upper(), asked.json)
        return Reply(404, {"message": "Not Found", **_DOCS})

    def store(self, place: Place, name: str, members: dict[str, Any]) -> Reply:
        kept = self.places[place]
        if name.startswith("GITHUB_") or name[0].isdigit() or not name.replace("_", "a").isalnum():
            return Reply(422, {"message": "Secret names can only contain alphanumeric characters", **_DOCS})
        if members.get("key_id") != kept.key_id:
            return Reply(422, {"message": "Bad request - key_id is not the current one", **_DOCS})
        try:
            opened = SealedBox(kept.private).decrypt(base64.b64decode(members["encrypted_value"], validate=True))
        except (CryptoError, ValueError, KeyError):
            return Reply(422, {"message": "Bad request - improperly encrypted secret", **_DOCS})
        if len(opened) > 48 * 1024 or (name not in kept.told and len(kept.told) >= kept.limit):
            return Reply(422, {"message": "Validation Failed", **_DOCS})
        visibility = members.get("visibility")
        if len(place) == 1:
            if visibility not in ("all", "private", "selected"):
                return Reply(422, {"message": "Invalid request. visibility wasn't supplied.", **_DOCS})
            kept.selected.pop(name, None)
            if visibility == "selected":
                kept.selected[name] = list(members.get("selected_repository_ids", []))
        now = (_START + timedelta(seconds=next(self._seconds))).strftime("%Y-%m-%dT%H:%M:%SZ")
        new = name not in kept.told
        told = kept.told.setdefault(name, {"name": name, "created_at": now})
        told |= {"updated_at": now} | ({"visibility": visibility} if len(place) == 1 else {})
        kept.opened[name] = opened
        return Reply(201, {}) if new else Reply(204)
