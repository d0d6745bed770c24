"""pass, the standard unix password manager."""
