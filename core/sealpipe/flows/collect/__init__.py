"""Collecting submissions: poll, open, pick and store them."""
