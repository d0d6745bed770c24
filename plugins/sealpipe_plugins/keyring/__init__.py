"""The operating system's keyring."""
