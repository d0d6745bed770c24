"""A fake of GitHub, written from its public REST documentation (2022-11-28): repositories, issue
comments, secrets.

The Actions secrets: each place has a key pair of its own, and opens what is sealed to it.
"""

from __future__ import annotations

import base64
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from nacl.exceptions import CryptoError
from nacl.public import PrivateKey, SealedBox

from support.fake_web import Asked, FakeWeb, Reply
from support.places import Place as Backend
from support.places import Values, upper

Place = tuple[str, ...]

_SECRETS_DOCS = {"documentation_url": "https://docs.github.com/rest/actions/secrets"}
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
    """`places` by what the API's path names: (owner, repository), with an environment, or
    (organisation,).
    """

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
            return Reply(404, {"message": "Not Found", **_SECRETS_DOCS})
        if not self.may_write:
            return Reply(
                403, {"message": "Resource not accessible by integration", **_SECRETS_DOCS}
            )
        match asked.method, rest:
            case "GET", ["public-key"]:
                public = base64.b64encode(bytes(kept.private.public_key)).decode()
                return Reply(200, {"key_id": kept.key_id, "key": public})
            case "GET", []:
                return Reply(
                    200, {"total_count": len(kept.told), "secrets": list(kept.told.values())}
                )
            case "GET", [name] if name.upper() in kept.told:
                return Reply(200, kept.told[name.upper()])
            case "GET", [name, "repositories"] if name.upper() in kept.selected:
                size, page = int(asked.query.get("per_page", 30)), int(asked.query.get("page", 1))
                ids = kept.selected[name.upper()]
                rows = [
                    {"id": each, "full_name": f"acme/r{each}"}
                    for each in ids[size * (page - 1) : size * page]
                ]
                return Reply(200, {"total_count": len(ids), "repositories": rows})
            case "PUT", [name]:
                return self.store(place, name.upper(), asked.json)
        return Reply(404, {"message": "Not Found", **_SECRETS_DOCS})

    def store(self, place: Place, name: str, members: dict[str, Any]) -> Reply:
        kept = self.places[place]
        if name.startswith("GITHUB_") or name[0].isdigit() or not name.replace("_", "a").isalnum():
            return Reply(
                422,
                {
                    "message": "Secret names can only contain alphanumeric characters",
                    **_SECRETS_DOCS,
                },
            )
        if members.get("key_id") != kept.key_id:
            return Reply(
                422, {"message": "Bad request - key_id is not the current one", **_SECRETS_DOCS}
            )
        try:
            opened = SealedBox(kept.private).decrypt(
                base64.b64decode(members["encrypted_value"], validate=True)
            )
        except (CryptoError, ValueError, KeyError):
            return Reply(
                422, {"message": "Bad request - improperly encrypted secret", **_SECRETS_DOCS}
            )
        if len(opened) > 48 * 1024 or (name not in kept.told and len(kept.told) >= kept.limit):
            return Reply(422, {"message": "Validation Failed", **_SECRETS_DOCS})
        visibility = members.get("visibility")
        if len(place) == 1:
            if visibility not in ("all", "private", "selected"):
                return Reply(
                    422,
                    {"message": "Invalid request. visibility wasn't supplied.", **_SECRETS_DOCS},
                )
            kept.selected.pop(name, None)
            if visibility == "selected":
                kept.selected[name] = list(members.get("selected_repository_ids", []))
        now = (_START + timedelta(seconds=next(self._seconds))).strftime("%Y-%m-%dT%H:%M:%SZ")
        new = name not in kept.told
        told = kept.told.setdefault(name, {"name": name, "created_at": now})
        told |= {"updated_at": now} | ({"visibility": visibility} if len(place) == 1 else {})
        kept.opened[name] = opened
        return Reply(201, {}) if new else Reply(204)


TOKEN = "ghs_16C7e42F292c6912E7710c838347Ae178B4a"
_DOCS = {"documentation_url": "https://docs.github.com/rest"}


