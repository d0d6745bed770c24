"""The built-in channels. Their modules are imported when one of them is used."""

from __future__ import annotations

from collections.abc import Callable

from sealpipe.plugin import CONFIRMS, SEGMENTS, ChannelInfo


def sealpipe_channels(register: Callable[[ChannelInfo], None]) -> None:
    """The descriptors."""
    package = "sealpipe_plugins"
    register(
        ChannelInfo(
            "file",
            "a new 0600 file: file:out/link.txt",
            f"{package}.local.file_channel:FileChannel",
            to="path of a file that does not exist yet",
            capabilities=(CONFIRMS, SEGMENTS),
        )
    )
    register(
        ChannelInfo(
            "webhook",
            "a signed POST of JSON: webhook:https://host/path",
            f"{package}.webhook.channel:WebhookChannel",
            settings=f"{package}.webhook.channel:WebhookSettings",
            to="an https:// address",
            capabilities=(SEGMENTS,),
        )
    )
    register(
        ChannelInfo(
            "email",
            "an email to one address: email:name@example.com",
            f"{package}.email.channel:EmailChannel",
            settings=f"{package}.email.smtp:SmtpSettings",
            to="one address, without a display name",
        )
    )
    register(
        ChannelInfo(
            "slack",
            "a message in Slack: slack:#ops",
            f"{package}.slack.channel:SlackChannel",
            settings=f"{package}.slack.channel:SlackSettings",
            to="#channel, @MEMBERID, or a webhook's name (empty for the unnamed one)",
        )
    )
    register(
        ChannelInfo(
            "teams",
            "a card in Microsoft Teams: teams:",
            f"{package}.teams.channel:TeamsChannel",
            settings=f"{package}.teams.channel:TeamsSettings",
            to="a webhook's name (empty for the unnamed one)",
        )
    )
    register(
        ChannelInfo(
            "mattermost",
            "a message in Mattermost: mattermost:",
            f"{package}.mattermost.channel:MattermostChannel",
            settings=f"{package}.mattermost.channel:MattermostSettings",
            to="a webhook's name (empty for the unnamed one)",
        )
    )
    register(
        ChannelInfo(
            "discord",
            "a message in Discord: discord:",
            f"{package}.discord.channel:DiscordChannel",
            settings=f"{package}.discord.channel:DiscordSettings",
            to="a webhook's name (empty for the unnamed one)",
        )
    )
    register(
        ChannelInfo(
            "github-comment",
            "a comment on an issue or pull request: github-comment:owner/repo#123",
            f"{package}.github.comment_channel:GitHubChannel",
            settings=f"{package}.github.api:GitHubSettings",
            to="owner/repo#number",
            capabilities=(CONFIRMS,),
        )
    )
    register(
        ChannelInfo(
            "gitlab-note",
            "a note on a merge request or issue: gitlab-note:group/project!45",
            f"{package}.gitlab.note_channel:GitLabChannel",
            settings=f"{package}.gitlab.api:GitLabSettings",
            to="group/project!number for a merge request, group/project#number for an issue",
            capabilities=(CONFIRMS,),
        )
    )
