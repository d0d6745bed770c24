"""Kubernetes secrets."""
