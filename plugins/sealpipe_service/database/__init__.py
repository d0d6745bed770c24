"""The service's data in a database: tables, statements, and the decisions that are made there.

tables.py         the tables, in SQLAlchemy Core
statements.py     every statement, once, in SQLAlchemy Core
compiling.py      writes sqlite_text.py
sqlite_text.py    the same statements as text for sqlite3: nobody who serves from SQLite waits for
                  SQLAlchemy, whose import costs three times what a whole rehearsal does
sqlite.py         connections and transactions on SQLite
postgresql.py     connections and transactions on PostgreSQL, which runs the statements as they are
planned.py        functions of PostgreSQL that have statements as their bodies
pool.py           the connections of a process that threads take turns at
claims.py         which creates are in flight at a file of SQLite
opening.py        the database at an address; versions.py: whether its tables are this program's
migrating.py      makes and upgrades the tables by Alembic (`migrations`)
backing_up.py     copies a database while it is served
decisions.py      `Store`: one method for each decision; what the routes call
"""
