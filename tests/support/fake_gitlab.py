"""A fake of GitLab, written from its public REST documentation (version 4): projects, notes,
variables.

The CI/CD variables have switches for what older ones and smaller plans do not have.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from support.fake_web import Asked, FakeWeb, Reply
from support.places import Place as Backend
from support.places import Values, upper

Place = tuple[str, str]

_MASK_RAW = re.compile(r"\S{8,}", re.ASCII)
_MASK = re.compile(r"[a-zA-Z0-9_+=/@:.~-]{8,}")
_FLAGS = ("protected", "masked", "raw")


@dataclass
class VariableShelves:
    """`places` by what the API's path names: ("projects", path) or ("groups", path); each a list of
    variables.
    """

    places: dict[Place, list[dict[str, Any]]] = field(
        default_factory=lambda: {
            ("projects", "acme/sub/app"): [],
            ("projects", "acme/open"): [],
            ("groups", "acme/sub"): [],
        }
    )
    maintainer: bool = True
    descriptions: bool = True
    raws: bool = True
    masks_raw: bool = True
    scopes_in_groups: bool = True
    filters_in_groups: bool = True

    def find(self, place: Place, key: str, scope: str = "*") -> dict[str, Any]:
        """One variable. LookupError where there is none."""
        for each in self.places[place]:
            if (each["key"], each["environment_scope"]) == (key, scope):
                return each
        raise LookupError(key)

    def answer(self, place: Place, rest: list[str], asked: Asked) -> Reply:
        if place not in self.places:
            return Reply(404, {"message": f"404 {place[0].title()[:-1]} Not Found"})
        if not self.maintainer:
            return Reply(403, {"message": "403 Forbidden"})
        if not rest:
            return self._add(place, asked) if asked.method == "POST" else self._list(place, asked)
        scope = asked.query.get("filter[environment_scope]")
        if place[0] == "groups" and not self.filters_in_groups:
            scope = None
        same = [each for each in self.places[place] if each["key"] == rest[0]]
        same = [each for each in same if scope in (None, each["environment_scope"])]
        if len(same) > 1:
            return Reply(409, {"message": "There are multiple variables with provided parameters."})
        if not same or len(rest) > 1:
            return Reply(404, {"message": "404 Variable Not Found"})
        if asked.method == "PUT":
            return self._change(same[0], asked)
        return Reply(200, self._told(same[0]))

    def _list(self, place: Place, asked: Asked) -> Reply:
        size, page = int(asked.query.get("per_page", 20)), int(asked.query.get("page", 1))
        return Reply(
            200, [self._told(each) for each in self.places[place]][size * (page - 1) : size * page]
        )

    def _add(self, place: Place, asked: Asked) -> Reply:
        given = dict(asked.members)
        scoped = place[0] == "projects" or self.scopes_in_groups
        made = {
            "variable_type": "env_var",
            **dict.fromkeys(_FLAGS, False),
            "hidden": False,
            "description": None,
        }
        made |= given | {
            "environment_scope": given.get("environment_scope", "*") if scoped else "*"
        }
        wrong = self._wrong(made)
        if any(
            (each["key"], each["environment_scope"]) == (made["key"], made["environment_scope"])
            for each in self.places[place]
        ):
            wrong = {"key": [f"({made['key']}) has already been taken"]}
        if wrong:
            return Reply(400, {"message": wrong})
        self.places[place].append(made)
        return Reply(201, self._told(made))

    def _change(self, there: dict[str, Any], asked: Asked) -> Reply:
        changed = {**there, **asked.members}
        wrong = self._wrong(changed)
        if wrong:
            return Reply(400, {"message": wrong})
        there |= changed
        return Reply(200, self._told(there))

    def _wrong(self, made: dict[str, Any]) -> dict[str, list[str]]:
        wrong = {}
        if not re.fullmatch("[a-zA-Z0-9_]{1,255}", made["key"]):
            wrong["key"] = ["can contain only letters, digits and '_'."]
        mask = _MASK_RAW if self.masks_raw and self.raws and made["raw"] else _MASK
        if made["masked"] and not mask.fullmatch(made["value"]):
            wrong["value"] = ["is invalid"]
        if len(made["description"] or "") > 255:
            wrong["description"] = ["is too long (maximum is 255 characters)"]
        if not re.fullmatch(r"[a-zA-Z0-9_/\${}. *-]{1,255}", made["environment_scope"]):
            wrong["environment_scope"] = ["can contain only letters, digits and some others"]
        return wrong

    def _told(self, each: dict[str, Any]) -> dict[str, Any]:
        told = {**each, "value": None if each["hidden"] else each["value"]}
        absent = [
            name
            for name, has in (("description", self.descriptions), ("raw", self.raws))
            if not has
        ]
        return {name: value for name, value in told.items() if name not in absent}


TOKEN = "glpat-nJ9xQ2bVtYp4Rk7sLw3Z"


class FakeGitLab(FakeWeb):
    """Projects by path with their visibility; `notes` by project, kind and number; `shelves` hold
    the variables.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.visibility = {
            "acme/sub/app": "private",
            "acme/open": "public",
            "acme/house": "internal",
        }
        self.notes: dict[tuple[str, str, int], list[dict[str, Any]]] = {
            (project, kind, 4): []
            for project in self.visibility
            for kind in ("merge_requests", "issues")
        }
        self.role = "reporter"
        self.shelves = VariableShelves()

    def bodies(self, project: str = "acme/sub/app", kind: str = "merge_requests") -> list[str]:
        return [note["body"] for note in self.notes[project, kind, 4]]

    def answer(self, asked: Asked) -> Reply:
        given = asked.headers.get("private-token") or asked.headers.get(
            "authorization", ""
        ).removeprefix("Bearer ")
        if given != TOKEN:
            return Reply(401, {"message": "401 Unauthorized"})
        match asked.method, asked.parts[2:]:
            case "GET", ["version"]:
                return Reply(200, {"version": "17.5.1", "revision": "a1b2c3"})
            case "GET", ["projects", project] if project in self.visibility:
                number = list(self.visibility).index(project) + 1
                told = {
                    "id": number,
                    "path_with_namespace": project,
                    "visibility": self.visibility[project],
                }
                return Reply(200, told)
            case "GET", ["projects", project, ("merge_requests" | "issues") as kind, iid]:
                if self._known(project, kind, iid):
                    return Reply(
                        200, {"id": 900, "iid": int(iid), "project_id": self._path(project)}
                    )
            case "GET", ["groups", group] if ("groups", group) in self.shelves.places:
                return Reply(200, {"id": 70, "full_path": group})
            case _, [("projects" | "groups") as kind, owner, "variables", *rest]:
                return self.shelves.answer(
                    (kind, owner if kind == "groups" else self._path(owner)), rest, asked
                )
            case method, [
                "projects",
                project,
                ("merge_requests" | "issues") as kind,
                iid,
                "notes",
                *rest,
            ]:
                if self._known(project, kind, iid):
                    return self._notes(method, asked, (self._path(project), kind, int(iid)), rest)
        return Reply(404, {"message": "404 Not found"})

    def _path(self, project: str) -> str:
        """A project is named by its number, too."""
        return list(self.visibility)[int(project) - 1] if project.isdigit() else project

    def _known(self, project: str, kind: str, iid: str) -> bool:
        return iid.isdigit() and (self._path(project), kind, int(iid)) in self.notes

    def _notes(
        self, method: str, asked: Asked, place: tuple[str, str, int], rest: list[str]
    ) -> Reply:
        notes = self.notes[place]
        if method == "POST" and not rest:
            body = asked.members.get("body", "")
            if not body:
                return Reply(400, {"error": "body is missing"})
            internal = bool(asked.members.get("internal"))
            if internal and self.role == "guest":
                return Reply(403, {"message": "403 Forbidden"})
            now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
            # GitLab takes commands, lines that begin with a slash, out of the text.
            kept = "\n".join(line for line in body.split("\n") if not line.startswith("/"))
            notes.append(
                {"id": 300 + len(notes), "body": kept, "internal": internal, "created_at": now}
            )
            return Reply(201, notes[-1])
        if rest:
            return next(
                (Reply(200, note) for note in notes if str(note["id"]) == rest[0]), Reply(404, {})
            )
        size, page = int(asked.query.get("per_page", 20)), int(asked.query.get("page", 1))
        ordered = notes[::-1] if asked.query.get("sort", "desc") == "desc" else notes
        return Reply(200, ordered[size * (page - 1) : size * page])


