"""KeePass databases."""
