"""Sinks: where a submission's values are written."""
