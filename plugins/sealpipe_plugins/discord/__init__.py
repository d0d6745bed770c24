"""Discord: messages by webhooks."""