class FakeGitHub(FakeWeb):
    """Repositories, each private or not; `comments` by repository and number; `vaults` hold the
    Actions secrets.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.private = {"acme/app": True, "acme/open": False}
        self.comments: dict[tuple[str, int], list[dict[str, Any]]] = {
            ("acme/app", 7): [],
            ("acme/open", 7): [],
        }
        self.may_write = True
        self.locked: set[tuple[str, int]] = set()
        self._ids = 0
        self.vaults = Vaults()

    def bodies(self, repo: str = "acme/app", number: int = 7) -> list[str]:
        return [comment["body"] for comment in self.comments[repo, number]]

    def add(self, repo: str, number: int, body: str) -> dict[str, Any]:
        self._ids += 1
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        url = f"{self.base_url}/repos/{repo}/issues/comments/{self._ids}"
        made = {
            "id": self._ids,
            "url": url,
            "body": body,
            "created_at": now,
            "updated_at": now,
            "user": {"login": "b"},
        }
        self.comments[repo, number].append(made)
        return made

    def answer(self, asked: Asked) -> Reply:
        sent = asked.headers.get("authorization", "")
        if sent not in (f"Bearer {TOKEN}", f"token {TOKEN}"):
            return Reply(401, {"message": "Bad credentials", **_DOCS})
        match asked.method, asked.parts:
            case _, ["repos", owner, name, "actions", "secrets", *rest]:
                return self.vaults.answer((owner, name), rest, asked)
            case _, ["repos", owner, name, "environments", environment, "secrets", *rest]:
                return self.vaults.answer((owner, name, environment), rest, asked)
            case _, ["orgs", organisation, "actions", "secrets", *rest]:
                return self.vaults.answer((organisation,), rest, asked)
            case "GET", ["repos", owner, name, "environments", environment]:
                url = f"{self.base_url}{asked.path}"
                if (owner, name, environment) in self.vaults.places:
                    return Reply(200, {"id": 1, "name": environment, "url": url})
            case "GET", ["orgs", organisation] if (organisation,) in self.vaults.places:
                return Reply(
                    200, {"login": organisation, "url": f"{self.base_url}/orgs/{organisation}"}
                )
            case "GET", ["rate_limit"]:
                return Reply(200, {"resources": {}, "rate": {"limit": 5000, "remaining": 4999}})
            case "GET", ["repos", owner, name] if f"{owner}/{name}" in self.private:
                private = self.private[f"{owner}/{name}"]
                return Reply(200, {"full_name": f"{owner}/{name}", "name": name, "private": private,
                                   "url": f"{self.base_url}/repos/{owner}/{name}"})  # fmt: skip
            case "GET", ["repos", owner, name, "issues", "comments", number]:
                for (repo, _), listed in self.comments.items():
                    for comment in listed:
                        if (repo, str(comment["id"])) == (f"{owner}/{name}", number):
                            return Reply(200, comment)
            case "GET", ["repos", owner, name, "issues", number] if self._known(
                owner, name, number
            ):
                repo = f"{owner}/{name}"
                return Reply(
                    200,
                    {"number": int(number), "url": f"{self.base_url}/repos/{repo}/issues/{number}"},
                )
            case "GET", ["repos", owner, name, "issues", number, "comments"] if self._known(
                owner, name, number
            ):
                size, page = int(asked.query.get("per_page", 30)), int(asked.query.get("page", 1))
                since = asked.query.get("since", "")
                found = [
                    c
                    for c in self.comments[f"{owner}/{name}", int(number)]
                    if c["updated_at"] >= since
                ]
                return Reply(200, found[size * (page - 1) : size * page])
            case "POST", ["repos", owner, name, "issues", number, "comments"] if self._known(
                owner, name, number
            ):
                return self._comment(f"{owner}/{name}", int(number), asked)
        return Reply(404, {"message": "Not Found", **_DOCS})

    def _known(self, owner: str, name: str, number: str) -> bool:
        return number.isdigit() and (f"{owner}/{name}", int(number)) in self.comments

    def _comment(self, repo: str, number: int, asked: Asked) -> Reply:
        if not self.may_write:
            return Reply(403, {"message": "Resource not accessible by integration", **_DOCS})
        if (repo, number) in self.locked:
            return Reply(
                403, {"message": "Unable to create comment because issue is locked.", **_DOCS}
            )
        body = asked.json.get("body")
        if not body or len(body) > 65536:
            return Reply(422, {"message": "Validation Failed", "errors": [], **_DOCS})
        return Reply(201, self.add(repo, number, body))


class InGitHub(Backend):
    """The secrets of a repository: a fake that opens what was sealed with its private key.

    Nobody can read them.
    """

    name, marked, blind = "github-secret", False, True

    def __init__(self, fake: FakeGitHub) -> None:
        self.fake, self.url = fake, fake.base_url

    def environ(self, url: str = "") -> Mapping[str, str]:
        return {"GITHUB_API_URL": url or self.url, "GITHUB_TOKEN": TOKEN}

    def single(self, group: str) -> Sequence[str]:
        return [
            f"github-secret:acme/app#{upper(group)}_PW=staging_password,{upper(group)}_USER=user"
        ]

    def each(self, group: str) -> Sequence[str]:
        del group
        return []

    def there(self, group: str) -> Values:
        kept = self.fake.vaults.places["acme", "app"].opened
        names = {"password": f"{upper(group)}_PW", "user": f"{upper(group)}_USER"}
        return {key: kept[name] for key, name in names.items() if name in kept}

    def writes(self, group: str) -> int:
        return sum(
            asked.method == "PUT" and upper(group) in asked.target for asked in self.fake.asked
        )

    def count(self, group: str) -> int:
        names = [asked.target for asked in self.fake.asked if asked.method == "PUT"]
        return max(sum(f"{upper(group)}_{end}" in name for name in names) for end in ("PW", "USER"))

    def rotate(self, group: str, password: str) -> None:
        self.fake.vaults.places["acme", "app"].opened[f"{upper(group)}_PW"] = password.encode()
