"""CircleCI: its CI jobs."""
