"""Ending what was created: shares, requests, and their records."""
