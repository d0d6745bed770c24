"""`github-secret:OWNER/REPO#NAME`, `github-secret:OWNER/REPO/ENVIRONMENT#NAME`,
`github-secret:ORGANISATION#NAME`.

Secrets of GitHub Actions. GitHub never returns a value: only the ledger knows what an earlier run
stored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from sealpipe.plugin import (
    Context,
    Health,
    Locator,
    Mode,
    PluginError,
    ReferenceValueError,
    Sink,
    SinkField,
    UnknownOutcomeError,
    UnsupportedError,
    WriteConflictError,
    WriteResult,
)
from sealpipe_plugins.github.api import GitHub, GitHubSettings
from sealpipe_plugins.github.secrets_api import ActionsSecrets, SecretOwner
from sealpipe_plugins.sink_values import variable_values

LIMIT: Final = 48 * 1024
"""Maximum bytes of a value."""

_OWNER: Final = r"[A-Za-z0-9][A-Za-z0-9_-]{0,38}"
_REPO: Final = r"(?!\.{1,2}(?:/|$))[A-Za-z0-9._-]{1,100}"
_TARGET: Final = re.compile(rf"({_OWNER})(?:/({_REPO})(?:/(.{{1,255}}))?)?")
_NAME: Final = re.compile(r"(?!(?i:github_))[A-Za-z_][A-Za-z0-9_]{0,254}")
_RULE: Final = "use letters, digits and _; the name starts with neither a digit nor GITHUB_"


class GitHubSecretSink(Sink):
    """Secrets of a repository, of an environment, or of an organisation."""

    settings: GitHubSettings

    def __init__(self, settings: GitHubSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._github = GitHub(settings, context)
        # Values that an earlier failed call stored, so that the core's retry does not take them for
        # a conflict.
        self._stored_before: set[tuple[str, str, str]] = set()

    def describe(self, locator: Locator, mode: Mode) -> str:
        """Describe the write."""
        owner, visibility = _parse_owner(locator), _parse_visibility(locator)
        existing = "if none has this name" if mode == "create" else "replacing any with this name"
        audience = f" (a new one for {_VISIBILITIES[visibility]})" if owner.is_organisation else ""
        return (
            f"store secrets of {owner.what} at GitHub, {existing}{audience}; its other secrets stay"
        )

    def put(
        self, locator: Locator, fields: Sequence[SinkField], *, mode: Mode, marker: str
    ) -> WriteResult:
        """Seal and store. `version` is GitHub's time of the change; `known` is False."""
        owner, visibility = _parse_owner(locator), _parse_visibility(locator)
        wanted = _wanted_values(locator, fields)
        secrets = ActionsSecrets(self._github, owner)
        stored_before = {
            name for name in wanted if (owner.path, name, marker) in self._stored_before
        }
        to_store = [name for name in wanted if mode != "create" or name not in stored_before]
        existing = {
            name: secrets.read(name)
            for name in to_store
            if mode == "create" or owner.is_organisation
        }
        conflicts = [name for name in existing if existing[name] is not None]
        if mode == "create" and conflicts:
            raise WriteConflictError(
                (
                    f"{', '.join(conflicts)} of {owner.what} exists already, and GitHub does "
                    "not return its value"
                ),
                remedy="name another one, or use --mode replace",
            )
        audiences = {
            name: secrets.visibility_members(name, existing.get(name), visibility)
            for name in to_store
        }
        for number, name in enumerate(to_store):
            try:
                self._store(secrets, name, wanted[name], audiences[name], once=mode == "create")
            except PluginError as error:
                if not number:
                    raise
                before = f"; {', '.join(to_store[:number])} was stored before"
                raise error.copy_with(message=error.message + before) from error.__cause__
            self._stored_before.add((owner.path, name, marker))
        version = max(_confirm(secrets, name) for name in wanted)
        self._stored_before -= {(owner.path, name, marker) for name in wanted}
        return WriteResult(locator, version, known=False)

    def check(self) -> Health:
        """Check that the token is valid. Its write permissions cannot be checked."""
        self._github.check_token()
        return Health(ok=True, detail="the token is valid; its write permissions cannot be checked")

    def _store(
        self,
        secrets: ActionsSecrets,
        name: str,
        value: str,
        members: Mapping[str, Any],
        *,
        once: bool,
    ) -> None:
        what = secrets.owner.what
        try:
            is_new = secrets.write(name, value.encode(), members, once=once)
        except UnknownOutcomeError:
            is_new = None
        if is_new is None:
            raise UnknownOutcomeError(
                f"GitHub did not say whether it stored {name} of {what}", remedy=_CHECK_THERE
            )
        if once and not is_new:
            raise UnknownOutcomeError(
                (
                    f"another writer stored {name} of {what} at the same moment; this value "
                    "has replaced theirs"
                ),
                remedy=_CHECK_THERE,
            )


