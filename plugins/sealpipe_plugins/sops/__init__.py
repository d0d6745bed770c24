"""sops."""
