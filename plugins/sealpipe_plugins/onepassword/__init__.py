"""1Password."""
