"""gitlab-note:group/project!45 and gitlab-note:group/project#45, a note on a merge request or an
issue.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote

from sealpipe.plugin import (
    AccessDeniedError,
    Context,
    Health,
    ReferenceValueError,
    SecretNotFoundError,
)
from sealpipe_plugins.comments import (
    PAGE,
    CommentChannel,
    comment_id,
    public_error,
    read_pages,
    search_start,
)
from sealpipe_plugins.gitlab.api import GitLab, GitLabSettings
from sealpipe_plugins.http_errors import Refusals, explain_redirects

_PART: Final = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,254}"
_TO: Final = re.compile(rf"({_PART}(?:/{_PART}){{1,20}})([!#])([1-9][0-9]{{0,9}})")

_KINDS: Final = {"!": "merge_requests", "#": "issues"}


class GitLabChannel(CommentChannel):
    """Notes on merge requests and issues. In a public project anyone can read them."""

    settings: GitLabSettings

    def __init__(self, settings: GitLabSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._gitlab = GitLab(settings, context)

    def validate(self, to: str) -> None:
        """Check project, kind and number."""
        _parse_target(to)

    def _open_thread(self, to: str) -> _NoteThread:
        project, kind, iid = _parse_target(to)
        path = f"/projects/{quote(project, safe='')}"
        project_reply = self._gitlab.get(path, _explain_refusals(f"project {project}"))
        if (
            project_reply.member("visibility") not in ("private", "internal")
            and not self.settings.public
        ):
            raise public_error(f"project {project}", "note")
        notes = f"{path}/{_KINDS[kind]}/{iid}/notes"
        return _NoteThread(
            self._gitlab, notes, _explain_refusals(to), internal=self.settings.internal
        )

    def check(self) -> Health:
        """Check that the token is valid."""
        return Health(ok=True, detail=f"GitLab {self._gitlab.version()}")


class _NoteThread:
    """The notes of one issue or merge request."""

    def __init__(self, gitlab: GitLab, path: str, refusals: Refusals, *, internal: bool) -> None:
        self._gitlab = gitlab
        self._path = path
        self._refusals = refusals
        self._internal = internal

    def find(self, body: str) -> str | None:
        since, query = search_start(), f"order_by=created_at&sort=desc&per_page={PAGE}"
        for rows in read_pages(
            lambda page: self._gitlab.get(f"{self._path}?{query}&page={page}", self._refusals)
        ):
            for note in rows:
                if _is_same_text(note.get("body"), body):
                    return str(note.get("id"))
            if rows and str(rows[-1].get("created_at")) < since:
                break
        return None

    def create(self, body: str) -> str:
        flag = {"internal": True} if self._internal else {}
        return comment_id(self._gitlab.post(self._path, {"body": body, **flag}, self._refusals))

    def has_text(self, comment: str, body: str) -> bool:
        return _is_same_text(self._gitlab.get(f"{self._path}/{comment}").member("body"), body)


def _is_same_text(text: object, body: str) -> bool:
    return isinstance(text, str) and text.strip() == body.strip()


def _parse_target(to: str) -> tuple[str, str, str]:
    match = _TO.fullmatch(to)
    if match is None:
        raise ReferenceValueError(
            "the recipient is not one merge request or issue",
            remedy="write it as gitlab-note:group/project!45, or with # for an issue",
        )
    return match[1], match[2], match[3]


def _explain_refusals(what: str) -> Refusals:
    return {
        403: (
            AccessDeniedError,
            f"does not let this token write to {what}",
            (
                "give it the scope api and the role Reporter, which internal notes need (or "
                "set internal = false)"
            ),
        ),
        404: (
            SecretNotFoundError,
            f"has no {what}, or hides it from this token",
            "check path and number, and the token's project",
        ),
        **explain_redirects(what),
    }
