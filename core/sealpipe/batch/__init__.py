"""Batches: one share or request for each row of a file, by jobs that can be repeated."""
