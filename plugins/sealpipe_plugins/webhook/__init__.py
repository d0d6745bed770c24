"""Webhooks to the user's own endpoints."""
