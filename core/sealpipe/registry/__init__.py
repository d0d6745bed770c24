"""Plugins in use: stores, instances, and calls that stay safe whatever a plugin does."""
