"""The engine: runs, workers, plans, what is done by hand, and what is found again."""
