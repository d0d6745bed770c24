"""Sources, sinks and channels on this machine.

Variables, files, standard input, programs, the terminal.
"""
