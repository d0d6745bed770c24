"""A fake of GitLab, written from its public REST documentation (version 4): projects, notes, variables."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from support.fake_variables import VariableShelves
from support.fake_web import Asked, FakeWeb, Reply

TOKEN = "glpat-nJ9xQ2bVtYp4Rk7sLw3Z"


class FakeGitLab(FakeWeb):
    """Projects by path with their visibility; `notes` by project, kind and number; `shelves` hold the variables."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.visibility = {"acme/sub/app": "private", "acme/open": "public", "acme/house": "internal"}
        self.notes: dict[tuple[str, str, int], list[dict[str, Any]]] = {
            (project, kind, 4): [] for project in self.visibility for kind in ("merge_requests", "issues")
        }
        self.role = "reporter"
        self.shelves = VariableShelves()

    def bodies(self, project: str = "acme/sub/app", kind: str = "merge_requests") -> list[str]:
        return [note["body"] for note in self.notes[project, kind, 4]]

    def answer(self, asked: Asked) -> Reply:
        given = asked.headers.get("private-token") or asked.headers.get("authorization", "").removeprefix("Bearer ")
        if given != TOKEN:
            return Reply(401, {"message": "401 Unauthorized"})
        match asked.method, asked.parts[2:]:
            case "GET", ["version"]:
                return Reply(200, {"version": "17.5.1", "revision": "a1b2c3"})
            case "GET", ["projects", project] if project in self.visibility:
                number = list(self.visibility).index(project) + 1
                told = {"id": number, "path_with_namespace": project, "visibility": self.visibility[project]}
                return Reply(200, told)
            case "GET", ["projects", project, ("merge_requests" | "issues") as kind, iid]:
                if self._known(project, kind, iid):
                    return Reply(200, {"id": 900, "iid": int(iid), "project_id": self._path(project)})
            case "GET", ["groups", group] if ("groups", group) in self.shelves.places:
                return Reply(200, {"id": 70, "full_path": group})
            case _, [("projects" | "groups") as kind, owner, "variables", *rest]:
                return self.shelves.answer((kind, owner if kind == "groups" else self._path(owner)), rest, asked)
            case method, ["projects", project, ("merge_requests" | "issues") as kind, iid, "notes", *rest]:
                if self._known(project, kind, iid):
                    return self._notes(method, asked, (self._path(project), kind, int(iid)), rest)
        return Reply(404, {"message": "404 Not found"})

    def _path(self, project: str) -> str:
        """A project is named by its number, too."""
        return list(self.visibility)[int(project) - 1] if project.isdigit() else project

    def _known(self, project: str, kind: str, iid: str) -> bool:
        return iid.isdigit() and (self._path(project), kind, int(iid)) in self.notes

    def _notes(self, method: str, asked: Asked, place: tuple[str, str, int], rest: list[str]) -> Reply:
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
            notes.append({"id": 300 + len(notes), "body": kept, "internal": internal, "created_at": now})
            return Reply(201, notes[-1])
        if rest:
            return next((Reply(200, note) for note in notes if str(note["id"]) == rest[0]), Reply(404, {}))
        size, page = int(asked.query.get("per_page", 20)), int(asked.query.get("page", 1))
        ordered = notes[::-1] if asked.query.get("sort", "desc") == "desc" else notes
        return Reply(200, ordered[size * (page - 1) : size * page])
