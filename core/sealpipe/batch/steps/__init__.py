"""The steps of one row: its states, what it asks and hands out, and what it has sent."""