_CHECK_THERE: Final = "check there when it was last changed; --mode replace stores it again"

_VISIBILITIES: Final = {"private": "its private repositories", "all": "all its repositories"}


def _confirm(secrets: ActionsSecrets, name: str) -> str:
    """Return GitHub's time of the change; an empty string if unknown.

    GitHub has already accepted the write.
    """
    try:
        secret = secrets.read(name)
    except PluginError:
        return ""
    if secret is None:
        raise UnknownOutcomeError(
            f"GitHub accepted {name} of {secrets.owner.what} but does not have it",
            remedy=_CHECK_THERE,
        )
    updated_at = str(secret.get("updated_at"))
    return updated_at if re.fullmatch(r"[0-9TZ:.+-]{1,40}", updated_at) else ""


def _wanted_values(locator: Locator, fields: Sequence[SinkField]) -> dict[str, str]:
    values = variable_values(locator, fields, _NAME, _RULE)
    # GitHub stores names in upper case.
    wanted = {name.upper(): value for name, value in values.items()}
    if len(wanted) < len(values):
        raise ReferenceValueError(
            f"{locator} names the same secret twice",
            remedy="upper and lower case are the same secret",
        )
    for name, value in wanted.items():
        if len(value.encode()) > LIMIT:
            raise UnsupportedError(
                f"the value for {name} of {locator} is longer than the 48 KB that GitHub stores",
                remedy="store it elsewhere, and only its key here",
            )
    return wanted


def _parse_owner(locator: Locator) -> SecretOwner:
    match = _TARGET.fullmatch(locator.body)
    if match is None or match[3] in (".", ".."):
        raise ReferenceValueError(
            f"{locator} is not an owner of secrets",
            remedy="write OWNER/REPO, OWNER/REPO/ENVIRONMENT or ORGANISATION",
        )
    owner, repo, environment = match.groups()
    if repo is None:
        needs = "the organisation permission Secrets: write (a classic token: admin:org)"
        return SecretOwner(
            f"/orgs/{owner}/actions/secrets",
            f"the organisation {owner}",
            needs,
            is_organisation=True,
        )
    if environment is None:
        needs = "the permission Secrets: write (a classic token: repo)"
        return SecretOwner(
            f"/repos/{owner}/{repo}/actions/secrets", f"the repository {owner}/{repo}", needs
        )
    path = f"/repos/{owner}/{repo}/environments/{quote(environment, safe='')}/secrets"
    needs = "the permission Environments: write (a classic token: repo)"
    return SecretOwner(path, f"the environment {environment} of {owner}/{repo}", needs)


def _parse_visibility(locator: Locator) -> str:
    values = locator.param("visibility")
    if values is not None and ("/" in locator.body or values not in _VISIBILITIES):
        raise ReferenceValueError(
            f"{locator}: visibility= is private or all, for an organisation's secret",
            remedy="leave it out for private repositories only",
        )
    return values or "private"
