"""Mattermost: messages by incoming webhooks."""
