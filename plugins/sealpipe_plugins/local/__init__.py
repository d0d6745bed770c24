"""Sources, sinks and channels on this machine: variables, files, standard input, programs, the
terminal.
"""
