"""Webhooks of the user's own."""
