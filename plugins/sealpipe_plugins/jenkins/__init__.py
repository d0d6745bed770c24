"""Jenkins: its CI jobs."""
