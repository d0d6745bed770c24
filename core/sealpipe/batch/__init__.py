"""Batches: one share or request for each row of a file, made, reminded and collected by jobs that
can be repeated.
"""
