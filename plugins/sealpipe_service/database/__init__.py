"""The service's data in a database: tables, statements, and the decisions that are made there.

tables.py         the tables, in SQLAlchemy Core
statements.py     every statement, once, in SQLAlchemy Core
compiling.py      writes sqlite_text.py
sqlite_text.py    the same statements as text for sqlite3: nobody who serves from SQLite waits for
                  SQLAlchemy, whose import costs three times what a whole rehearsal does
sqlite.py         connections and transactions on SQLite
owners.py         which processes live, for marks of calls in flight
decisions.py      `Store`: one method for each decision; what the routes call
"""
