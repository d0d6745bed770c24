"""Shares: options, sealing, posting, sealed links."""
