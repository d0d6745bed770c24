"""Hooks for pre-commit: links, credentials and seeds that must not get into a repository. Imports `re` and little else."""
