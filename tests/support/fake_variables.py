"""The CI/CD variables of the fake of GitLab, with the switches of what older ones and smaller plans do not have."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from support.fake_web import Asked, Reply

Place = tuple[str, str]

_MASK_RAW = re.compile(r"\S{8,}", re.ASCII)
_MASK = re.compile(r"[a-zA-Z0-9_+=/@:.~-]{8,}")
_FLAGS = ("protected", "masked", "raw")


@dataclass
class VariableShelves:
    """`places` by what the API's path names: ("projects", path) or ("groups", path); each a list of variables."""

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
        return Reply(200, [self._told(each) for each in self.places[place]][size * (page - 1) : size * page])

    def _add(self, place: Place, asked: Asked) -> Reply:
        given = dict(asked.members)
        scoped = place[0] == "projects" or self.scopes_in_groups
        made = {"variable_type": "env_var", **dict.fromkeys(_FLAGS, False), "hidden": False, "description": None}
        made |= given | {"environment_scope": given.get("environment_scope", "*") if scoped else "*"}
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
        absent = [name for name, has in (("description", self.descriptions), ("raw", self.raws)) if not has]
        return {name: value for name, value in told.items() if name not in absent}
