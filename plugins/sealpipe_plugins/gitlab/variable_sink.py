"""`gitlab-variable:GROUP/PROJECT#KEY`, and `gitlab-variable:groups/GROUP#KEY` for a group's.

`groups` is unambiguous: no group can have this name. The marker is at the end of a variable's
description, in brackets.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import quote

from sealpipe.plugin import (
    Context,
    Health,
    Locator,
    Mode,
    ReferenceValueError,
    Sink,
    SinkField,
    WriteResult,
)
from sealpipe_plugins.gitlab.api import GitLab, GitLabSettings
from sealpipe_plugins.gitlab.variable_writing import VariableWrite, members_to_write, store_variable
from sealpipe_plugins.gitlab.variables import VariableOwner, Variables
from sealpipe_plugins.sink_values import variable_values

_PART: Final = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,254}"
_PROJECT: Final = re.compile(rf"(?!groups/){_PART}(?:/{_PART}){{1,20}}")
_GROUP: Final = re.compile(rf"groups/({_PART}(?:/{_PART}){{0,20}})")
_KEY: Final = re.compile(r"[A-Za-z0-9_]{1,255}")
_RULE: Final = "use at most 255 letters, digits and _"


class GitLabVariableSink(Sink):
    """Variables of a project or a group: never expanded; masked and protected by default."""

    settings: GitLabSettings

    def __init__(self, settings: GitLabSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._gitlab = GitLab(settings, context)

    def describe(self, locator: Locator, mode: Mode) -> str:
        """Describe the write."""
        owner, scope, flags = _parse_owner(locator), _parse_scope(locator), _parse_flags(locator)
        existing = "if none has this key" if mode == "create" else "replacing any with this key"
        environment = "" if scope == "*" else f" for the environment {scope}"
        flag_names = [
            name if is_set else f"not {name}"
            for name, is_set in ({"masked": True, "protected": True} | flags).items()
        ]
        flag_text = " and ".join(flag_names)
        return (
            f"store variables of {owner.what}{environment} at GitLab, {flag_text}, {existing}; "
            "its other variables stay"
        )

    def put(
        self, locator: Locator, fields: Sequence[SinkField], *, mode: Mode, marker: str
    ) -> WriteResult:
        """Store each variable with the marker in one call, and read it back."""
        variables, flags = (
            Variables(self._gitlab, _parse_owner(locator), _parse_scope(locator)),
            _parse_flags(locator),
        )
        wanted = variable_values(locator, fields, _KEY, _RULE)
        writes = [VariableWrite(key, value, mode, marker, flags) for key, value in wanted.items()]
        existing_variables = [variables.read(write.key) for write in writes]
        for write, existing in zip(writes, existing_variables, strict=True):
            # Reject invalid values before anything is written.
            members_to_write(variables, write, existing)
        outcomes = [
            store_variable(variables, write, existing)
            for write, existing in zip(writes, existing_variables, strict=True)
        ]
        return WriteResult(
            locator,
            known=all(variable.value is not None for variable, _ in outcomes),
            already=all(already for _, already in outcomes),
        )

    def check(self) -> Health:
        """Check that the token is valid. Its write permissions cannot be checked."""
        version = self._gitlab.version()
        return Health(
            ok=True, detail=f"GitLab {version}; the token's write permissions cannot be checked"
        )


def _parse_owner(locator: Locator) -> VariableOwner:
    group, project = _GROUP.fullmatch(locator.body), _PROJECT.fullmatch(locator.body)
    if group is not None:
        return VariableOwner(
            f"/groups/{quote(group[1], safe='')}", f"the group {group[1]}", "Owner"
        )
    if project is not None:
        return VariableOwner(
            f"/projects/{quote(project[0], safe='')}", f"the project {project[0]}", "Maintainer"
        )
    raise ReferenceValueError(
        f"{locator} is neither a project nor a group", remedy="write GROUP/PROJECT, or groups/GROUP"
    )


def _parse_scope(locator: Locator) -> str:
    scope = locator.param("environment", "*") or ""
    if not 0 < len(scope) < 256:
        raise ReferenceValueError(
            f"{locator}: environment= must name an environment or a scope such as review/*",
            remedy="leave it out for all",
        )
    return scope


def _parse_flags(locator: Locator) -> dict[str, bool]:
    parameters = {name: locator.param(name) for name in ("protected", "masked")}
    if not set(parameters.values()) <= {"0", "1", None}:
        raise ReferenceValueError(
            f"{locator}: protected= and masked= are 0 or 1", remedy="leave them out for 1"
        )
    return {name: value == "1" for name, value in parameters.items() if value is not None}
