"""`github-secret:OWNER/REPO#NAME`, `github-secret:OWNER/REPO/ENVIRONMENT#NAME`, `github-secret:ORGANISATION#NAME`.

Secrets of GitHub Actions. GitHub gives no value back: what a run before this one stored, only the ledger knows.
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
    Receipt,
    ReferenceValueError,
    Sink,
    Stored,
    UnknownOutcomeError,
    UnsupportedError,
    WriteConflictError,
)
from sealpipe_plugins.github.api import GitHub, GitHubSettings
from sealpipe_plugins.github.secrets_api import Owner, Secrets
from sealpipe_plugins.sink_values import variable_values

LIMIT: Final = 48 * 1024
"""Bytes of a value that GitHub stores."""

_OWNER: Final = r"[A-Za-z0-9][A-Za-z0-9_-]{0,38}"
_REPO: Final = r"(?!\.{1,2}(?:/|$))[A-Za-z0-9._-]{1,100}"
_PLACE: Final = re.compile(rf"({_OWNER})(?:/({_REPO})(?:/(.{{1,255}}))?)?")
_NAME: Final = re.compile(r"(?!(?i:github_))[A-Za-z_][A-Za-z0-9_]{0,254}")
_RULE: Final = "a secret's name has letters, digits and _, does not begin with a digit, nor with GITHUB_"


class GitHubSecretSink(Sink):
    """Secrets of a repository, of an environment, or of an organisation."""

    settings: GitHubSettings

    def __init__(self, settings: GitHubSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._github = GitHub(settings, context)
        # What a call that then failed had stored, so that the core's next try does not take it for another's.
        self._begun: set[tuple[str, str, str]] = set()

    def describe(self, locator: Locator, mode: Mode) -> str:
        """Which secrets, and what becomes of one that is there."""
        owner, visibility = _owner(locator), _visibility(locator)
        there = "where there are none of that name" if mode == "create" else "in place of any of that name"
        seen = f" (a new one for {_SEEN[visibility]})" if owner.organisation else ""
        return f"store secrets of {owner.what} at GitHub, {there}{seen}; its others stay"

    def put(self, locator: Locator, fields: Sequence[Stored], *, mode: Mode, marker: str) -> Receipt:
        """Seal and store. `version` is when GitHub says that it was changed; `known` is False."""
        owner, visibility = _owner(locator), _visibility(locator)
        wanted = _wanted(locator, fields)
        secrets = Secrets(self._github, owner)
        begun = {name for name in wanted if (owner.path, name, marker) in self._begun}
        todo = [name for name in wanted if mode != "create" or name not in begun]
        there = {name: secrets.look(name) for name in todo if mode == "create" or owner.organisation}
        taken = [name for name in there if there[name] is not None]
        if mode == "create" and taken:
            raise WriteConflictError(
                f"{', '.join(taken)} of {owner.what} is there already, and GitHub does not say with which value",
                remedy="name another one, or say with --mode replace that it may change",
            )
        audiences = {name: secrets.audience(name, there.get(name), visibility) for name in todo}
        for number, name in enumerate(todo):
            try:
                self._store(secrets, name, wanted[name], audiences[name], once=mode == "create")
            except PluginError as error:
                if number:
                    error.message += f"; {', '.join(todo[:number])} was stored before"
                    error.args = (error.message,)
                raise
            self._begun.add((owner.path, name, marker))
        version = max(_confirmed(secrets, name) for name in wanted)
        self._begun -= {(owner.path, name, marker) for name in wanted}
        return Receipt(locator, version, known=False)

    def check(self) -> Health:
        """Check that the token is valid. What it may write cannot be checked."""
        self._github.check_token()
        return Health(ok=True, detail="the token is valid; what it may write is not known before")

    def _store(self, secrets: Secrets, name: str, value: str, more: Mapping[str, Any], *, once: bool) -> None:
        what = secrets.owner.what
        try:
            made = secrets.write(name, value.encode(), more, once=once)
        except UnknownOutcomeError:
            made = None
        if made is None:
            raise UnknownOutcomeError(f"GitHub did not say whether it stored {name} of {what}", remedy=_LOOK)
        if once and not made:
            raise UnknownOutcomeError(
                f"{name} of {what} was stored by somebody else at the same moment, and now has our value", remedy=_LOOK
            )


_LOOK: Final = "look there when it was changed; --mode replace stores it again, whatever is there"

_SEEN: Final = {"private": "its private repositories", "all": "all its repositories"}


def _confirmed(secrets: Secrets, name: str) -> str:
    """When GitHub says that it was changed; empty where it does not say. It has said already that it is stored."""
    try:
        found = secrets.look(name)
    except PluginError:
        return ""
    if found is None:
        raise UnknownOutcomeError(f"GitHub took {name} of {secrets.owner.what}, and does not have it", remedy=_LOOK)
    changed = str(found.get("updated_at"))
    return changed if re.fullmatch(r"[0-9TZ:.+-]{1,40}", changed) else ""


def _wanted(locator: Locator, fields: Sequence[Stored]) -> dict[str, str]:
    given = variable_values(locator, fields, _NAME, _RULE)
    wanted = {name.upper(): value for name, value in given.items()}  # as GitHub keeps them
    if len(wanted) < len(given):
        raise ReferenceValueError(f"{locator} names one secret twice", remedy="capitals do not tell secrets apart")
    for name, value in wanted.items():
        if len(value.encode()) > LIMIT:
            raise UnsupportedError(
                f"the value for {name} of {locator} is longer than the 48 KB that GitHub stores",
                remedy="store it elsewhere, and only its key here",
            )
    return wanted


def _owner(locator: Locator) -> Owner:
    match = _PLACE.fullmatch(locator.body)
    if match is None or match[3] in (".", ".."):
        raise ReferenceValueError(
            f"{locator} is no place of secrets", remedy="write OWNER/REPO, OWNER/REPO/ENVIRONMENT or ORGANISATION"
        )
    owner, repo, environment = match.groups()
    if repo is None:
        needs = "the organisation permission Secrets: write (a classic token: admin:org)"
        return Owner(f"/orgs/{owner}/actions/secrets", f"the organisation {owner}", needs, organisation=True)
    if environment is None:
        needs = "the permission Secrets: write (a classic token: repo)"
        return Owner(f"/repos/{owner}/{repo}/actions/secrets", f"the repository {owner}/{repo}", needs)
    path = f"/repos/{owner}/{repo}/environments/{quote(environment, safe='')}/secrets"
    needs = "the permission Environments: write (a classic token: repo)"
    return Owner(path, f"the environment {environment} of {owner}/{repo}", needs)


def _visibility(locator: Locator) -> str:
    given = locator.param("visibility")
    if given is not None and ("/" in locator.body or given not in _SEEN):
        raise ReferenceValueError(
            f"{locator}: visibility= is private or all, for an organisation's secret",
            remedy="leave it out: a new secret of an organisation is for its private repositories",
        )
    return given or "private"
