"""The program behind the composite actions: from inputs to a `sealpipe` command, and on to outputs.

It runs on any Python from 3.9 on, so it imports only the standard library and modules of `core` that need nothing
else. runner_output.py therefore repeats what the GitHub plugin does, which needs an installed sealpipe.
"""
