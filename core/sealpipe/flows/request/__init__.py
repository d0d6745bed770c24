"""Requesting secrets: options, the key, creating a request, expiring and purging it."""
