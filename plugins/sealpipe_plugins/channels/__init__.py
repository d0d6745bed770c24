"""The built-in channels. Their modules are imported when one of them is used."""

from __future__ import annotations

from collections.abc import Callable

from sealpipe.plugin import CONFIRMS, SEGMENTS, ChannelInfo, hookimpl


@hookimpl
def sealpipe_channels(register: Callable[[ChannelInfo], None]) -> None:
    """The descriptors."""
    here = "sealpipe_plugins.channels"
    register(
        ChannelInfo(
            "file",
            "a new 0600 file: file:out/link.txt",
            f"{here}.file:FileChannel",
            to="the path of a file that is not there yet",
            capabilities=(CONFIRMS, SEGMENTS),
        )
    )
    register(
        ChannelInfo(
            "webhook",
            "a signed POST of JSON: webhook:https://host/path",
            f"{here}.webhook:WebhookChannel",
            settings=f"{here}.webhook:WebhookSettings",
            to="an https:// address",
            capabilities=(SEGMENTS,),
        )
    )
    behind = "sealpipe_plugins.backends"
    register(
        ChannelInfo(
            "email",
            "a message to one address: email:name@example.com",
            f"{here}.email:EmailChannel",
            settings=f"{behind}.smtp:SmtpSettings",
            to="one address, without a name",
        )
    )
    register(
        ChannelInfo(
            "slack",
            "a message in Slack: slack:#ops",
            f"{here}.slack:SlackChannel",
            settings=f"{behind}.slack:SlackSettings",
            to="#channel, @MEMBERID, or a webhook's name (nothing for the one without a name)",
        )
    )
    register(
        ChannelInfo(
            "teams",
            "a card in Microsoft Teams: teams:",
            f"{here}.teams:TeamsChannel",
            settings=f"{behind}.teams:TeamsSettings",
            to="a webhook's name (nothing for the one without a name)",
        )
    )
    register(
        ChannelInfo(
            "github-comment",
            "a comment on an issue or pull request: github-comment:owner/repo#123",
            f"{here}.github_comment:GitHubChannel",
            settings=f"{behind}.github:GitHubSettings",
            to="owner/repo#number",
            capabilities=(CONFIRMS,),
        )
    )
    register(
        ChannelInfo(
            "gitlab-note",
            "a note on a merge request or issue: gitlab-note:group/project!45",
            f"{here}.gitlab_note:GitLabChannel",
            settings=f"{behind}.gitlab:GitLabSettings",
            to="group/project!number of a merge request, or # for an issue",
            capabilities=(CONFIRMS,),
        )
    )
