"""Sharing: options, sealing, posting, and ending a share."""
