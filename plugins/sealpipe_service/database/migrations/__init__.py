"""Makes and upgrades the tables, by Alembic: `versions` has one module for each version.

A version only adds: a column that may be null or has a default, a table, an index. What is not used
any longer is dropped one version later, so that processes of the version before go on meanwhile.
New columns come last, in tables.py too.
"""
