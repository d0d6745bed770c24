"""The database of batches.

SQLite or PostgreSQL, tables, sealed blobs, effects, and the rate that all workers share.
"""
