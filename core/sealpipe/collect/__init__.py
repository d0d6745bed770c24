"""Collecting: options, polling, opening, checking and storing submissions."""