class InGitLab(Backend):
    """The variables of a project."""

    name = "gitlab-variable"

    def __init__(self, fake: FakeGitLab) -> None:
        self.fake, self.url = fake, fake.base_url

    def environ(self, url: str = "") -> Mapping[str, str]:
        return {"CI_SERVER_URL": url or self.url, "GITLAB_TOKEN": TOKEN}

    def single(self, group: str) -> Sequence[str]:
        name = upper(group)
        return [f"gitlab-variable:acme/sub/app#{name}_PW=staging_password,{name}_USER=user"]

    def each(self, group: str) -> Sequence[str]:
        del group
        return []

    def there(self, group: str) -> Values:
        kept = {
            row["key"]: row["value"] for row in self.fake.shelves.places["projects", "acme/sub/app"]
        }
        names = {"password": f"{upper(group)}_PW", "user": f"{upper(group)}_USER"}
        return {key: kept[name].encode() for key, name in names.items() if name in kept}

    def writes(self, group: str) -> int:
        """Every request that changes a variable names it: in its path, or a new one in its body."""
        name = upper(group)
        writing = [each for each in self.fake.asked if each.method in ("POST", "PUT")]
        return sum(name in each.target or name in each.body.decode() for each in writing)

    def count(self, group: str) -> int:
        names = [
            asked.body.decode() + asked.target
            for asked in self.fake.asked
            if asked.method in ("POST", "PUT")
        ]
        return max(sum(f"{upper(group)}_{end}" in each for each in names) for end in ("PW", "USER"))

    def rotate(self, group: str, password: str) -> None:
        self.fake.shelves.find(("projects", "acme/sub/app"), f"{upper(group)}_PW")["value"] = (
            password
        )
