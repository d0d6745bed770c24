"""The program behind the composite actions: it turns inputs into a `sealpipe` command, and results
into outputs.

It runs on Python 3.9 and later, so it imports only the standard library and modules of `core` that
need nothing else. What it shares with the GitHub plugin, which needs an installed sealpipe, stands
in `sealpipe.ci_systems` and `sealpipe.ci_commands`.
"""
