"""The program behind the composite actions: it turns inputs into a `sealpipe` command, and results into outputs.

It runs on Python 3.9 and later, so it imports only the standard library and modules of `core` that need nothing else.
Therefore runner_output.py repeats code of the GitHub plugin, which needs an installed sealpipe.
"""
