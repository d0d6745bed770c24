"""Infisical."""
