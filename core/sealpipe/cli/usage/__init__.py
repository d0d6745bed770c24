"""What a command takes and what its `--help` says: its click options, arguments and texts.

`--help` and completion load these modules and nothing that a command works with. What it does is in
the module of the same name in `sealpipe.cli`, which is imported when the command runs, and has its
imports at its top.
"""
