"""Hooks for pre-commit: links, credentials and seeds that must not be committed.

Imports little besides `re`.
"""
