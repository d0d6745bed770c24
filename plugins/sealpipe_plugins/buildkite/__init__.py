"""Buildkite: its CI jobs."""
