"""A fake of GitHub, written from its public REST documentation (2022-11-28): repositories, issue comments, secrets."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from support.fake_secrets import Vaults
from support.fake_web import Asked, FakeWeb, Reply

TOKEN = "ghs_16C7e42F292c6912E7710c838347Ae178B4a"
_DOCS = {"documentation_url": "https://docs.github.com/rest"}


class FakeGitHub(FakeWeb):
    """Repositories, each private or not; `comments` by repository and number; `vaults` hold the Actions secrets."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.private = {"acme/app": True, "acme/open": False}
        self.comments: dict[tuple[str, int], list[dict[str, Any]]] = {("acme/app", 7): [], ("acme/open", 7): []}
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
        made = {"id": self._ids, "url": url, "body": body, "created_at": now, "updated_at": now, "user": {"login": "b"}}
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
                return Reply(200, {"login": organisation, "url": f"{self.base_url}/orgs/{organisation}"})
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
            case "GET", ["repos", owner, name, "issues", number] if self._known(owner, name, number):
                repo = f"{owner}/{name}"
                return Reply(200, {"number": int(number), "url": f"{self.base_url}/repos/{repo}/issues/{number}"})
            case "GET", ["repos", owner, name, "issues", number, "comments"] if self._known(owner, name, number):
                size, page = int(asked.query.get("per_page", 30)), int(asked.query.get("page", 1))
                since = asked.query.get("since", "")
                found = [c for c in self.comments[f"{owner}/{name}", int(number)] if c["updated_at"] >= since]
                return Reply(200, found[size * (page - 1) : size * page])
            case "POST", ["repos", owner, name, "issues", number, "comments"] if self._known(owner, name, number):
                return self._comment(f"{owner}/{name}", int(number), asked)
        return Reply(404, {"message": "Not Found", **_DOCS})

    def _known(self, owner: str, name: str, number: str) -> bool:
        return number.isdigit() and (f"{owner}/{name}", int(number)) in self.comments

    def _comment(self, repo: str, number: int, asked: Asked) -> Reply:
        if not self.may_write:
            return Reply(403, {"message": "Resource not accessible by integration", **_DOCS})
        if (repo, number) in self.locked:
            return Reply(403, {"message": "Unable to create comment because issue is locked.", **_DOCS})
        body = asked.json.get("body")
        if not body or len(body) > 65536:
            return Reply(422, {"message": "Validation Failed", "errors": [], **_DOCS})
        return Reply(201, self.add(repo, number, body))
