"""Requests: options, creating, reminding."""
