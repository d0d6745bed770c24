"""What both clients can do, once: each a function of the session that gives a flow.

`Client` and `AsyncClient` make their methods of these; the docstrings are theirs, too.
"""
