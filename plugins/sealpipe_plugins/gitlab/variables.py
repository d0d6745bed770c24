"""The CI/CD variables of a project or a group, for one environment scope."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from sealpipe.plugin import (
    AccessDeniedError,
    BackendAuthError,
    PluginError,
    SecretNotFoundError,
    UnsupportedError,
)
from sealpipe_plugins.gitlab.api import GitLab
from sealpipe_plugins.http_errors import Refusals, explain_redirects
from sealpipe_plugins.text_markers import append_marker, split_markers

MAX_DESCRIPTION: Final = 255
"""Maximum characters of a variable's description."""


class VariableOwner(NamedTuple):
    """The owner of variables.

    `path` is the API path, `what` is for messages, `role` is required to write.
    """

    path: str
    what: str
    role: str


class Variable(NamedTuple):
    """A variable.

    `value` is None if GitLab hides it, `description` is None if GitLab does not support
    descriptions.
    """

    value: str | None
    masked: bool
    protected: bool
    raw: bool
    description: str | None

    def __repr__(self) -> str:
        return "Variable(...)"

    @property
    def content(self) -> bytes:
        """The value that a job gets; if unknown, bytes that never equal a value."""
        if self.value is None:
            return b"\0hidden"
        return (
            b"\0expanded"
            if "$" in self.value and not self.raw
            else self.value.encode("utf-8", "surrogatepass")
        )

    @property
    def marks(self) -> list[str]:
        """The markers in its description, oldest first."""
        return split_markers(self.description or "")[1]

    def description_with(self, marker: str) -> str | None:
        """Return the description with another marker; None if the variable has no description."""
        return None if self.description is None else add_mark(self.description, marker)


def add_mark(text: str, marker: str) -> str:
    """Append a marker to a description and drop the oldest ones if necessary.

    Unchanged if it does not fit.
    """
    return append_marker(text, marker, MAX_DESCRIPTION)


class Variables:
    """An owner's variables of one scope, such as `*` or `production`."""

    def __init__(self, gitlab: GitLab, owner: VariableOwner, scope: str) -> None:
        self.owner = owner
        self.scope = scope
        self._gitlab = gitlab
        self._path = f"{owner.path}/variables"
        self._filter = f"?filter%5Benvironment_scope%5D={quote(scope, safe='')}"

    def read(self, key: str) -> Variable | None:
        """Read a variable, or return None. A missing owner is reported by the write, not here."""
        try:
            variable = self._gitlab.get(
                f"{self._path}/{key}{self._filter}", _explain_refusals(self.owner, key)
            ).json
        except SecretNotFoundError:
            return None
        value = (
            variable.get("value")
            if isinstance(variable, dict) and variable.get("key") == key
            else 0
        )
        if not isinstance(value, str) and (value is not None or variable.get("hidden") is not True):
            raise PluginError(f"the response is not GitLab's: it has no {key} of {self.owner.what}")
        # An old GitLab that does not know the filter.
        if variable.get("environment_scope", "*") != self.scope:
            return None
        masked, protected, raw = (
            variable.get(name) is True for name in ("masked", "protected", "raw")
        )
        return Variable(value, masked, protected, raw, _read_description(variable))

    def add(self, key: str, members: Mapping[str, Any]) -> None:
        """Create a variable.

        Raises UnsupportedError if GitLab refuses it, for example because it now exists.
        """
        all_members = {"key": key, "environment_scope": self.scope, **members}
        reply = self._gitlab.post(self._path, all_members, _explain_refusals(self.owner, key))
        if (reply.member("environment_scope") or "*") != self.scope:
            raise PluginError(
                (
                    f"GitLab stored {key} of {self.owner.what} for every environment: it has "
                    "no scopes there"
                ),
                remedy=(
                    "delete it there, or leave environment= out (groups have scopes from "
                    "Premium on)"
                ),
            )

    def change(self, key: str, members: Mapping[str, Any]) -> None:
        """Change a variable. Raises SecretNotFoundError if it no longer exists."""
        self._gitlab.put(
            f"{self._path}/{key}{self._filter}", members, _explain_refusals(self.owner, key)
        )


def _read_description(variable: Mapping[str, Any]) -> str | None:
    return str(variable["description"] or "") if "description" in variable else None


def _explain_refusals(owner: VariableOwner, key: str) -> Refusals:
    what = owner.what
    needs: Sequence[str] = (f"the role {owner.role}", "the scope api")
    return {
        400: (UnsupportedError, f"rejects {key} of {what}", _CHECK_SCOPE),
        401: (
            BackendAuthError,
            "refused the token",
            (
                f"use an unexpired access token with {' and '.join(needs)}; a job's own "
                "CI_JOB_TOKEN cannot write any"
            ),
        ),
        403: (
            AccessDeniedError,
            f"does not let this token write the variables of {what}",
            f"give it {' and '.join(needs)}",
        ),
        404: (
            SecretNotFoundError,
            f"does not find {what}, or hides it from this token",
            "check the path, and the token's project",
        ),
        409: (
            UnsupportedError,
            f"cannot distinguish the variables {key} of {what} by environment",
            "use GitLab 16.9 or newer for a group, or keep only one variable",
        ),
        413: (UnsupportedError, f"rejects the value for {key} as too long", "store it elsewhere"),
        422: (UnsupportedError, f"rejects {key} of {what}", _CHECK_SCOPE),
        **explain_redirects(what),
    }


_CHECK_SCOPE: Final = (
    "check the environment's name; if it is masked, GitLab before 16 accepts only letters, "
    "digits and _+=/@:.~-: "
    "masked=0 stores it unmasked"
)
