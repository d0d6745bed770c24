"""Putting values where they belong: targets that name sinks, what goes into each, and the putting itself."""
