"""github-comment:owner/repo#123, a comment on an issue or a pull request."""

from __future__ import annotations

import re
from typing import Final

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
from sealpipe_plugins.github.api import GitHub, GitHubSettings
from sealpipe_plugins.http_errors import Refusals, explain_redirects

_TO: Final = re.compile(
    r"([A-Za-z0-9][A-Za-z0-9_-]{0,38}/(?!\.{1,2}#)[A-Za-z0-9._-]{1,100})#([1-9][0-9]{0,9})"
)


class GitHubChannel(CommentChannel):
    """Comments on issues and pull requests. In a public repository anyone can read them."""

    settings: GitHubSettings

    def __init__(self, settings: GitHubSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._github = GitHub(settings, context)

    def validate(self, to: str) -> None:
        """Check owner, repository and number."""
        _parse_target(to)

    def _open_thread(self, to: str) -> _IssueThread:
        repo, issue = _parse_target(to)
        repository = self._github.get(f"/repos/{repo}", _explain_refusals(f"repository {repo}"))
        if repository.member("private") is not True and not self.settings.public:
            raise public_error(f"repository {repo}", "comment")
        return _IssueThread(self._github, repo, issue)

    def check(self) -> Health:
        """Check that the token is valid."""
        self._github.check_token()
        return Health(ok=True, detail="the token is valid")


class _IssueThread:
    """The comments of one issue or pull request."""

    def __init__(self, github: GitHub, repo: str, issue: str) -> None:
        self._github = github
        self._comments = f"/repos/{repo}/issues/comments"
        self._issue_comments = f"/repos/{repo}/issues/{issue}/comments"
        self._refusals = _explain_refusals(f"{repo}#{issue}")

    def find(self, body: str) -> str | None:
        query = f"since={search_start()}&per_page={PAGE}"
        pages = read_pages(
            lambda page: self._github.get(
                f"{self._issue_comments}?{query}&page={page}", self._refusals
            )
        )
        return next(
            (str(row.get("id")) for rows in pages for row in rows if row.get("body") == body), None
        )

    def create(self, body: str) -> str:
        return comment_id(self._github.post(self._issue_comments, {"body": body}, self._refusals))

    def has_text(self, comment: str, body: str) -> bool:
        return bool(self._github.get(f"{self._comments}/{comment}").member("body") == body)


def _parse_target(to: str) -> tuple[str, str]:
    match = _TO.fullmatch(to)
    if match is None:
        raise ReferenceValueError(
            "the recipient is not one issue or pull request",
            remedy="write it as github-comment:owner/repo#123",
        )
    return match[1], match[2]


def _explain_refusals(what: str) -> Refusals:
    not_found = f"has no {what}, or hides it from this token"
    return {
        403: (
            AccessDeniedError,
            f"does not let this token comment on {what}",
            "give it issues: write and pull-requests: write",
        ),
        404: (
            SecretNotFoundError,
            not_found,
            "check the name, and which repositories the token may see",
        ),
        410: (
            SecretNotFoundError,
            f"no longer has {what}",
            "check the number, and that issues are switched on",
        ),
        422: (
            AccessDeniedError,
            f"rejects a comment on {what}",
            "it may be locked, or the comment too long",
        ),
        **explain_redirects(what),
    }
